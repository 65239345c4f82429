"""Rows of the journal for all faces, and its marks on charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from control.views import format as text
from control.views.series import Span
from control.views.tables.column import Column
from control.views.tables.rows import Cell, Row, Tone

if TYPE_CHECKING:  # a Kafka client comes with it, and terminals start without one
    from control.operations.bus.journal import JournalLine, Values

MARKS_MAX: Final = 20
"""More marks than this on one chart hide it; the newest are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRow(Row):
    """One line; its path opens the move, where it was one, and is empty else."""

    at: Cell
    what: Cell
    change: Cell
    outcome: Cell
    who: Cell
    reason: Cell
    cluster: Cell
    operation: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something that happened, to be drawn on a chart."""

    at_ms: int
    words: str


JOURNAL_COLUMNS: Final = (
    Column(id="at", title="when", is_number=False, rank=1),
    Column(id="what", title="what", is_number=False, rank=1, is_long=True),
    Column(id="outcome", title="outcome", is_number=False, rank=1),
    Column(id="who", title="who", is_number=False, rank=2, is_long=True),
    Column(id="reason", title="why", is_number=False, rank=2, is_long=True),
    Column(
        id="change",
        title="from → to",
        why="Values before and after, the first few of them",
        is_number=False,
        rank=2,
        is_long=True,
    ),
    Column(id="cluster", title="cluster", is_number=False, rank=3, is_long=True),
    Column(id="operation", title="operation", is_number=False, rank=3),
)
_TONES: Final = {
    "done": Tone.FINE,
    "failed": Tone.CRITICAL,
    "refused": Tone.CRITICAL,
    "interrupted": Tone.WARNING,
    "begun": Tone.WARNING,
}
CHANGES_MAX: Final = 3
"""Values of one line that its row shows; export and JSON have them all."""
MOVE_PREFIX: Final = "mv-"


def journal_row(line: JournalLine) -> JournalRow:
    """A line as all faces list it."""
    is_move = line.operation_id.startswith(MOVE_PREFIX)
    cluster = line.cluster_id or line.bootstrap or text.NONE
    outcome = f"{line.outcome}: {line.error}" if line.error else line.outcome
    return JournalRow(
        key=line.operation_id,
        path=f"moves/{line.operation_id}" if is_move else "",
        at=Cell(line.at_ms, text.date_time_text(line.at_ms)),
        what=Cell(line.what, line.what),
        change=_change_cell(line),
        outcome=Cell(line.outcome, outcome, _TONES.get(line.outcome, Tone.PLAIN)),
        who=Cell(line.who, line.who or text.NONE),
        reason=Cell(line.reason, line.reason or text.NONE),
        cluster=Cell(cluster, cluster),
        operation=Cell(line.operation_id, line.operation_id),
    )


def _change_cell(line: JournalLine) -> Cell:
    names = tuple(line.before.keys() | line.after.keys())
    if not names:
        return Cell(None, text.NONE)
    changes = [_change(line, name) for name in sorted(names)]
    shown, left = changes[:CHANGES_MAX], len(changes) - CHANGES_MAX
    return Cell("\n".join(changes), "; ".join(shown) + (f"; … {left:,} more" if left > 0 else ""))


def _change(line: JournalLine, name: str) -> str:
    """``retention.ms: 1000 → 2000``; of what was only counted, ``acknowledged: 7``."""
    then = _value(line.after, name)
    return (
        f"{name}: {_value(line.before, name)} → {then}"
        if name in line.before
        else f"{name}: {then}"
    )


def _value(values: Values, name: str) -> str:
    value = values.get(name)
    return "none" if value is None else str(value)


def marks(lines: Iterable[JournalLine], span: Span) -> Sequence[Mark]:
    """Changes within ``span``, oldest first, the newest ``MARKS_MAX``."""
    within = [line for line in lines if span.since_ms <= line.at_ms <= span.until_ms]
    newest = sorted(within, key=lambda line: line.at_ms)[-MARKS_MAX:]
    return tuple(Mark(at_ms=line.at_ms, words=f"{line.what} ({line.outcome})") for line in newest)
