"""The rules: each takes a snapshot and yields findings. ``find_all`` runs them in order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import BoolColumn, IntColumn, codes, ints
from control.model.disk_rules import find_disks
from control.model.finding import Finding, Operation, sorted_findings
from control.model.freshness import Freshness, freshness, leaders_silent, without_dead_figures
from control.model.ids import path_segment
from control.model.job_health import find_job_delay, find_job_errors
from control.model.load import (
    BrokerLoads,
    Placement,
    broker_loads,
    placement,
    skew_percent,
    without_rates,
)
from control.model.snapshot import ClusterSnapshot
from control.model.status import (
    BEHIND,
    BEYOND,
    GROUP_SEVERITIES,
    PARTITION_SEVERITIES,
    RANKS,
    PartitionStatuses,
    Severity,
    commit_ranks,
    elected_leaders,
    partition_statuses,
)

SKEW_PERCENT_MAX: Final = 20.0
SKEW_REPLICAS_MIN: Final = 12
"""Below this many replicas in a cluster, counts cannot be even and skew means nothing."""
SKEW_BYTES_MIN: Final = 16 * 1024 * 1024
"""A cluster with less data than this on its average broker is not worth evening out."""
CLOCKS_ALIKE_MS: Final = 2_000
"""Clocks of brokers that differ by no more from each other are right, as far as can be known."""
LATE_MS_MAX: Final = 30_000
"""Figures that are older, though brokers answer, are critical: by then nobody watches the cluster.
Until then the job may wait for a broker that hangs."""
NAMES_MAX: Final = 5
"""So many examples are named in a finding's reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Evidence that the rules look at, computed once."""

    snapshot: ClusterSnapshot
    statuses: PartitionStatuses
    placement: Placement
    loads: BrokerLoads
    commit_ranks: IntColumn
    """Status of each row of ``commits``: its place in ``GROUP_SEVERITIES``."""
    behind_groups: int
    """Groups of which a partition falls behind: to be known, and no finding yet."""
    now_ms: int
    freshness: Freshness
    unjudged: pa.Array
    """Why a row of ``commits`` has no verdict: what it rests on is lost; null where nothing is."""

    @classmethod
    def gather(
        cls,
        snapshot: ClusterSnapshot,
        *,
        now_ms: int,
        fresh: Freshness | None = None,
        answering: frozenset[int] | None = None,
    ) -> "Evidence":
        """``fresh``: who is heard of, where that is not to be judged by the time that it is;
        ``answering``: the brokers that answer, where they were asked."""
        if fresh is None:
            fresh = freshness(snapshot, now_ms=now_ms, answering=answering)
        snapshot, unjudged = without_dead_figures(snapshot, fresh)
        placed = placement(snapshot)
        ranks = commit_ranks(
            snapshot.commits, commit_log_starts(snapshot), unjudged, _memberless(snapshot)
        )
        return cls(
            snapshot=snapshot,
            freshness=fresh,
            unjudged=unjudged,
            statuses=partition_statuses(snapshot, leaders_silent(snapshot, fresh)),
            placement=placed,
            loads=without_rates(broker_loads(snapshot, placed), fresh.unheard),
            commit_ranks=ranks,
            behind_groups=_behind_groups(snapshot, ranks),
            now_ms=now_ms,
        )


def _memberless(snapshot: ClusterSnapshot) -> BoolColumn:
    """For every row of ``commits`` whether its group is known to have no members."""
    groups = snapshot.groups
    empty = groups.filter(pc.equal(groups["members"], 0))["group_id"]
    alone: BoolColumn = pc.is_in(snapshot.commits["group_id"], empty).to_numpy()
    return alone


def _behind_groups(snapshot: ClusterSnapshot, ranks: IntColumn) -> int:
    rows = np.flatnonzero(ranks == RANKS[BEHIND])
    return int(pc.count_distinct(snapshot.commits["group_id"].take(pa.array(rows))).as_py())


def find_all(evidence: Evidence) -> tuple[Finding, ...]:
    """All findings, worst first."""
    rules = (
        find_partitions, find_brokers, find_skew, find_groups, find_silent, find_clocks,
    )  # fmt: skip
    of_disks = find_disks(evidence.snapshot, evidence.placement)
    of_job = (find_job_delay(evidence.snapshot), find_job_errors(evidence.snapshot))
    found = (*(rule(evidence) for rule in rules), of_disks, *of_job)
    return sorted_findings(finding for findings in found for finding in findings)


