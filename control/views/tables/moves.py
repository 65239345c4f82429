"""Rows of reassignments, running and past, for all faces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from control.move.events import MoveProgress, MovingPartition, StalledMove
from control.move.state import OperationState
from control.views import format as text
from control.views.paths import ViewPath
from control.views.tables import cells, units
from control.views.tables.column import Column, Table, column, counted, name_column, worded
from control.views.tables.partitions import PARTITIONS_HELP
from control.views.tables.rows import Cell, Fact, Row, Tone
from planner.proposal import PartitionChange

TOPICS_MAX: Final = 200
"""Characters of topics' names in a link."""

STALLED_MAX: Final = 5
"""Partitions that stand still and are named."""
MOVED: Final = "moved"
NONE_YET: Final = Cell(None, text.NONE)
SOON_S: Final = 600.0
YIELDS: Final = "yields"
"""Status of a move that runs and holds back for consumers."""
WAITS: Final = "waits"
"""Status of a move of which nothing is under way until its window opens."""
_COPIED_HELP: Final = "Data copied so far"
_ENDS_HELP: Final = "An interval, not a promise"
_TONES: Final = {
    "failed": Tone.CRITICAL,
    "refused": Tone.CRITICAL,
    "cancelled": Tone.WARNING,
    "cancelling": Tone.WARNING,
    "paused": Tone.WARNING,
    "pausing": Tone.WARNING,
    YIELDS: Tone.WARNING,
    "running": Tone.NOTICE,
    WAITS: Tone.MUTED,
    "waiting": Tone.MUTED,
    "submitted": Tone.MUTED,
    "done": Tone.FINE,
}
"""Worst first."""


class _Seen(NamedTuple):
    move: OperationState
    now_ms: int


class _Part(NamedTuple):
    part: MovingPartition
    reason: str
    """Why it stands still; empty: it does not."""
    told_ms: int
    now_ms: int


class _Change(NamedTuple):
    change: PartitionChange
    why: str
    fate: Cell


def move_row(move: OperationState, *, now_ms: int) -> Row:
    """A reassignment as all faces list it."""
    return MOVES.row(_Seen(move, now_ms))


def status_word(move: OperationState) -> str:
    """Its outcome or phase, or ``WAITS`` or ``YIELDS``."""
    if move.is_outside_window:
        return WAITS
    word = str(move.outcome or move.phase)
    return YIELDS if word == "running" and move.yields_to else word


def newest_words(move: OperationState) -> str:
    """Its newest line for people; empty where that is why it yields, which is told by itself."""
    return "" if move.message == move.yield_words else move.message


def _running(move: OperationState) -> MoveProgress | None:
    return move.progress if move.outcome is None else None


def _move_status_cell(seen: _Seen) -> Cell:
    word = status_word(seen.move)
    return Cell(list(_TONES).index(word), word, _TONES[word])


def _rate_cell(seen: _Seen) -> Cell:
    progress = _running(seen.move)
    return NONE_YET if progress is None else cells.byte_rate_cell(progress.rate_bytes_per_s)


def _move_eta_cell(seen: _Seen) -> Cell:
    progress = _running(seen.move)
    if progress is None:
        return NONE_YET
    return eta_cell(progress, told_ms=seen.move.updated_ms, now_ms=seen.now_ms)


def _submitted_cell(seen: _Seen) -> Cell:
    at_ms = seen.move.submitted_ms
    return Cell(at_ms, text.clock_text(at_ms, now_ms=seen.now_ms))


def moving_rows(move: OperationState, *, now_ms: int) -> Sequence[Row]:
    """The partitions on their way, one by one; who stands still says why."""
    progress = move.progress
    if progress is None:
        return []
    reasons = {(item.topic, item.partition): item.reason for item in progress.stalled}
    told_ms = move.updated_ms
    return MOVING.rows(
        _Part(part, reasons.pop((part.topic, part.partition), ""), told_ms, now_ms)
        for part in progress.moving
    )


def move_facts(move: OperationState, *, now_ms: int) -> tuple[Fact, ...]:
    """A reassignment in figures, for the view about it."""
    row, progress = move_row(move, now_ms=now_ms), move.progress
    last = (
        (Fact("took", row.took),)
        if move.is_finished
        else (Fact("rate", row.rate), Fact("ends", row.eta, _ENDS_HELP))
    )
    return (
        Fact("status", row.status),
        Fact("done", row.done),
        Fact("bytes", NONE_YET if progress is None
             else _of_cell(progress.bytes_done, progress.bytes_total, text.bytes_text)),
        Fact("partitions", NONE_YET if progress is None
             else _of_cell(progress.partitions_done, progress.partitions_total, text.count_text)),
        *last,
        Fact("estimated", row.estimated, "Time estimated before it began"),
        Fact("wave", NONE_YET if progress is None
             else Cell(progress.wave, f"{progress.wave} of {progress.waves}")),
        Fact("throttle", throttle_cell(move.throttle_bytes_per_s, is_gone=move.throttle is None),
             "Of each broker"),
        *([Fact("window", Cell(move.window, move.window), "Waves begin in it")] if move.window
          else []),
    )  # fmt: skip


