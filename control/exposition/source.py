"""Tables of one cluster for exposition: chosen, bounded, and without what is too old.

A figure outlives its broker on screens, with its age beside it. A series has no age: whatever
rests on a broker that is not heard of is left out here, and so are all figures once they are
stale as a whole.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.metrics_schema import LogDirSample
from control.exposition.limits import Limits
from control.model.columns import BoolColumn, exploded, ints, list_lengths
from control.model.disk_rules import directories_of
from control.model.finding import each_of
from control.model.status import (
    BROKER_SEVERITIES,
    GROUP_SEVERITIES,
    PARTITION_SEVERITIES,
    UNJUDGED,
)
from control.move.state import OperationState, Phase
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables import arrow
from spark_metrics.window.totals import aggregated

FINDINGS_MAX: Final = 500
REASSIGNMENTS_MAX: Final = 50
VERDICTS: Final = tuple(word for word in GROUP_SEVERITIES if word not in UNJUDGED)
NO_VERDICT: Final = "none"
_STOPPED: Final = ("fenced", "silent")


@dataclass(frozen=True, kw_only=True)
class ClusterSource:
    """One cluster at one moment. Tables are made when first asked for, once."""

    name: str
    """As the label ``cluster`` has it."""
    snapshot: OperatorSnapshot
    limits: Limits
    is_current: bool
    """False: its figures are stale as a whole, and none is exposed."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Rows without series, by what they are; ``bound`` adds to it."""

    @cached_property
    def unheard(self) -> Sequence[int]:
        """Brokers whose last figures are no longer those of now."""
        fresh = self.snapshot.evidence.freshness
        return sorted(fresh.unheard | fresh.fenced)

    @cached_property
    def whole(self) -> pa.Table:
        """One row: the cluster."""
        evidence, snapshot = self.snapshot.evidence, self.snapshot
        brokers = snapshot.cluster.brokers
        live = brokers.num_rows - int(pc.sum(brokers["is_fenced"]).as_py() or 0)
        watch, is_current = snapshot.watch, self.is_current
        is_reporting = watch is not None and watch.unheard is None
        row = {
            "is_stale": not is_current,
            "sampled_ms": snapshot.cluster.sampled_ms,
            "brokers": live if is_current else None,
            "topics": len(snapshot.cluster.topics) if is_current else None,
            "partitions": evidence.snapshot.partitions.num_rows if is_current else None,
            "is_partial": watch.is_partial if watch and is_reporting else None,
            "missing_rights": len(watch.missing_rights) if watch and is_reporting else None,
        }
        return _table([row], _WHOLE)

    @cached_property
    def partition_statuses(self) -> pa.Table:
        """Every word for the state of a partition, and how many partitions it applies to."""
        flags = self.snapshot.evidence.statuses.flags if self.is_current else {}
        counts = ({"status": word, "count": int(mask.sum())} for word, mask in flags.items())
        return _table(counts, _counts("status"))

    @cached_property
    def verdicts(self) -> pa.Table:
        """Every verdict on groups, and how many groups have it."""
        words = self._current(self.snapshot.group_table)["verdict"]
        told = Counter(word or NO_VERDICT for word in words.to_pylist())
        known = (*VERDICTS, NO_VERDICT) if self.is_current else ()
        counts = ({"verdict": word, "count": told[word]} for word in known)
        return _table(counts, _counts("verdict"))

    @cached_property
    def findings(self) -> pa.Table:
        """All findings as the page shows them, their consequences under them left out."""
        rows = {
            it.id: {
                "id": it.kind,
                "subject": it.kind if it.kind in PARTITION_SEVERITIES else it.label,
                "severity": it.severity.name.lower(),
                "since_ms": it.since_ms,
            }
            for it in each_of(self.snapshot.findings)
        }
        return self.bound("findings", _table(rows.values(), _FINDINGS), FINDINGS_MAX)

    @cached_property
    def severities(self) -> pa.Table:
        """How many findings of each severity there are."""
        told = Counter(it.severity.name.lower() for it in self.snapshot.findings)
        words = ("notice", "warning", "critical")
        counts = ({"severity": word, "count": told[word]} for word in words)
        return _table(counts, _counts("severity"))

    @cached_property
    def brokers(self) -> pa.Table:
        """All brokers; one that is not heard of has address and status alone."""
        table = self._current(self.snapshot.broker_table)
        lost = np.isin(ints(table["broker"]), self.unheard)
        figures = ("size_bytes", "in_bytes_per_s", "out_bytes_per_s", "disk_percent", "full_ms",
                   "skew_percent")  # fmt: skip
        size = pc.if_else(table["is_estimated"], None, table["size_bytes"])
        host, port = table["host"], pc.cast(table["port"], pa.string())
        table = arrow.with_columns(
            table,
            {
                "size_bytes": size,
                "address": pc.binary_join_element_wise(pc.fill_null(host, ""), port, ":"),
                "is_up": pc.invert(pc.is_in(table["status"], pa.array(_STOPPED))),
            },
        )
        return _blanked(table, figures, lost)

    @cached_property
    def broker_statuses(self) -> pa.Table:
        """A state set: each broker with each word for its status."""
        return _state_set(self.brokers.select(["broker", "status"]), tuple(BROKER_SEVERITIES))

    @cached_property
    def log_dirs(self) -> pa.Table:
        """The log directories of brokers that are heard of."""
        rows = self._current(self.snapshot.cluster.brokers).to_pylist()
        heard = [row for row in rows if row["broker"] not in self.unheard]
        each = ((row["broker"], it) for row in heard for it in directories_of(row))
        return _table((_log_dir_row(broker, it) for broker, it in each), _LOG_DIRS)

    @cached_property
    def partitions(self) -> pa.Table:
        """Partitions of the chosen topics. What a leader tells is null where it is not heard of."""
        table = self._chosen(self._current(self.snapshot.partition_table))
        table = self.bound("partitions", table, self.limits.partitions_max, "rank", "-all_bytes")
        leader = ints(table["leader"])
        is_dead = np.isin(leader, self.unheard)
        replicas, isr = list_lengths(table["replicas"]), list_lengths(table["isr"])
        lacks = pc.match_substring(table["statuses"], " under-replicated ")
        lacks = np.asarray(lacks) | ((leader < 0) & (isr < replicas))
        table = arrow.with_columns(
            table,
            {
                "leader": pa.array(leader, mask=leader < 0),
                "is_preferred": pc.if_else(pa.array(leader < 0), None, table["is_preferred"]),
                "is_short": pa.array(lacks),
            },
        )
        table = _blanked(table, ("isr_count", "is_short"), is_dead)
        return _blanked(table, _OF_LEADER, is_dead | (leader < 0))

    @cached_property
    def topics(self) -> pa.Table:
        """Chosen topics; bytes are null where a replica lies on a broker that is not heard of."""
        table = self._chosen(self._current(self.snapshot.topic_table))
        table = self.bound("topics", table, self.limits.topics_max, "rank_min", "-all_bytes")
        return _blanked(table, ("all_bytes",), self._touches_unheard(table["topic"]))

    def _touches_unheard(self, topics: Any) -> BoolColumn:
        partitions = self.snapshot.evidence.snapshot.partitions
        row, broker = exploded(partitions["replicas"])
        touched = np.unique(row[np.isin(broker, self.unheard)])
        names = pc.unique(partitions["topic"].take(pa.array(touched)))
        mask: BoolColumn = pc.is_in(topics, names).to_numpy()
        return mask

    @cached_property
    def _all_commits(self) -> pa.Table:
        """Commits of chosen groups in chosen topics. A commit is known from its coordinator, its
        lag from its leader as well; an upper bound of a share group's lag is none."""
        table = self._chosen(self._chosen(self._current(self.snapshot.commit_table)), "group_id")
        leader = ints(table["leader"])
        is_dead = np.isin(ints(table["source"]), self.unheard)
        is_open = is_dead | (leader < 0) | np.isin(leader, self.unheard)
        is_bound = np.asarray(pc.fill_null(table["is_bound"], False))
        has_commit = pc.cast(pc.is_valid(table["committed_offset"]), pa.int64())
        table = _blanked(table, ("committed_offset",), is_dead)
        table = _blanked(table, ("lag",), is_open | is_bound | ~np.asarray(table["has_lag"]))
        loss_ms = _loss_ms(table, "retention_risk_ms", "waiting")
        return arrow.with_columns(table, {"loss_ms": loss_ms, "has_commit": has_commit})

    @cached_property
    def commits(self) -> pa.Table:
        """The partitions of groups with series of their own."""
        rows_max = self.limits.group_partitions_max
        return self.bound("group_partitions", self._all_commits, rows_max, "rank", "-lag")

    @cached_property
    def group_topics(self) -> pa.Table:
        """One row per group and topic, of the groups with series; a sum of some parts is null."""
        table = self._all_commits.filter(
            pc.is_in(self._all_commits["group_id"], self.groups["group_id"].combine_chunks())
        )
        sums, rows_max = _sums(table, ["group_id", "topic"]), self.limits.group_partitions_max
        return self.bound("group_topics", sums, rows_max, "-lag_known")

    @cached_property
    def groups(self) -> pa.Table:
        """Chosen groups. Of one whose coordinator is not heard of, members are null."""
        table = self._chosen(self._current(self.snapshot.group_table), "group_id")
        table = self.bound("groups", table, self.limits.groups_max, "rank", "-lag_known")
        sums = _sums(self._all_commits, ["group_id"])
        kept = ["group_id", "members", "verdict", "lag_ms", "trend_per_s", "consumed_per_s",
                "clears_ms", "retention_risk_ms_min", "waiting_sum"]  # fmt: skip
        table = table.select(kept).join(sums, "group_id").combine_chunks()
        loss_ms = _loss_ms(table, "retention_risk_ms_min", "waiting_sum")
        is_open = pc.fill_null(pc.greater(table["lag_unknown"], 0), False)
        clears_ms = pc.if_else(is_open, None, table["clears_ms"])
        table = arrow.with_columns(table, {"loss_ms": loss_ms, "clears_ms": clears_ms})
        silent = self.snapshot.cluster.commits
        silent = silent.filter(pa.array(np.isin(ints(silent["source"]), self.unheard)))
        is_dead = pc.is_in(table["group_id"], pc.unique(silent["group_id"])).to_numpy()
        return _blanked(table, ("members",), is_dead)

    @cached_property
    def group_verdicts(self) -> pa.Table:
        """A state set: each group that has a verdict with each verdict."""
        judged = self.groups.filter(pc.is_valid(self.groups["verdict"]))
        return _state_set(judged.select(["group_id", "verdict"]), VERDICTS, "verdict")

    @cached_property
    def _running(self) -> Sequence[OperationState]:
        return [it for it in self.snapshot.moves if not it.is_finished][:REASSIGNMENTS_MAX]

    @cached_property
    def reassignments(self) -> pa.Table:
        """Running reassignments, as the bus tells them."""
        return _table(map(_move_row, self._running), _MOVES)

    @cached_property
    def reassignment_phases(self) -> pa.Table:
        """A state set: each running reassignment with each phase."""
        told = ({"id": it.operation_id, "phase": str(it.phase)} for it in self._running)
        table = _table(told, {"id": pa.string(), "phase": pa.string()})
        return _state_set(table, tuple(map(str, Phase)), "phase")

    def bound(self, of: str, table: pa.Table, rows_max: int, *order: str) -> pa.Table:
        """The first rows in this order (``-``: the largest first), and how many are left out."""
        self.left_out[of] += max(table.num_rows - rows_max, 0)
        if table.num_rows <= rows_max:
            return table
        if not order:
            return table.slice(0, rows_max)
        keys = [(it.lstrip("-"), "descending" if it[0] == "-" else "ascending") for it in order]
        chosen = pc.sort_indices(table, sort_keys=keys)[:rows_max]
        return table.take(chosen).combine_chunks()

    def _current(self, table: pa.Table) -> pa.Table:
        return table if self.is_current else table.slice(0, 0)

    def _chosen(self, table: pa.Table, name: str = "topic") -> pa.Table:
        """Rows whose topic, or whose group, the limits choose."""
        of_topics = name == "topic"
        wanted = self.limits.topics if of_topics else self.limits.groups
        unwanted = self.limits.exclude_topics if of_topics else self.limits.exclude_groups
        if "*" in wanted and not unwanted:
            return table
        names = pc.unique(table[name]).to_pylist()
        kept = [it for it in names if _fits(it, wanted) and not _fits(it, unwanted)]
        return table.filter(pc.is_in(table[name], pa.array(kept, pa.string())))


