"""Rows of reassignments, running and past, for all faces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from control.views import format as text
from control.views.paths import ViewPath
from control.views.tables.column import Column
from control.views.tables.rows import Cell, Row, Tone

if TYPE_CHECKING:  # a Kafka client comes with them, and terminals start without one
    from control.operations.bus.events import MoveProgress, MovingPartition
    from control.operations.bus.state import OperationState
    from control.planner.proposal import PartitionChange


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRow(Row):
    """One reassignment."""

    move: Cell
    status: Cell
    done: Cell
    rate: Cell
    eta: Cell
    partitions: Cell
    size_bytes: Cell
    copied: Cell
    estimated: Cell
    took: Cell
    submitted: Cell
    who: Cell
    reason: Cell
    message: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingRow(Row):
    """One partition on its way."""

    name: Cell
    done: Cell
    size_bytes: Cell
    rate: Cell
    eta: Cell
    stalled: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow(Row):
    """One partition of a plan: before, after, data to copy, and what became of it."""

    name: Cell
    before: Cell
    after: Cell
    new_leader: Cell
    moved: Cell
    why: Cell
    fate: Cell


TOPICS_MAX: Final = 200
"""Characters of topics' names in a link."""

MOVE_COLUMNS: Final = (
    Column(id="move", title="move", is_number=False, rank=1),
    Column(id="status", title="status", is_number=False, rank=1),
    Column(id="done", title="done", rank=1),
    Column(id="rate", title="rate", rank=2),
    Column(id="eta", title="ends", why="An interval, not a promise", is_number=False, rank=2),
    Column(id="partitions", title="partitions", rank=3),
    Column(id="size_bytes", title="planned", why="Data to copy, as planned", rank=2),
    Column(id="copied", title="copied", why="Data copied so far", rank=3),
    Column(id="estimated", title="estimated", why="How long, as told before it began", rank=3),
    Column(id="took", title="took", rank=3),
    Column(id="submitted", title="submitted", is_number=False, rank=3),
    Column(id="who", title="who", is_number=False, rank=3, is_long=True),
    Column(id="reason", title="why", is_number=False, rank=3, is_long=True),
)
MOVING_COLUMNS: Final = (
    Column(id="name", title="partition", is_number=False, rank=1),
    Column(id="done", title="done", rank=1),
    Column(id="size_bytes", title="bytes", rank=2),
    Column(id="rate", title="rate", rank=2),
    Column(id="eta", title="ends", why="An interval, not a promise", is_number=False, rank=1),
    Column(id="stalled", title="stands still", is_number=False, rank=1),
)


def change_columns(before: str, after: str) -> tuple[Column, ...]:
    """Columns of a ChangeRow: replicas before (or now) and after."""
    return (
        Column(id="name", title="partition", is_number=False, rank=1),
        Column(id="before", title=before, why="The first leads", is_number=False, rank=1),
        Column(id="after", title=after, why="The first leads", is_number=False, rank=1),
        Column(id="new_leader", title="new leader?", is_number=False, rank=2),
        Column(id="moved", title="data to copy", rank=2),
    )


CHANGE_COLUMNS: Final = change_columns("before", "after")
FATE_COLUMNS: Final = (
    *CHANGE_COLUMNS,
    Column(id="fate", title="ended", why="Result of this partition", is_number=False, rank=1),
)
MOVED: Final = "moved"
NO_FATE: Final = Cell(None, text.NONE)

SOON_S: Final = 600.0
_TONES: Final = {
    "running": Tone.NOTICE,
    "waiting": Tone.MUTED,
    "submitted": Tone.MUTED,
    "pausing": Tone.WARNING,
    "paused": Tone.WARNING,
    "cancelling": Tone.WARNING,
    "done": Tone.FINE,
    "cancelled": Tone.WARNING,
    "failed": Tone.CRITICAL,
    "refused": Tone.CRITICAL,
}


