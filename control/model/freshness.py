"""Freshness of sources: a rate and a verdict die with the source that they rest on.

A broker tells its figures every interval. One that has missed two of them, and somewhat more, is
*unheard*, by the job's clock: a wrong clock of its own does not matter. Where the job itself has
written nothing for as long, all brokers are unheard. Whether the cluster is down then, or only the
figures are late, the brokers themselves tell: while figures are doubtful the screens ask each of
them. One that is unheard and does not answer is *silent*; where nobody asked, unheard is silent.

The last figures of an unheard broker stay as they were, with their age. What speaks of the present
does not stay: rates, and the verdicts on groups and partitions.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import BoolColumn, IntColumn, ints
from control.model.snapshot import ClusterSnapshot

SILENT_INTERVALS: Final = 2
"""A broker may miss so many of its rounds …"""
SLACK_MS: Final = 1_500
"""… and be so much later, before it counts as silent."""
JOB_SLACK_MS: Final = 4_500
"""Without anything new for two intervals and so much more, nobody is heard of: by then a reader
that waits for a broker that hangs has gone on with the others …"""
BATCH_SLACK_MS: Final = 2_000
"""… nor before two batches, as long as the last one took, and so much more."""
BATCHES_MS_MAX: Final = 30_000
"""Two batches do not count for more than this."""
FIRST_BATCH_MS: Final = 60_000
"""A job that has written its first figures without Spark is given so long to start it."""
RATES: Final = ("in_records_per_s", "in_bytes_per_s", "out_bytes_per_s")
SPEEDS: Final = (
    *("consumed_records_per_s", "lag_records_per_s", "stuck_since_ms", "time_lag_ms"),
    *("time_lag_error_ms", "time_to_clear_ms", "retention_risk_ms", "status", "history_ms"),
)
"""What is said of a commit beside the two offsets and their difference."""
NO_BROKER: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Sources that are heard of at one moment."""

    unheard: frozenset[int] = frozenset()
    """Registered brokers that should be alive, and whose figures no longer arrive."""
    silent: frozenset[int] = frozenset()
    """Those of them that do not answer either, as far as anybody asked."""
    fenced: frozenset[int] = frozenset()
    are_all_unheard: bool = False
    """No figure of the cluster is of now."""
    were_asked: bool = False
    """Somebody asked the brokers whether they answer."""
    since_ms: int | None = None
    """When the newest of all figures was read."""
    due_ms: int | None = None
    """When the metrics job will count as stopped, unless it writes something before."""

    @classmethod
    def in_gap(cls, snapshot: ClusterSnapshot, since_ms: int) -> "Freshness":
        """Freshness of a past moment without measurements: no source was heard of then."""
        live = frozenset(_Heard.of(snapshot).at_ms)
        return cls(unheard=live, silent=live, are_all_unheard=bool(live), since_ms=since_ms)

    def without(self, brokers: Collection[int]) -> "Freshness":
        """The same once these brokers are fenced."""
        gone = frozenset(brokers)
        return replace(
            self,
            unheard=self.unheard - gone,
            silent=self.silent - gone,
            fenced=self.fenced | gone,
        )

    @property
    def lost(self) -> frozenset[int]:
        """Brokers from which nothing comes."""
        return self.silent | self.fenced

    @property
    def down(self) -> frozenset[int]:
        """Brokers that do not run while others do: nothing is foretold of them, and none is to be
        balanced."""
        return self.fenced if self.is_silent else self.lost

    @property
    def is_silent(self) -> bool:
        """The cluster as a whole is not heard of: none of its brokers even answers."""
        return self.are_all_unheard and self.silent == self.unheard

    @property
    def is_late(self) -> bool:
        """Brokers answer, and yet no figure of theirs arrives."""
        return self.are_all_unheard and not self.is_silent


@dataclass(frozen=True, slots=True)
class _Heard:
    """When each broker that should be alive was heard of last, and how often it tells."""

    at_ms: Mapping[int, int]
    interval_ms: Mapping[int, int]

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> "_Heard":
        names = ["broker", "host", "is_fenced", "interval_ms", "sampled_ms", "heard_ms"]
        rows = snapshot.brokers.select(names).to_pylist()
        return cls(
            {
                row["broker"]: row["heard_ms"] or row["sampled_ms"]
                for row in rows
                if row["host"] and not row["is_fenced"] and row["sampled_ms"] is not None
            },
            {row["broker"]: row["interval_ms"] or 1_000 for row in rows},
        )

    def missing(self, at_ms: int, slack_ms: int) -> frozenset[int]:
        """Brokers without news for two intervals and the slack at this time."""
        return frozenset(
            broker
            for broker, heard_ms in self.at_ms.items()
            if at_ms - heard_ms > SILENT_INTERVALS * self.interval_ms[broker] + slack_ms
        )


def doubtful_brokers(snapshot: ClusterSnapshot, *, now_ms: int) -> Mapping[int, tuple[str, int]]:
    """Host and port of every live broker whose figures are older than two intervals (or batches):
    whether they answer is worth asking. Of all live brokers once the job counts as stopped."""
    heard, health = _Heard.of(snapshot), snapshot.health
    batches_ms = 0 if health is None else SILENT_INTERVALS * health.batch_ms
    due_ms = _job_due_ms(snapshot, heard)
    is_stopped = due_ms is not None and now_ms >= due_ms
    doubtful = heard.at_ms.keys() if is_stopped else heard.missing(now_ms, batches_ms)
    if not doubtful:
        return {}
    rows = snapshot.brokers.select(["broker", "host", "port"]).to_pylist()
    return {
        row["broker"]: (row["host"], row["port"])
        for row in rows
        if row["broker"] in doubtful and row["host"] and row["port"]
    }