_TEXT: Final = pa.string()
_WHOLE: Final = {
    **{"is_stale": pa.bool_(), "is_partial": pa.bool_()},
    **dict.fromkeys(("sampled_ms", "brokers", "topics", "partitions"), pa.int64()),
    "missing_rights": pa.int64(),
}
_FINDINGS: Final = {
    **dict.fromkeys(("id", "subject", "severity"), _TEXT),
    "since_ms": pa.int64(),
}
_LOG_DIRS: Final = {
    **{"path": _TEXT, "is_failed": pa.bool_(), "is_cordoned": pa.bool_()},
    **dict.fromkeys(("broker", "total_bytes", "usable_bytes"), pa.int64()),
}
_MOVES: Final = {
    **{"id": _TEXT, "rate": pa.float64(), "eta_s": pa.float64()},
    **dict.fromkeys(("bytes_total", "bytes_done", "updated_ms", "throttle"), pa.int64()),
    **dict.fromkeys(("partitions_total", "partitions_done", "stalled"), pa.int64()),
}
_OF_LEADER: Final = (
    *("log_start_offset", "high_watermark", "size_bytes", "isr_shrinks", "isr_expands"),
    *("in_records_per_s", "in_bytes_per_s", "out_bytes_per_s"),
)
LOSS_MS_MAX: Final = 400 * 86_400_000
"""The job's word for "later, or never at this pace"."""


