"""Who is heard of: a rate and a verdict die with the source that they rest on.

A broker tells its figures every interval. One that has missed two of them, and somewhat more, is
*silent*, by the job's clock: whose clock is wrong is not silent for that. Where the job itself has
written nothing for as long, nobody is heard of, be it that the cluster is down or the job.

What a silent broker said stays as it was, for it was true when it was read, and has its age. What
speaks of the present does not stay: rates, and the verdicts on groups and partitions.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import BoolColumn, IntColumn, ints, look_up, partition_keys
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
    *("time_to_clear_ms", "retention_risk_ms", "status", "history_ms"),
)
"""What is said of a commit beside the two offsets and their difference."""
NO_BROKER: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Who is heard of at one moment."""

    silent: frozenset[int] = frozenset()
    """Registered brokers that should be alive, and say nothing."""
    fenced: frozenset[int] = frozenset()
    is_silent: bool = False
    """None of the brokers that should be alive is heard of."""
    since_ms: int | None = None
    """When the newest of all figures was read."""
    due_ms: int | None = None
    """When the metrics job will count as stopped, unless it writes something before."""

    def without(self, brokers: Collection[int]) -> "Freshness":
        """The same once these brokers are fenced."""
        gone = frozenset(brokers)
        return replace(self, silent=self.silent - gone, fenced=self.fenced | gone)

    @property
    def lost(self) -> frozenset[int]:
        """Brokers from which nothing comes."""
        return self.silent | self.fenced


def freshness(snapshot: ClusterSnapshot, *, now_ms: int) -> Freshness:
    """Who is heard of now."""
    rows = snapshot.brokers.select(
        ["broker", "is_fenced", "interval_ms", "sampled_ms", "heard_ms"]
    ).to_pylist()
    heard = {
        row["broker"]: row["heard_ms"] or row["sampled_ms"]
        for row in rows
        if not row["is_fenced"] and row["sampled_ms"] is not None
    }
    interval_ms = {row["broker"]: row["interval_ms"] or 1_000 for row in rows}
    due_ms = _job_due_ms(snapshot, heard, max(interval_ms.values(), default=1_000))
    if due_ms is not None and now_ms >= due_ms:
        silent = frozenset(heard)
    else:
        began_ms = _batch_began_ms(snapshot, heard)
        silent = frozenset(
            broker
            for broker, at_ms in heard.items()
            if began_ms - at_ms > SILENT_INTERVALS * interval_ms[broker] + SLACK_MS
        )
    return Freshness(
        silent=silent,
        fenced=frozenset(row["broker"] for row in rows if row["is_fenced"]),
        is_silent=bool(heard) and silent == frozenset(heard),
        since_ms=snapshot.sampled_ms,
        due_ms=due_ms,
    )


def _batch_began_ms(snapshot: ClusterSnapshot, heard: Mapping[int, int]) -> int:
    """When the newest batch of the job took in what was there."""
    newest = max(heard.values(), default=0)
    health = snapshot.health
    return newest if health is None else max(newest, health.written_ms - health.batch_ms)


def _job_due_ms(
    snapshot: ClusterSnapshot, heard: Mapping[int, int], interval_ms: int
) -> int | None:
    health = snapshot.health
    if health is not None:
        batch_ms = max(interval_ms, health.batch_ms)
        batches_ms = min(SILENT_INTERVALS * batch_ms, max(BATCHES_MS_MAX, interval_ms))
        newest_ms = health.written_ms - max(health.delay_ms or 0, 0)
        return max(
            newest_ms + SILENT_INTERVALS * interval_ms + JOB_SLACK_MS,
            health.written_ms + batches_ms + BATCH_SLACK_MS,
        )
    newest = max(heard.values(), default=None)
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
        partitions=_blanked(snapshot.partitions, RATES, _among(leader, fresh.silent)),
        commits=_blanked(snapshot.commits, SPEEDS, is_dead),
    )
    return lives, reasons


def _reasons(snapshot: ClusterSnapshot, fresh: Freshness) -> pa.Array:
    commits = snapshot.commits
    words = ["no broker is heard of", "its partition is offline"]
    place = look_up(*partition_keys(commits, snapshot.partitions))
    leader = np.append(ints(snapshot.partitions["leader"]), NO_BROKER)[place]
    coordinator = ints(commits["source"])
    reason = np.full(commits.num_rows, -1, np.int64)
    for broker in sorted(fresh.lost):
        words += [
            f"its coordinator, broker {broker}, is not heard of",
            f"its leader, broker {broker}, is not heard of",
        ]
        reason[coordinator == broker] = len(words) - 2
        reason[leader == broker] = len(words) - 1
    reason[(place >= 0) & (leader == NO_BROKER)] = words.index("its partition is offline")
    if fresh.is_silent:
        reason[:] = 0
    return pa.array(words, pa.string()).take(pa.array(reason, mask=reason < 0))


def leaders_silent(snapshot: ClusterSnapshot, fresh: Freshness) -> BoolColumn:
    """Of every partition whether what is known of it may be over."""
    if fresh.is_silent:
        return np.ones(snapshot.partitions.num_rows, np.bool_)
    return _among(ints(snapshot.partitions["leader"]), fresh.silent)


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