def move_row(move: OperationState, *, now_ms: int) -> MoveRow:
    """A reassignment as both screens list it."""
    word = str(move.outcome or move.phase)
    progress = move.progress
    total = move.planned_bytes
    running = move.outcome is None and progress is not None
    return MoveRow(
        key=move.operation_id,
        path=f"moves/{move.operation_id}",
        move=Cell(move.operation_id, move.operation_id),
        status=Cell(word, word, _TONES.get(word, Tone.PLAIN)),
        done=done_cell(progress),
        rate=Cell(progress.rate_bytes_per_s, text.byte_rate_text(progress.rate_bytes_per_s))
        if running and progress is not None
        else Cell(None, text.NONE),
        eta=eta_cell(progress, told_ms=move.updated_ms, now_ms=now_ms)
        if running
        else Cell(None, text.NONE),
        partitions=Cell(move.partitions_count, text.count_text(move.partitions_count)),
        size_bytes=Cell(total, text.bytes_text(total)),
        copied=_copied_cell(progress),
        estimated=estimated_cell(move.expected_s),
        took=took_cell(move.took_s),
        submitted=Cell(move.submitted_ms, text.clock_text(move.submitted_ms, now_ms=now_ms)),
        who=Cell(move.who, move.who or text.NONE),
        reason=Cell(move.reason, move.reason or text.NONE),
        message=Cell(move.message, move.message or text.NONE),
    )


def moving_rows(move: OperationState, *, now_ms: int) -> list[MovingRow]:
    """The partitions on their way, one by one; who stands still says why."""
    progress = move.progress
    if progress is None:
        return []
    reasons = {(item.topic, item.partition): item.reason for item in progress.stalled}
    return [
        _moving_row(
            part,
            reasons.pop((part.topic, part.partition), ""),
            told_ms=move.updated_ms,
            now_ms=now_ms,
        )
        for part in progress.moving
    ]


def heard_of_words(move: OperationState, *, now_ms: int) -> str:
    """When this was so: news may fail to come."""
    return f"as of {text.clock_text(move.updated_ms, now_ms=now_ms, with_seconds=True)}"


def earlier_notes(move: OperationState) -> list[str]:
    """Notes of a move, without its newest one."""
    return [note for note in move.notes if note != move.message]


def spread_words(progress: MoveProgress) -> str:
    """The reason why a move waits though nothing stands still; empty: it does not wait."""
    if not progress.spread_s:
        return ""
    over = text.duration_text(progress.spread_s * 1000)
    return f"the last begins in {over}, so that producers wait less"


def _moving_row(part: MovingPartition, reason: str, *, told_ms: int, now_ms: int) -> MovingRow:
    name = f"{part.topic}-{part.partition}"
    share = part.bytes_done / part.bytes_total * 100.0 if part.bytes_total else None
    done, total = text.bytes_text(part.bytes_done), text.bytes_text(part.bytes_total)
    return MovingRow(
        key=name,
        path=f"topics/{part.topic}/partitions/{part.partition}",
        name=Cell(name, name),
        done=Cell(share, text.NONE if share is None else text.percent_text(float(int(share)))),
        size_bytes=Cell(part.bytes_done, f"{done} of {total}"),
        rate=Cell(part.rate_bytes_per_s, text.byte_rate_text(part.rate_bytes_per_s)),
        eta=eta_cell(part, told_ms=told_ms, now_ms=now_ms),
        stalled=Cell(reason, reason or text.NONE, Tone.WARNING if reason else Tone.PLAIN),
    )


def estimated_cell(expected_s: tuple[float, float] | None) -> Cell:
    """How long it would take, as told before it began."""
    if expected_s is None:
        return Cell(None, text.NONE)
    low, high = (text.duration_text(seconds * 1000) for seconds in expected_s)
    return Cell(expected_s[1], f"{text.ESTIMATE}{low} – {high}")


def took_cell(took_s: float | None) -> Cell:
    """How long it took; none while it runs."""
    shown = text.NONE if took_s is None else text.duration_text(took_s * 1000)
    return Cell(took_s, shown)


def throttle_cell(rate: int | None, *, is_gone: bool) -> Cell:
    """Rate of each broker's throttle, and whether it is removed."""
    if rate is None:
        return Cell(None, "none")
    words = f"{text.byte_rate_text(rate)}{', removed' if is_gone else ''}"
    return Cell(rate, words, Tone.MUTED if is_gone else Tone.PLAIN)