def stalled_lines(progress: MoveProgress) -> list[str]:
    """Partitions that stand still, each with the reason; of many the first."""
    shown = progress.stalled[:STALLED_MAX]
    lines = [f"▲ {_name(item)} stands still: {item.reason}" for item in shown]
    more = len(progress.stalled) - len(shown) + progress.stalled_more
    return [*lines, f"▲ and {more:,} more stand still"] if more else lines


def heard_of_words(move: OperationState, *, now_ms: int) -> str:
    """When this was so: news may fail to come."""
    return f"as of {text.clock_text(move.updated_ms, now_ms=now_ms, with_seconds=True)}"


def earlier_notes(move: OperationState) -> list[str]:
    """Remarks of a move, without its newest line."""
    return [remark for remark in move.remarks if remark != move.message]


def spread_words(progress: MoveProgress) -> str:
    """The reason why a move waits though nothing stands still; empty: it does not wait."""
    if not progress.spread_s:
        return ""
    over = text.duration_text(progress.spread_s * 1000)
    return f"the last partition begins in {over}, to spare producers"


def _share_cell(percent: float | None) -> Cell:
    return Cell(percent, text.NONE if percent is None else text.percent_text(float(int(percent))))


def _part_done_cell(it: _Part) -> Cell:
    done, total = it.part.bytes_done, it.part.bytes_total
    return _share_cell(done / total * 100.0 if total else None)


def _part_size_cell(it: _Part) -> Cell:
    return _of_cell(it.part.bytes_done, it.part.bytes_total, text.bytes_text)


def _stalled_cell(it: _Part) -> Cell:
    return Cell(it.reason, it.reason or text.NONE, Tone.WARNING if it.reason else Tone.PLAIN)


def _of_cell(done: int, total: int, to_text: Callable[[float], str]) -> Cell:
    """``3 of 5``."""
    return Cell(done, f"{to_text(done)} of {to_text(total)}")


def estimated_cell(expected_s: tuple[float, float] | None) -> Cell:
    """How long it would take, as told before it began."""
    if expected_s is None:
        return NONE_YET
    low, high = (text.duration_text(seconds * 1000) for seconds in expected_s)
    return Cell(expected_s[1] * 1000, f"{text.ESTIMATE}{low} – {high}")


def took_cell(took_s: float | None) -> Cell:
    """How long it took; none while it runs."""
    return NONE_YET if took_s is None else cells.duration_cell(took_s * 1000)


def throttle_cell(rate: int | None, *, is_gone: bool) -> Cell:
    """Rate of each broker's throttle, and whether it is removed."""
    if rate is None:
        return Cell(None, "none")
    words = f"{text.byte_rate_text(rate)}{', removed' if is_gone else ''}"
    return Cell(rate, words, Tone.MUTED if is_gone else Tone.PLAIN)


def _copied_cell(progress: MoveProgress | None) -> Cell:
    return NONE_YET if progress is None else cells.bytes_cell(progress.bytes_done)


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
    return _share_cell(done_percent(progress))


def eta_cell(progress: MoveProgress | MovingPartition | None, *, told_ms: int, now_ms: int) -> Cell:
    """``12:40-12:52``: between when and when it ends; one time when both fall together; what is
    left where that is less than `SOON_S`. ``told_ms``: when the progress was so."""
    if progress is None or progress.eta_s_low is None or progress.eta_s_high is None:
        return Cell(None, text.NA)
    ends_ms = told_ms + progress.eta_s_high * 1000
    if progress.eta_s_high < SOON_S:
        low, high = (
            text.duration_text(seconds * 1000)
            for seconds in (progress.eta_s_low, progress.eta_s_high)
        )
        return Cell(ends_ms, f"in {text.ESTIMATE}{low}–{high}")
    first, last = (
        text.clock_text(told_ms + seconds * 1000, now_ms=now_ms)
        for seconds in (progress.eta_s_low, progress.eta_s_high)
    )
    shown = first if first == last else f"{first}–{last}"
    return Cell(ends_ms, f"{text.ESTIMATE}{shown}")


def fate_words(move: OperationState) -> str:
    """``3 moved, 1 went back, 1 never began``; empty while it runs, or where that is not known."""
    counts = Counter(map(str, sorted(move.fates, key=lambda fate: fate != MOVED)))
    return ", ".join(f"{count:,} {fate}" for fate, count in counts.items())


def ended_rows(move: OperationState) -> list[Row]:
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
    return (*CHANGES.columns, *CHANGES.only("fate")) if move.fates else CHANGES.columns


def _fate_cell(fate: str, reason: str) -> Cell:
    if not fate:
        return NONE_YET
    words = f"{fate}: {reason}" if reason and fate == "not moved" else fate
    return Cell(fate, words, Tone.FINE if fate == MOVED else Tone.WARNING)