_ELECT: Final = "Elect the preferred leaders"
_PARTITION_TEXTS: Final = {
    "offline": (
        "{count:plural:partition} offline",
        "No replica in sync is alive: {names}. Clients can neither read nor write there.",
        "Bring back a broker of its ISR",
    ),
    "under-min-isr": (
        "{count:plural:partition} under min ISR",
        "Fewer replicas in sync than min.insync.replicas: {names}. acks=all is refused.",
        "Bring back the lagging brokers, or move replicas",
    ),
    "at-min-isr": (
        "{count:plural:partition} at min ISR",
        "If one more replica falls behind, acks=all is refused: {names}.",
        "Bring back the lagging brokers, or move replicas",
    ),
    "under-replicated": (
        "{count:plural:partition} under-replicated",
        "Not all replicas are in sync: {names}.",
        "See which broker is missing or slow",
    ),
    "not-preferred": (
        "{count:plural:leader} not preferred",
        "The first replica in the assignment does not lead: {names}.",
        _ELECT,
    ),
}


_WORSE: Final = {"under-replicated": ("at-min-isr", "under-min-isr")}
"""Names of what is under-replicated too, and worse."""


def find_partitions(evidence: Evidence) -> Iterator[Finding]:
    """Partitions that are offline, lack replicas or are led by the wrong one: one per kind.

    A kind is told where it is not all told by worse names; then it counts every partition to which
    it applies, as tiles and filters do.
    """
    flags = evidence.statuses.flags
    for word, (title, reason, next_step) in _PARTITION_TEXTS.items():
        rows = np.flatnonzero(flags[word])
        is_told = [flags[it][rows] for it in _WORSE.get(word, ())]
        if not rows.size or (is_told and np.logical_or.reduce(is_told).all()):
            continue
        names = partition_names(evidence.snapshot, rows)
        yield Finding(
            kind=word,
            severity=PARTITION_SEVERITIES[word],
            subject=_partitions_path(evidence.snapshot, rows, word),
            label=names[0] if rows.size == 1 else word,
            title=title,
            reason=reason,
            next_step=next_step,
            operation=Operation.ELECT if word == "not-preferred" else Operation.OPEN,
            is_only_one=True,
            facts={"count": int(rows.size), "names": _some(names, int(rows.size))},
        )


def find_brokers(evidence: Evidence) -> Iterator[Finding]:
    """Registered brokers that the controller has fenced, or that have no address for us."""
    for row in evidence.snapshot.brokers.to_pylist():
        if not row["is_fenced"] and not row["host"]:
            yield Finding(
                kind="broker-no-address",
                severity=Severity.WARNING,
                subject=f"brokers/{row['broker']}",
                label=f"broker {row['broker']}",
                title="no address for us",
                reason="It runs, but lacks the listener by which the cluster is asked: its own "
                "figures are not known.",
                next_step="Ask the cluster by an address of a listener that every broker has",
                since_ms=row["sampled_ms"],
            )
        if row["is_fenced"]:
            broker = row["broker"]
            replicas = _held_by(evidence, broker)
            otherwise = "move its replicas away"
            if not replicas:
                otherwise = f"if it is gone for good, `partiscope brokers drain {broker}`"
            yield Finding(
                kind="broker-fenced",
                severity=Severity.CRITICAL if replicas else Severity.WARNING,
                subject=f"brokers/{broker}",
                label=f"broker {broker}",
                title="fenced or down",
                reason="The controller hears no heartbeat; {replicas:plural:replica} unreachable.",
                next_step=f"Start it again, or {otherwise}",
                since_ms=row["sampled_ms"],
                facts={"replicas": replicas},
            )


SKEW_MEASURES: Final = {"size_bytes": "bytes", "replicas": "replicas", "leaders": "leaders"}
"""A column of broker loads, and its word."""


def find_skew(evidence: Evidence) -> Iterator[Finding]:
    """The worst broker by each measure, once per broker."""
    loads = evidence.loads
    if len(loads.brokers) < 2 or float(loads.replicas.sum()) < SKEW_REPLICAS_MIN:
        return
    told: set[int] = set()
    is_down = np.isin(loads.brokers, sorted(evidence.freshness.down))
    for measure, word in SKEW_MEASURES.items():
        values, skews = loads.measure(measure), loads.skew_percent(measure)
        known = values[~np.isnan(values)]
        if measure == "size_bytes" and not float(known.sum()) >= SKEW_BYTES_MIN * known.size > 0:
            continue
        skews = np.where(is_down, 0.0, skews)
        place = int(np.argmax(np.nan_to_num(np.abs(skews))))
        broker, skew = int(loads.brokers[place]), float(skews[place])
        if abs(skew) <= SKEW_PERCENT_MAX or broker in told:
            continue
        told.add(broker)
        unit = "bytes" if measure == "size_bytes" else "count"
        told_by = "all brokers" if known.size == values.size else "those that tell theirs"
        next_step, operation, step = _skew_step(measure, evidence)
        yield Finding(
            kind=f"skew-{word}",
            severity=Severity.WARNING if skew > 0 else Severity.NOTICE,
            subject=f"brokers/{broker}",
            label=f"broker {broker}",
            title=f"{word} skew {{skew:signed_percent}}",
            reason=f"Holds {{value:{unit}}} {'' if unit == 'bytes' else word + ' '}"
            f"({{share:percent}}); the mean of {told_by} is {{mean:{unit}}}.",
            next_step=next_step,
            operation=operation,
            step=step,
            is_only_one=True,
            facts={
                "skew": skew,
                "value": float(values[place]),
                "mean": float(np.nanmean(values)),
                "share": float(values[place] / np.nansum(values) * 100.0),
            },
        )