def freshness(
    snapshot: ClusterSnapshot, *, now_ms: int, answering: frozenset[int] | None = None
) -> Freshness:
    """Sources that are heard of now. ``answering``: the brokers that answer; None: nobody asked
    them."""
    heard = _Heard.of(snapshot)
    due_ms = _job_due_ms(snapshot, heard)
    everyone = frozenset(heard.at_ms)
    if due_ms is not None and now_ms >= due_ms:
        unheard = everyone
        silent = unheard if answering is None else unheard - answering
    else:
        silent = unheard = heard.missing(_batch_began_ms(snapshot, heard), SLACK_MS)
        if answering is not None:
            silent = unheard = unheard | (heard.missing(now_ms, SLACK_MS) - answering)
    return Freshness(
        unheard=unheard,
        silent=silent,
        fenced=frozenset(
            snapshot.brokers.filter(snapshot.brokers["is_fenced"])["broker"].to_pylist()
        ),
        are_all_unheard=bool(everyone) and unheard == everyone,
        were_asked=answering is not None,
        since_ms=snapshot.sampled_ms,
        due_ms=due_ms,
    )


def _batch_began_ms(snapshot: ClusterSnapshot, heard: _Heard) -> int:
    """When the newest batch of the job took in what was there."""
    newest = max(heard.at_ms.values(), default=0)
    health = snapshot.health
    return newest if health is None else max(newest, health.written_ms - health.batch_ms)


def _job_due_ms(snapshot: ClusterSnapshot, heard: _Heard) -> int | None:
    health = snapshot.health
    interval_ms = max(heard.interval_ms.values(), default=1_000)
    if health is not None:
        batch_ms = max(interval_ms, health.batch_ms)
        batches_ms = min(SILENT_INTERVALS * batch_ms, max(BATCHES_MS_MAX, interval_ms))
        newest_ms = health.written_ms - max(health.delay_ms or 0, 0)
        return max(
            newest_ms + SILENT_INTERVALS * interval_ms + JOB_SLACK_MS,
            health.written_ms + batches_ms + BATCH_SLACK_MS,
        )
    newest = max(heard.at_ms.values(), default=None)
    return None if newest is None else newest + FIRST_BATCH_MS


def without_dead_figures(
    snapshot: ClusterSnapshot, fresh: Freshness
) -> tuple[ClusterSnapshot, pa.Array]:
    """The snapshot without what rests on a source that is lost, and why each row of ``commits``
    has no verdict (null: nothing stands against one)."""
    leader = ints(snapshot.partitions["leader"])
    reasons = _reasons(snapshot, fresh)
    is_dead = pc.is_valid(reasons).to_numpy(zero_copy_only=False)
    lives = replace(
        snapshot,
        partitions=_blanked(snapshot.partitions, RATES, _among(leader, fresh.unheard)),
        commits=_blanked(snapshot.commits, SPEEDS, is_dead),
    )
    return lives, reasons


def _reasons(snapshot: ClusterSnapshot, fresh: Freshness) -> pa.Array:
    commits = snapshot.commits
    words = ["all brokers are silent", "its partition is offline", "all figures are late"]
    place = snapshot.commit_places
    leader = np.append(ints(snapshot.partitions["leader"]), NO_BROKER)[place]
    coordinator = ints(commits["source"])
    reason = np.full(commits.num_rows, -1, np.int64)
    for broker in sorted(fresh.unheard | fresh.fenced):
        words += [
            f"its coordinator, broker {broker}, is silent",
            f"its leader, broker {broker}, is silent",
        ]
        reason[coordinator == broker] = len(words) - 2
        reason[leader == broker] = len(words) - 1
    reason[(place >= 0) & (leader == NO_BROKER)] = words.index("its partition is offline")
    if fresh.are_all_unheard:
        reason[:] = words.index("all figures are late") if fresh.is_late else 0
    return pa.array(words, pa.string()).take(pa.array(reason, mask=reason < 0))


def leaders_silent(snapshot: ClusterSnapshot, fresh: Freshness) -> BoolColumn:
    """Whether each partition's leader is silent, so that its figures may be over."""
    if fresh.are_all_unheard:
        return np.ones(snapshot.partitions.num_rows, np.bool_)
    return _among(ints(snapshot.partitions["leader"]), fresh.unheard)


def _among(brokers: IntColumn, wanted: frozenset[int]) -> BoolColumn:
    found: BoolColumn = np.isin(brokers, sorted(wanted))
    return found


def _blanked(table: pa.Table, names: tuple[str, ...], mask: BoolColumn) -> pa.Table:
    """The table with null in these columns where the mask is set."""
    if not mask.any():
        return table
    for name in names:
        field = table.schema.field(name)
        nothing = pa.scalar(None, field.type)
        values = pc.if_else(pa.array(mask), nothing, table[name])
        table = table.set_column(table.schema.get_field_index(name), field, values)
    return table