def _loss_ms(table: pa.Table, name: str, waiting: str) -> Any:
    """Time to data loss: infinite beyond what the job foretells, null where nothing waits."""
    told = pc.cast(table[name], pa.float64())
    told = pc.if_else(pc.greater_equal(told, LOSS_MS_MAX), float("inf"), told)
    return pc.if_else(pc.equal(table[waiting], 0), None, told)


def _sums(commits: pa.Table, key: Sequence[str]) -> pa.Table:
    """Lag and committed offsets summed; ``lag_known`` is the sum of the parts that are known."""
    has_lag = {"has_lag": pc.cast(commits["has_lag"], pa.int64())}
    of_each = [(name, how) for name in ("lag", "committed_offset") for how in ("sum", "count")]
    wanted = [*of_each, ("has_lag", "sum"), ("has_commit", "sum")]
    found = aggregated(arrow.with_columns(commits, has_lag), list(key), wanted)
    lacking = pc.subtract(found["has_lag_sum"], found["lag_count"])
    is_told = pc.greater(found["lag_count"], 0)
    known = pc.if_else(is_told, found["lag_sum"], None)
    whole = pc.equal(found["committed_offset_count"], found["has_commit_sum"])
    return arrow.with_columns(
        found.select(list(key)),
        {
            "lag_known": known,
            "lag_whole": pc.if_else(pc.equal(lacking, 0), known, None),
            "lag_unknown": lacking,
            "offsets": pc.if_else(whole, found["committed_offset_sum"], None),
        },
    )