def _copied_cell(progress: MoveProgress | None) -> Cell:
    if progress is None:
        return Cell(None, text.NONE)
    return Cell(progress.bytes_done, text.bytes_text(progress.bytes_done))


def done_percent(progress: MoveProgress | None) -> float | None:
    """By bytes where any travel, else by partitions; None before the start."""
    if progress is None:
        return None
    if progress.bytes_total:
        return min(progress.bytes_done / progress.bytes_total * 100.0, 100.0)
    if progress.partitions_total:
        return progress.partitions_done / progress.partitions_total * 100.0
    return 100.0


def done_cell(progress: MoveProgress | None) -> Cell:
    """Share that is done."""
    share = done_percent(progress)
    return Cell(share, text.NONE if share is None else text.percent_text(float(int(share))))


def eta_cell(progress: MoveProgress | MovingPartition | None, *, told_ms: int, now_ms: int) -> Cell:
    """``12:40-12:52``: between when and when it ends; one time when both fall together; what is
    left where that is less than `SOON_S`. ``told_ms``: when the progress was so."""
    if progress is None or progress.eta_s_low is None or progress.eta_s_high is None:
        return Cell(None, text.NA)
    if progress.eta_s_high < SOON_S:
        low, high = (
            text.duration_text(seconds * 1000)
            for seconds in (progress.eta_s_low, progress.eta_s_high)
        )
        return Cell(progress.eta_s_high, f"in {text.ESTIMATE}{low}–{high}")
    first, last = (
        text.clock_text(told_ms + seconds * 1000, now_ms=now_ms)
        for seconds in (progress.eta_s_low, progress.eta_s_high)
    )
    shown = first if first == last else f"{first}–{last}"
    return Cell(progress.eta_s_high, f"{text.ESTIMATE}{shown}")


def fate_words(move: OperationState) -> str:
    """``3 moved, 1 went back, 1 never began``; empty while it runs, or where that is not known."""
    counts = Counter(map(str, sorted(move.fates, key=lambda fate: fate != MOVED)))
    return ", ".join(f"{count:,} {fate}" for fate, count in counts.items())


def ended_rows(move: OperationState) -> list[ChangeRow]:
    """Its partitions with what became of them, those that did not move first; no word of it while
    it runs, or where that is not known."""
    fates = move.fates if len(move.fates) == len(move.changes) else ("",) * len(move.changes)
    rows = [
        change_row(change, fate=_fate_cell(str(fate), move.refused.get(_name(change), "")))
        for change, fate in zip(move.changes, fates, strict=True)
    ]
    return sorted(rows, key=lambda row: row.fate.value == MOVED)


def change_columns_of(move: OperationState) -> tuple[Column, ...]:
    """With what became of them, once that is known."""
    return FATE_COLUMNS if move.fates else CHANGE_COLUMNS


def _fate_cell(fate: str, reason: str) -> Cell:
    if not fate:
        return NO_FATE
    words = f"{fate}: {reason}" if reason and fate == "not moved" else fate
    return Cell(fate, words, Tone.FINE if fate == MOVED else Tone.WARNING)


def _name(change: PartitionChange) -> str:
    return f"{change.topic}-{change.partition}"


def plan_anew_path(changes: Sequence[PartitionChange]) -> ViewPath:
    """The form for the topics of a move that was refused; empty where these are too many."""
    topics = ", ".join(sorted({change.topic for change in changes}))
    return ViewPath(view="plan", query={"topics": topics} if len(topics) <= TOPICS_MAX else {})


def change_row(change: PartitionChange, why: str = text.NONE, fate: Cell = NO_FATE) -> ChangeRow:
    """One line of a plan's diff."""
    name = _name(change)
    led = change.has_new_leader
    return ChangeRow(
        key=name,
        path=f"topics/{change.topic}/partitions/{change.partition}",
        name=Cell(name, name),
        before=Cell(None, text.ids_text(change.before)),
        after=Cell(None, text.ids_text(change.after)),
        new_leader=Cell(int(led), f"yes, {change.after[0]}" if led else "no"),
        moved=Cell(
            change.moved_bytes,
            text.bytes_text(change.moved_bytes) if change.adding else "no data",
        ),
        why=Cell(None, why),
        fate=fate,
    )
