"""Is the metrics job in time, and has it read everything? Findings, and when they are due."""

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow.compute as pc

from control.model.finding import Finding, Operation
from control.model.snapshot import ClusterSnapshot, JobHealth
from control.model.status import Severity

STALE_INTERVALS: Final = 3
"""Figures older than this many sampling intervals are stale (and red on the screens)."""
STALE_MS_MIN: Final = 10_000
SLOW_BATCH_MS_MIN: Final = 3_000
"""A batch of the metrics job that takes less is never called slow: one second of figures more
or less is nobody's trouble, and machines breathe."""
CATCH_UP_RATE_MIN: Final = 1.05
"""A job that takes samples in at a lower rate than this, of how they come, does not catch up."""
_CATCHES_UP: Final = (
    " It takes them in {rate} times as fast as they come: about {left:duration} until it has "
    "caught up."
)


def find_job_delay(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """A metrics job that takes longer over a batch than samples take to come, or is behind."""
    health = snapshot.health
    if health is None:
        return
    interval_ms = sampling_interval_ms(snapshot)
    if is_behind(health, interval_ms):
        left_ms, rate = catch_up_ms(health, interval_ms), health.catch_up_rate or 0.0
        yield Finding(
            kind="job-behind",
            severity=Severity.WARNING,
            subject="job",
            label="metrics job",
            title="is behind by {delay:duration}",
            reason="Samples wait so long until they are in the store; every figure shown is late."
            + (_CATCHES_UP if left_ms is not None else ""),
            next_step="See its batch time; give it more cores, or sample less often"
            if left_ms is None
            else "Wait until it has caught up: nothing is lost. More cores make it faster",
            facts={
                "delay": health.delay_ms or 0,
                "left": left_ms,
                "rate": f"{rate:.1f}" if rate < 10 else f"{rate:,.0f}",
            },
        )
    if health.batch_ms > slow_after_ms(interval_ms):
        yield Finding(
            kind="job-slow",
            severity=Severity.NOTICE,
            subject="job",
            label="metrics job",
            title="a batch takes {batch:duration}",
            reason="Brokers send samples every {interval:duration}, faster than the job "
            "takes them in.",
            next_step="Give it more cores (--master local[N]), or sample less often",
            facts={"batch": health.batch_ms, "interval": interval_ms},
        )


def is_behind(health: JobHealth, interval_ms: int) -> bool:
    """Whether figures are stale by the time they are in the store."""
    return (health.delay_ms or 0) > behind_after_ms(interval_ms)


def catch_up_ms(health: JobHealth, interval_ms: int) -> float | None:
    """Estimated time until the job has caught up; None: it is in time, or does not catch up."""
    rate = health.catch_up_rate
    if rate is None or rate < CATCH_UP_RATE_MIN or not is_behind(health, interval_ms):
        return None
    return (health.delay_ms or 0) / (rate - 1)


def find_damaged_history(files: Mapping[str, str]) -> Iterator[Finding]:
    """Files of history that are spoilt or gone, by path with the reason: charts lack what was
    there."""
    if not files:
        return
    path, why = min(files.items())
    yield Finding(
        kind="history-damaged",
        severity=Severity.WARNING,
        subject="job",
        label="history",
        title="{count:plural:file} cannot be read",
        reason="Charts lack what was in {path}: {why}. They show all other figures",
        next_step="Put the file back from a backup of the store, or leave it: the metrics job sets "
        "it aside when it merges history",
        operation=Operation.OUTSIDE,
        facts={"count": len(files), "path": path, "why": why},
    )


def find_job_errors(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Findings about records that the metrics job could not read, or came too late for."""
    health = snapshot.health
    if health is None:
        return
    if health.bad_records_total:
        yield Finding(
            kind="bad-records",
            severity=Severity.NOTICE,
            subject="job",
            label="metrics job",
            title="{total:plural:unreadable sample} so far",
            reason="{now:count} in its newest batch; the job counted them and set them "
            "aside.{rows}",
            next_step="See in store/bad what was sent",
            facts={
                "total": health.bad_records_total,
                "now": health.bad_records,
                "rows": f" Left out: {'; '.join(health.bad_rows)}." if health.bad_rows else "",
            },
        )
    if health.lost_records_total:
        yield Finding(
            kind="lost-records",
            severity=Severity.NOTICE,
            subject="job",
            label="metrics job",
            title="{total:plural:lost sample} so far",
            reason="Retention deleted them from the metrics topic before the job read them: "
            "history has gaps there.",
            next_step="Give the metrics topic a longer retention, or the job more time",
            facts={"total": health.lost_records_total},
        )


def sampling_interval_ms(snapshot: ClusterSnapshot) -> int:
    """How often the slowest broker samples itself; 1 s until one has told."""
    return int(pc.max(snapshot.brokers["interval_ms"]).as_py() or 1_000)


def slow_after_ms(interval_ms: int) -> int:
    """Duration from which a batch of the metrics job is too long for this interval."""
    return max(SLOW_BATCH_MS_MIN, interval_ms)


def behind_after_ms(interval_ms: int) -> int:
    """Delay from which the metrics job counts as behind: what it shows is stale by then."""
    return stale_after_ms(interval_ms)


def stale_after_ms(interval_ms: int | None) -> int:
    """Age from which figures of a source with this interval count as stale."""
    return max(STALE_MS_MIN, STALE_INTERVALS * (interval_ms or 0))
