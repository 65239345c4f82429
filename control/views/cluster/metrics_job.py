"""The metrics job as it tells of itself: is it in time, what does it carry, what did it miss?"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from control.model.job_health import (
    behind_after_ms,
    catch_up_ms,
    is_behind,
    slow_after_ms,
)
from control.model.snapshot import JobHealth
from control.views import format as text
from control.views.series import Series
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.cells import count_cell, record_rate_cell
from control.views.tables.rows import Cell, Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFigure:
    """One figure of the job's health; ``name`` is its key in documents."""

    name: str
    title: str
    cell: Cell
    why: str


def job_figures(snapshot: OperatorSnapshot, now_ms: int) -> tuple[JobFigure, ...]:
    """All figures, in order; empty before the job has written anything."""
    health, interval_ms = snapshot.cluster.health, snapshot.interval_ms
    if health is None:
        return ()
    age_ms = max(now_ms - health.written_ms, 0)
    return (
        _figure("batch_ms", "batch time", _batch(health, interval_ms), "Of its newest batch"),
        _figure("interval_ms", "interval", _duration(interval_ms),
                "How often the slowest broker samples itself; a batch should take less"),
        _figure("delay_ms", "delay", _delay(health, interval_ms),
                "From the begin of the newest round of samples until it was in the store"),
        _figure("catch_up_ms", "catches up", _duration(catch_up_ms(health, interval_ms)),
                "Estimated, by how fast its last batches took samples in; n/a while it is in time"),
        _figure("records_per_s", "samples in", record_rate_cell(health.records_per_s),
                "Records of the metrics topic that it reads; each tells many partitions"),
        _figure("state_rows", "state rows", count_cell(health.state_rows),
                "Replicas and commits that it remembers"),
        _figure("bad_records_total", "unreadable", _trouble(health.bad_records_total),
                "Samples that could not be read, since the store began; put aside in bad/"),
        _figure("lost_records_total", "lost", _trouble(health.lost_records_total),
                "Samples that were gone from the topic before they were read"),
        _figure("late_rounds_total", "late rounds", count_cell(health.late_rounds_total),
                "Rounds that came after a newer one of their broker: the newer one counts"),
        _figure("age_ms", "written", _age(age_ms, interval_ms),
                "When its newest batch was in the store"),
    )  # fmt: skip


def job_document(snapshot: OperatorSnapshot, now_ms: int) -> dict[str, Any] | None:
    """The same for scripts: milliseconds, counts, records per second; null where unknown."""
    figures = job_figures(snapshot, now_ms)
    if not figures:
        return None
    return {figure.name: figure.cell.value for figure in figures}


def series_text(series: Series) -> str:
    """The newest value of a line of ``series.job_series``."""
    return _TEXTS[series.unit](series.newest)


_TEXTS: Final[Mapping[str, Callable[[float | None], str]]] = {
    "ms": text.duration_text,
    "records/s": text.record_rate_text,
    "": text.count_text,
}


def _figure(name: str, title: str, cell: Cell, why: str) -> JobFigure:
    return JobFigure(name=name, title=title, cell=cell, why=why)


def _batch(health: JobHealth, interval_ms: int) -> Cell:
    is_slow = health.batch_ms > slow_after_ms(interval_ms)
    return _duration(health.batch_ms, Tone.WARNING if is_slow else Tone.FINE)


def _delay(health: JobHealth, interval_ms: int) -> Cell:
    is_late = is_behind(health, interval_ms)
    return _duration(health.delay_ms, Tone.WARNING if is_late else Tone.PLAIN)


def _age(age_ms: int, interval_ms: int) -> Cell:
    is_late = age_ms > behind_after_ms(interval_ms)
    return Cell(age_ms, text.age_text(age_ms), Tone.CRITICAL if is_late else Tone.PLAIN)


def _duration(value: float | None, tone: Tone = Tone.PLAIN) -> Cell:
    return Cell(value, text.duration_text(value), tone)


def _trouble(value: int | None) -> Cell:
    return Cell(value, text.count_text(value), Tone.NOTICE if value else Tone.PLAIN)