def _counts(name: str) -> Mapping[str, pa.DataType]:
    return {name: _TEXT, "count": pa.int64()}


def _log_dir_row(broker: int, directory: LogDirSample) -> dict[str, Any]:
    is_failed = directory.is_failed
    return {
        "broker": broker,
        "path": directory.path,
        "total_bytes": None if is_failed else directory.total_bytes,
        "usable_bytes": None if is_failed else directory.usable_bytes,
        "is_failed": is_failed,
        "is_cordoned": directory.is_cordoned,
    }


def _move_row(state: OperationState) -> dict[str, Any]:
    told = state.progress
    return {
        "id": state.operation_id,
        "updated_ms": state.updated_ms,
        "bytes_total": None if told is None else told.bytes_total,
        "bytes_done": None if told is None else told.bytes_done,
        "partitions_total": None if told is None else told.partitions_total,
        "partitions_done": None if told is None else told.partitions_done,
        "stalled": None if told is None else len(told.stalled) + told.stalled_more,
        "rate": None if told is None else told.rate_bytes_per_s,
        "eta_s": None if told is None else told.eta_s_high,
        "throttle": state.throttle_bytes_per_s,
    }


def _state_set(table: pa.Table, words: Sequence[str], name: str = "status") -> pa.Table:
    """Each row once for each word; ``is_set``: whether it is the row's own."""
    rows = np.repeat(np.arange(table.num_rows), len(words))
    each = pa.array(np.tile(np.array(words, dtype=object), table.num_rows), pa.string())
    table = table.take(pa.array(rows))
    is_set = pc.equal(table[name], each)
    return arrow.with_columns(table, {name: each, "is_set": is_set})


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _blanked(table: pa.Table, names: Sequence[str], mask: BoolColumn) -> pa.Table:
    """The table with null in these columns where the mask is set."""
    if not mask.any():
        return table
    is_gone = pa.array(mask)
    return arrow.with_columns(table, {it: pc.if_else(is_gone, None, table[it]) for it in names})


def _table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=pa.schema(columns))
