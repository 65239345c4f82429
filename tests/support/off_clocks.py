"""Clocks that are off, as data: whose, by how much, for how long; and a job that lives through it.

A cluster of three brokers is told each second. Broker 1 leads a partition, broker 2 coordinates a
group that reads it, each broker tells its disk. After ``RIGHT`` rounds clocks are off, for one
round, for ``WHILE`` of them, or for good; then they are right again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from broker.metrics_schema import BrokerSample, CommitSample, GroupSample, ReplicaSample, Row
from spark_metrics.fold.bucket import Folded
from spark_metrics.state.rounds import SourceKey
from tests.support.folded_rounds import CLUSTER, FoldedRounds

T0_MS: Final = 1_800_000_000_000
BROKERS: Final = (1, 2, 3)
RATE: Final = 60
BEHIND: Final = 30
"""Records that the group is behind."""
DISK: Final = 1_000_000
RIGHT: Final = 9
WHILE: Final = 12
SECONDS: Final = RIGHT + 2 * WHILE
BATCH_MS: Final = 300
"""From a round's begin to the batch that takes it in."""
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS

WHOSE: Final = {"job": (), "leader": (1,), "coordinator": (2,), "all brokers": BROKERS}
"""Which brokers' clocks are off; of the job it is the wall clock of its host."""
BY_MS: Final = (500, 1_900, 3_000, 2 * HOUR_MS, 8 * DAY_MS, 400 * DAY_MS)
ROUNDS: Final = (1, WHILE, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffClock:
    """One line of the table."""

    whose: str
    by_ms: int
    rounds: int | None
    """For how long; None: for good."""

    def __str__(self) -> str:
        length = "good" if self.rounds is None else f"{self.rounds} rounds"
        return f"{self.whose} {self.by_ms / 1_000:+g} s for {length}"

    def off_ms(self, second: int) -> int:
        """How far the clock is off in this second."""
        since = second - RIGHT
        is_off = since >= 0 and (self.rounds is None or since < self.rounds)
        return self.by_ms if is_off else 0

    @property
    def is_both(self) -> bool:
        """Whether the job's host is off as its brokers are: they share a machine."""
        return self.whose == "one machine"


TABLE: Final = [
    OffClock(whose=whose, by_ms=sign * by_ms, rounds=rounds)
    for whose in (*WHOSE, "one machine")
    for by_ms in BY_MS
    for sign in (1, -1)
    for rounds in ROUNDS
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """What is known after a batch."""

    second: int
    at_ms: int
    """True time."""
    watermark_ms: int
    disks: dict[int, int]
    """What each broker told of its disk, as seconds ago."""
    complete_ms: dict[int, int]
    """Begin of each broker's newest complete round, by the job's time."""
    skews_ms: dict[int, int]
    job_skew_ms: int
    end: int | None = None
    """Of the partition's log, as it is told; None: nothing was folded."""
    committed: int | None = None
    points_ms: tuple[int, ...] = ()
    """Times of new points of history."""


def live_through(case: OffClock, *, folds: bool, seconds: int = SECONDS) -> Iterator[Second]:
    """Tell each second, with clocks that are off; ``folds``: with the figures."""
    rounds = FoldedRounds()
    for second in range(seconds):
        at_ms, off_ms = T0_MS + 1_000 * second, case.off_ms(second)
        off_brokers = BROKERS if case.is_both else WHOSE[case.whose]
        for broker in BROKERS:
            told_ms = at_ms + (off_ms if broker in off_brokers else 0)
            rounds.round(broker, told_ms, *_rows(broker, told_ms, second), sent_ms=told_ms + 20)
        is_jobs = case.is_both or not off_brokers
        wall_off_ms = off_ms if is_jobs else 0
        if folds:
            folded = rounds.batch(at_ms + BATCH_MS, wall_off_ms=wall_off_ms)
            yield replace(_second(rounds, second, at_ms), **_figures(folded))
        else:
            rounds.judged(at_ms + BATCH_MS, wall_off_ms=wall_off_ms)
            yield _second(rounds, second, at_ms)


def _rows(broker: int, at_ms: int, second: int) -> list[Row]:
    end = 1_000 + RATE * second
    rows: list[Row] = [
        BrokerSample(
            id=it,
            host="h",
            port=9_092,
            fenced=False,
            read_ms=at_ms,
            disk_total_bytes=2 * DISK if it == broker else None,
            disk_usable_bytes=DISK - second if it == broker else None,
        )
        for it in BROKERS
    ]
    if broker == 1:
        rows.append(
            ReplicaSample(
                topic="t", partition=0, leader=1, leader_epoch=1, replicas=(1,), isr=(1,),
                log_start_offset=0, high_watermark=end, log_end_offset=end, size_bytes=end,
                segments=1, read_ms=at_ms,
            )
        )  # fmt: skip
    if broker == 2:
        rows.append(GroupSample(group_id="g", state="Stable", members=1, read_ms=at_ms))
        rows.append(
            CommitSample(
                group_id="g",
                topic="t",
                partition=0,
                committed_offset=end - BEHIND,
                read_ms=at_ms,
            )
        )
    return rows


def _figures(folded: Folded) -> dict[str, Any]:
    (partition,) = folded.state.partitions.to_pylist()
    commits = folded.state.commits.to_pylist()
    points = [*folded.points.values()]
    return {
        "end": partition["high_watermark"],
        "committed": commits[0]["committed_offset"] if commits else None,
        "points_ms": tuple(at_ms for it in points for at_ms in it["at_ms"].to_pylist()),
    }


def _second(rounds: FoldedRounds, second: int, at_ms: int) -> Second:
    memory = rounds.memory
    assert memory.clock is not None
    return Second(
        second=second,
        at_ms=at_ms,
        watermark_ms=memory.clock.watermark_ms,
        disks={
            key.broker: second - (DISK - (row.disk_usable_bytes or 0))
            for key, row in memory.registry.items()
        },
        complete_ms={key.broker: it.complete_ms for key, it in memory.sources.items()},
        skews_ms={it: memory.clocks[SourceKey(CLUSTER, it)].skew_ms for it in BROKERS},
        job_skew_ms=memory.clock.skew_ms,
    )