def _skew_step(measure: str, evidence: Evidence) -> tuple[str, Operation, str]:
    """The next step, its operation and the path where it is taken."""
    if measure != "leaders":
        return "Plan moves", Operation.REASSIGN, ""
    if down := sorted(evidence.freshness.down):
        names = f"broker{'s' if len(down) > 1 else ''} {', '.join(map(str, down))}"
        return (
            f"Bring back {names}: the others lead meanwhile",
            Operation.OPEN,
            f"brokers/{down[0]}",
        )
    if _is_even_once_elected(evidence):
        return _ELECT, Operation.ELECT, ""
    return "Plan moves", Operation.REASSIGN, ""


def _is_even_once_elected(evidence: Evidence) -> bool:
    """Whether leaders lie evenly as soon as the preferred ones lead, as they do not where every
    broker was started anew: a plan would have nothing to move."""
    leaders = elected_leaders(evidence.snapshot.partitions)
    led = dict(zip(*np.unique(leaders, return_counts=True), strict=True))
    counts = np.array([led.get(broker, 0) for broker in evidence.loads.brokers], dtype=np.float64)
    return float(np.abs(skew_percent(counts)).max()) <= SKEW_PERCENT_MAX


_GROUP_TEXTS: Final = {
    "LOST": (
        "data lost on {partition}",
        "Retention deleted records from offset {offset:count} on, its commit, before it read them.",
        "Reset its offsets, or accept the gap",
    ),
    BEYOND: (
        "committed beyond the end of {partition}",
        "It committed {offset:count}, but the log ends at {end:count}. It will skip records up to "
        "there, or start anew by auto.offset.reset.",
        "Reset its offsets to latest, or to where it should continue",
    ),
    "STALL": (
        "STALL on {partition}",
        "A member is assigned but stuck at offset {offset:count}; {lag:plural:record} unread.",
        "Browse the record at that offset: it may block the consumer",
    ),
    "STOP": (
        "STOP on {partition}",
        "No commit since offset {offset:count}; {lag:plural:record} unread.",
        "Start its consumers again",
    ),
    "REWIND": (
        "REWIND on {partition}",
        "Its commit went back to offset {offset:count}; {lag:plural:record} will be re-read.",
        "See in the journal who reset its offsets",
    ),
}


_OWNED_STOP: Final = (
    "STOP on {partition}",
    "A member is assigned but has committed nothing since offset {offset:count}; "
    "{lag:plural:record} unread.",
    "Check the process of its member: it may hang",
)
_UNSEEN_STALL: Final = (
    "STALL on {partition}",
    "It is stuck at offset {offset:count}; {lag:plural:record} unread.",
    "Browse the record at that offset: it may block the consumer",
)


_STUCK_RECORD: Final = (
    "stuck record on {partition}",
    "Its members are there, but its start stands at offset {offset:count}; at most "
    "{lag:plural:record} wait.",
    "See what its members do with the record at that offset: nobody acknowledges or rejects it",
)


def _group_texts(word: str, row: Mapping[str, Any], *, is_share: bool) -> tuple[str, str, str]:
    """Title, reason and next step: what is said of a member fits whether there is one."""
    is_owned = row["member_id"] is not None
    if is_share and is_owned and word in ("STOP", "STALL"):
        return _STUCK_RECORD
    if word == "STOP" and is_owned:
        return _OWNED_STOP
    if word == "STALL" and not is_owned:
        return _UNSEEN_STALL
    return _GROUP_TEXTS[word]


