"""Cells of values that many tables have: figures in their units, states with their tones."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from control.model.disk_rules import DISK_CRITICAL_PERCENT, DISK_WARNING_PERCENT
from control.model.finding_rules import SKEW_PERCENT_MAX
from control.model.status import FINE, GROUP_SEVERITIES, NOT_KNOWN, PARTITION_SEVERITIES, UNJUDGED
from control.views import format as text
from control.views.tables.rows import TONE_OF, Cell, Tone

STAR: Final = "★ "
DAY_MS: Final = 86_400_000.0
ROUGH_MS: Final = 1_000.0
_YEAR_MS: Final = 365 * DAY_MS
NEVER_MS: Final = float("inf")
"""Time to clear of lag that does not shrink."""
NOTHING: Final = Cell(None, text.NONE, Tone.MUTED)
"""There is none."""
UNKNOWN: Final = Cell(None, text.NA, Tone.MUTED)


def text_cell(value: str | None, *, missing: str = text.NA) -> Cell:
    """A word as it is; ``missing`` where there is none."""
    return Cell(value, value if value else missing)


def ids_cell(ids: Sequence[int]) -> Cell:
    """Ids of brokers."""
    shown = text.ids_text(ids)
    return Cell(shown, shown)


def id_cell(value: int) -> Cell:
    """The number of a broker or partition."""
    return Cell(value, str(value))


def count_cell(value: float | None) -> Cell:
    """A whole number."""
    return Cell(value, text.count_text(value))


def bytes_cell(value: float | None, *, estimated: bool = False) -> Cell:
    """A size."""
    return Cell(value, text.bytes_text(value, estimated=estimated))


def byte_rate_cell(value: float | None) -> Cell:
    """Bytes per second."""
    return Cell(value, text.byte_rate_text(value))


def record_rate_cell(value: float | None) -> Cell:
    """Records per second."""
    return Cell(value, text.record_rate_text(value))


def percent_cell(value: float | None) -> Cell:
    """A share in percent."""
    return Cell(value, text.percent_text(value))


def duration_cell(value: float | None) -> Cell:
    """A length of time."""
    return Cell(value, text.duration_text(value))


def age_cell(age_ms: float | None) -> Cell:
    """The time since a figure was read."""
    return Cell(age_ms, text.age_text(age_ms))


def lag_cell(value: float | None, *, has_group: bool = True) -> Cell:
    """No group: there is no lag (–). A group without a figure: n/a."""
    return NOTHING if value is None and not has_group else count_cell(value)


def at_most(cell: Cell) -> Cell:
    """The figure is a bound: ``≤ 40``."""
    return replace(cell, text=f"≤ {cell.text}")


def at_least(cell: Cell) -> Cell:
    """The figure is a bound: ``≥ 40``."""
    return replace(cell, text=f"≥ {cell.text}")


def sum_cell(
    whole: float | None, known: float | None, cell: Callable[[float | None], Cell]
) -> Cell:
    """A sum in the words of ``cell``. While parts of it are unknown, what is known of it is a
    least (``≥ 40``), and its value is unknown to filters."""
    if whole is None and known is not None:
        return replace(at_least(cell(known)), value=None)
    return cell(whole)


def status_cell(word: str) -> Cell:
    """A partition's or topic's status, sorted by how bad it is."""
    tone = Tone.MUTED if word == NOT_KNOWN else TONE_OF[PARTITION_SEVERITIES[word]]
    return Cell(list(PARTITION_SEVERITIES).index(word), word, tone)


def group_status_cell(word: str) -> Cell:
    """A group's status, sorted by how bad it is; that there is no verdict looks like none."""
    tone = Tone.MUTED if word in UNJUDGED else TONE_OF[GROUP_SEVERITIES[word]]
    return Cell(list(GROUP_SEVERITIES).index(word), word, tone)