def _name(change: PartitionChange | MovingPartition | StalledMove) -> str:
    return f"{change.topic}-{change.partition}"


def plan_anew_path(changes: Sequence[PartitionChange]) -> ViewPath:
    """The form for the topics of a move that was refused; empty where these are too many."""
    topics = ", ".join(sorted({change.topic for change in changes}))
    return ViewPath(view="plan", query={"topics": topics} if len(topics) <= TOPICS_MAX else {})


def change_row(change: PartitionChange, why: str = text.NONE, fate: Cell = NONE_YET) -> Row:
    """One line of a plan's diff."""
    return CHANGES.row(_Change(change, why, fate))


def _new_leader_cell(it: _Change) -> Cell:
    led = it.change.has_new_leader
    return Cell(int(led), f"yes, {it.change.after[0]}" if led else "no")


def _moved_cell(it: _Change) -> Cell:
    moved = it.change.moved_bytes
    return Cell(moved, text.bytes_text(moved) if it.change.adding else "no data")


MOVES: Final = Table(
    name="moves",
    about="A row per reassignment, running and past",
    key=lambda seen: seen.move.operation_id,
    path=lambda seen: f"moves/{seen.move.operation_id}",
    columns=(
        column("move", "move", rank=1, cell=worded(lambda seen: seen.move.operation_id)),
        column("status", "status", rank=1, cell=_move_status_cell),
        column("done", "done", units.PERCENT,
               rank=1, cell=lambda seen: done_cell(seen.move.progress)),
        column("rate", "rate", units.BYTE_RATE, rank=2, cell=_rate_cell),
        column("eta", "ends", units.TIME, _ENDS_HELP, rank=2, cell=_move_eta_cell),
        column("partitions", "partitions", units.COUNT,
               PARTITIONS_HELP, cell=counted(lambda seen: seen.move.partitions_count)),
        column("size_bytes", "planned", units.BYTES, "Data to copy, as planned", rank=2,
               cell=lambda seen: cells.bytes_cell(seen.move.planned_bytes)),
        column("copied", "copied", units.BYTES, _COPIED_HELP,
               cell=lambda seen: _copied_cell(seen.move.progress)),
        column("estimated", "estimated", units.DURATION, "Time estimated before it began",
               cell=lambda seen: estimated_cell(seen.move.expected_s)),
        column("took", "took", units.DURATION, cell=lambda seen: took_cell(seen.move.took_s)),
        column("submitted", "submitted", units.TIME, cell=_submitted_cell),
        name_column("who", "who", cell=worded(lambda seen: seen.move.who)),
        name_column("reason", "why", cell=worded(lambda seen: seen.move.reason)),
    ),
    unlisted=(
        column("message", "message", cell=worded(lambda seen: seen.move.message)),
    ),
)  # fmt: skip
MOVING: Final = Table(
    name="moving partitions",
    about="A row per partition that a running reassignment copies",
    key=lambda it: _name(it.part),
    path=lambda it: f"topics/{it.part.topic}/partitions/{it.part.partition}",
    columns=(
        column("name", "partition", rank=1, cell=worded(lambda it: _name(it.part))),
        column("done", "done", units.PERCENT, rank=1, cell=_part_done_cell),
        column("size_bytes", "copied", units.BYTES, f"{_COPIED_HELP}; of what is to be copied",
               rank=2, cell=_part_size_cell),
        column("rate", "rate", units.BYTE_RATE, rank=2,
               cell=lambda it: cells.byte_rate_cell(it.part.rate_bytes_per_s)),
        column("eta", "ends", units.TIME, _ENDS_HELP, rank=1,
               cell=lambda it: eta_cell(it.part, told_ms=it.told_ms, now_ms=it.now_ms)),
        column("stalled", "stands still", rank=1, cell=_stalled_cell),
    ),
)  # fmt: skip
_LEADS_HELP: Final = "The first leads"
CHANGES: Final = Table(
    name="changes",
    about="A row per partition that a reassignment changes, in a plan and afterwards",
    key=lambda it: _name(it.change),
    path=lambda it: f"topics/{it.change.topic}/partitions/{it.change.partition}",
    columns=(
        column("name", "partition", rank=1, cell=worded(lambda it: _name(it.change))),
        column("before", "before", units.IDS, _LEADS_HELP, rank=1,
               cell=lambda it: Cell(None, text.ids_text(it.change.before))),
        column("after", "after", units.IDS, _LEADS_HELP, rank=1,
               cell=lambda it: Cell(None, text.ids_text(it.change.after))),
        column("new_leader", "new leader?", rank=2, cell=_new_leader_cell),
        column("moved", "data to copy", units.BYTES, rank=2, cell=_moved_cell),
    ),
    unlisted=(
        column("why", "why it moves", rank=2, cell=lambda it: Cell(None, it.why)),
        column("fate", "ended", units.TEXT, "Result of this partition", rank=1,
               cell=lambda it: it.fate),
    ),
)  # fmt: skip