def _group_step(word: str, next_step: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Where the next step of a group's finding is taken: fields of the finding."""
    if word in _RESETS:
        given = {"group": row["group_id"], "topic": row["topic"], "partitions": row["partition"]}
        filled = tuple((name, str(value)) for name, value in given.items())
        return {
            "operation": Operation.RESET_OFFSETS,
            "given": (*filled, ("to", _RESETS[word])),
        }
    if next_step.startswith("Browse"):
        where = f"partition={row['partition']}&offset={row['committed_offset']}"
        return {"step": f"browse/{path_segment(row['topic'])}?{where}"}
    if word == "REWIND":
        return {"step": "journal"}
    is_here = row["member_id"] is not None or word != "STOP"
    return {} if is_here else {"operation": Operation.OUTSIDE}


_RESETS: Final = {"LOST": "earliest", BEYOND: "latest"}
"""Where the offsets are reset to, unless the operator says otherwise."""


def find_groups(evidence: Evidence) -> Iterator[Finding]:
    """One finding per group and word, about the partition with the most lag."""
    words = list(GROUP_SEVERITIES)
    groups = evidence.snapshot.groups
    shares = set(groups.filter(pc.equal(groups["group_type"], "share"))["group_id"].to_pylist())
    for rank, row in _worst_commits(evidence, [RANKS[word] for word in _GROUP_TEXTS]):
        group, word = row["group_id"], words[rank]
        title, reason, next_step = _group_texts(word, row, is_share=group in shares)
        since = row["stuck_since_ms"]
        yield Finding(
            kind=f"group-{word}",
            severity=GROUP_SEVERITIES[word],
            subject=f"groups/{path_segment(group)}",
            label=group,
            title=title,
            reason=reason,
            next_step=next_step,
            **_group_step(word, next_step, row),
            since_ms=since if isinstance(since, int) else None,
            facts={
                "partition": f"{row['topic']}-{row['partition']}",
                "offset": row["committed_offset"],
                "end": row["end_offset"],
                "lag": row["lag"],
            },
        )


def _worst_commits(evidence: Evidence, ranks: list[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Per group and rank the row of ``commits`` with the most lag, the first among equals."""
    commits = evidence.snapshot.commits
    rows = np.flatnonzero(np.isin(evidence.commit_ranks, ranks))
    (group,) = codes(commits["group_id"])
    lag = ints(commits["lag"], unknown=0)
    rank = evidence.commit_ranks[rows]
    order = np.lexsort((-lag[rows], rank, group[rows]))
    _, firsts = np.unique(np.stack([group[rows], rank])[:, order], axis=1, return_index=True)
    chosen = rows[order[firsts]]
    picked = commits.take(pa.array(chosen)).to_pylist()
    yield from zip(evidence.commit_ranks[chosen].tolist(), picked, strict=True)


def find_silent(evidence: Evidence) -> Iterator[Finding]:
    """Live brokers whose figures no longer arrive: all of them as one finding; of some of them,
    and of those that do not answer, each by its name."""
    fresh, now_ms = evidence.freshness, evidence.now_ms
    if fresh.is_silent:
        yield _cluster_silent(fresh, now_ms)
        return
    if fresh.is_late:
        yield _metrics_late(fresh, now_ms)
    others = "the others answer" if fresh.is_late else "the others send theirs"
    for row in evidence.snapshot.brokers.to_pylist():
        if row["broker"] in fresh.silent:
            yield Finding(
                kind="stale",
                severity=Severity.WARNING,
                subject=f"brokers/{row['broker']}",
                label=f"broker {row['broker']}",
                title="figures are stale",
                reason=f"No figures came from it for {{age:duration}}, while {others}. Its "
                "rates and verdicts are unknown; its other figures are the last known.",
                next_step="Check the broker and its network: it may hang, or be cut off",
                operation=Operation.OUTSIDE,
                since_ms=row["sampled_ms"],
                facts={"age": max(now_ms - row["sampled_ms"], 0)},
            )


def _cluster_silent(fresh: Freshness, now_ms: int) -> Finding:
    why = (
        "No broker answers: the cluster is down, or cannot be reached from here."
        if fresh.were_asked
        else "No broker's figures arrive: the cluster is down, or the metrics job is."
    )
    return Finding(
        kind="cluster-silent",
        severity=Severity.CRITICAL,
        subject="brokers",
        label="cluster",
        title="silent for {age:duration}",
        reason=f"{why} Rates and verdicts are unknown; other figures are the last known.",
        next_step="Run `partiscope doctor`; see logs/broker-*.log and logs/metrics.log",
        operation=Operation.OUTSIDE,
        since_ms=fresh.since_ms,
        facts={"age": _age_ms(fresh, now_ms)},
    )


def _metrics_late(fresh: Freshness, now_ms: int) -> Finding:
    age_ms = _age_ms(fresh, now_ms)
    return Finding(
        kind="metrics-late",
        severity=Severity.CRITICAL if age_ms > LATE_MS_MAX else Severity.WARNING,
        subject="job",
        label="figures",
        title="late: {age:duration} old",
        reason="Brokers answer, but their figures do not arrive: the metrics job has stopped, or "
        "cannot read its topic. Rates and verdicts are unknown until it goes on.",
        next_step="Run `partiscope doctor`; see logs/metrics.log",
        operation=Operation.OUTSIDE,
        since_ms=fresh.since_ms,
        facts={"age": age_ms},
    )


def _age_ms(fresh: Freshness, now_ms: int) -> int:
    return max(now_ms - (fresh.since_ms or now_ms), 0)


def find_clocks(evidence: Evidence) -> Iterator[Finding]:
    """Clocks that differ from the time of the metrics job: of brokers, of its own host, of all.

    The job counts by a steady clock and begins by that of most brokers, so a clock that is set
    wrong later, whosever it is, differs from it.
    """
    brokers, health = evidence.snapshot.brokers, evidence.snapshot.health
    job_ms = 0 if health is None else health.clock_skew_ms or 0
    heard = brokers.filter(pc.is_valid(brokers["clock_skew_ms"])).to_pylist()
    skews = [row["clock_skew_ms"] for row in heard]
    if job_ms and _are_alike([*skews, job_ms]):
        yield replace(
            _clock_finding("all clocks", "job", job_ms, "the time before they were set"),
            next_step="Set them if they are wrong. If they are right now, restart the metrics "
            "job's host: the job takes its time from them then",
        )
        return
    if job_ms:
        yield _clock_finding("the metrics job's host", "job", job_ms, "those of most brokers")
    if len(heard) > 1 and _are_alike(skews):
        yield _clock_finding("all brokers", "brokers", skews[0], "that of the metrics job's host")
        return
    for row in heard:
        if skew := row["clock_skew_ms"]:
            broker = f"broker {row['broker']}"
            other = "those of most others" if len(heard) > 1 else "that of the metrics job"
            yield _clock_finding(broker, f"brokers/{row['broker']}", skew, other)


def _are_alike(skews_ms: Sequence[int]) -> bool:
    """Whether these clocks are off, and all by the same time."""
    return all(skews_ms) and max(skews_ms) - min(skews_ms) <= CLOCKS_ALIKE_MS


def _clock_finding(whose: str, path: str, skew_ms: int, other: str) -> Finding:
    way = "ahead" if skew_ms > 0 else "behind"
    return Finding(
        kind="clock",
        severity=Severity.WARNING,
        subject=path,
        label=whose,
        title=f"clock {{skew:duration}} {way}",
        reason=f"It is {{skew:duration}} {way} of {other}. Figures are corrected for it; "
        "timestamps of records, and retention by them, stay wrong.",
        next_step="Set the clock, and keep it by NTP or chrony",
        operation=Operation.OUTSIDE,
        facts={"skew": abs(skew_ms)},
    )


def commit_log_starts(snapshot: ClusterSnapshot) -> IntColumn:
    """For every row of ``commits`` the log start offset of its partition, but not behind the last
    record that a consumer gets; -1 where unknown."""
    start, last = (commit_logs(snapshot, it) for it in ("log_start_offset", "readable_offset"))
    return np.where(last < 0, start, np.minimum(start, last))


def commit_logs(snapshot: ClusterSnapshot, name: str) -> IntColumn:
    """For every row of ``commits`` a whole number of its partition, -1 where unknown."""
    return np.append(ints(snapshot.partitions[name]), -1)[snapshot.commit_places]


def partition_names(snapshot: ClusterSnapshot, rows: IntColumn) -> list[str]:
    """``topic-partition`` of the first few of these rows."""
    few = snapshot.partitions.select(["topic", "partition"]).take(rows[:NAMES_MAX]).to_pylist()
    return [f"{row['topic']}-{row['partition']}" for row in few]


def _partitions_path(snapshot: ClusterSnapshot, rows: IntColumn, word: str) -> str:
    if rows.size > 1:
        return f"partitions?q=status:{word}"
    row = snapshot.partitions.slice(int(rows[0]), 1).to_pylist()[0]
    return f"topics/{row['topic']}/partitions/{row['partition']}"


def _some(names: Sequence[str], count: int) -> str:
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return ", ".join(names) + more


def _held_by(evidence: Evidence, broker: int) -> int:
    mask: BoolColumn = evidence.loads.brokers == broker
    return int(evidence.loads.replicas[mask].sum())