def isr_short_cell(short_ms: float | None, *, is_at_least: bool) -> Cell:
    """For how long an ISR has been short, or that it is whole (–)."""
    if short_ms is None:
        return NOTHING
    at_least = text.AT_LEAST if is_at_least else ""
    return Cell(short_ms, f"{at_least}{text.duration_text(short_ms)}", Tone.WARNING)


def leader_cell(leader: int, *, is_preferred: bool = False) -> Cell:
    """The leader's id, with a star when it is the preferred one."""
    if leader < 0:
        return Cell(leader, "none", Tone.CRITICAL)
    return Cell(leader, f"{STAR if is_preferred else ''}{leader}")


def disk_cell(used_percent: float | None) -> Cell:
    """Used share of a disk."""
    tone = Tone.PLAIN
    if used_percent is not None and used_percent >= DISK_WARNING_PERCENT:
        tone = Tone.CRITICAL if used_percent >= DISK_CRITICAL_PERCENT else Tone.WARNING
    return Cell(used_percent, text.percent_text(used_percent), tone)


def full_cell(full_ms: float | None) -> Cell:
    """``≈ 9 d`` until a disk is full."""
    if full_ms is None:
        return Cell(None, text.NA)
    return Cell(full_ms, "> 1 y") if full_ms > _YEAR_MS else soon_cell(full_ms)


def skew_cell(percent: float | None) -> Cell:
    """Distance from the mean in percent."""
    if percent is None:
        return Cell(None, text.NA)
    tone = Tone.WARNING if abs(percent) > SKEW_PERCENT_MAX else Tone.PLAIN
    return Cell(percent, text.signed_percent_text(percent), tone)


def lag_time_cell(value: float | None, error_ms: float | None = None) -> Cell:
    """Lag in time, always an estimate: ``≈ 12 m ± 30 s`` where it may be off by a second."""
    shown = text.duration_text(value, estimated=value is not None and value > 0)
    is_rough = bool(value) and error_ms is not None and error_ms >= ROUGH_MS
    return Cell(value, f"{shown} ± {text.duration_text(error_ms)}" if is_rough else shown)


def velocity_cell(value: float | None, lag: float | None) -> Cell:
    """How fast lag grows; within the dead band it is steady."""
    if value is None:
        return NOTHING if lag == 0 else UNKNOWN
    if abs(value) < 1:
        return Cell(value, "steady")
    tone = Tone.WARNING if value > 0 else Tone.FINE
    return Cell(value, text.signed_record_rate_text(value), tone)


def clears_cell(value: float | None, status: str) -> Cell:
    """When lag will be gone. A group that keeps up has nothing to clear: some lag is always
    on its way."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return Cell(0.0, "now")
    if value == NEVER_MS:
        if status == FINE or status in UNJUDGED:
            return Cell(value, text.NONE, Tone.MUTED)
        return Cell(value, "never", Tone.WARNING)
    return Cell(value, text.duration_text(value, estimated=True))


def loses_cell(value: float | None, lag: float | None) -> Cell:
    """When retention deletes what the group has not read. Where nothing waits, nothing can be
    lost (–)."""
    if lag == 0:
        return NOTHING
    if value is None:
        return UNKNOWN
    return Cell(0.0, "now", Tone.CRITICAL) if value <= 0 else full_cell(value)


def soon_cell(left_ms: float) -> Cell:
    """``≈ 9 d`` until something bad: the largest unit is enough; a warning within a day, critical
    within an hour."""
    tone = Tone.PLAIN
    if left_ms < DAY_MS:
        tone = Tone.CRITICAL if left_ms < DAY_MS / 24 else Tone.WARNING
    amount = text.duration_text(left_ms, estimated=True)
    return Cell(left_ms, " ".join(amount.split(" ")[:3]), tone)


def stuck_cell(value: float | None, status: str) -> Cell:
    """For how long it has not moved, with lag; a warning unless the status says that it may."""
    if value is None:
        return NOTHING
    return Cell(value, text.duration_text(value), Tone.PLAIN if status == FINE else Tone.WARNING)
