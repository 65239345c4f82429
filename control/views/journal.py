"""Rows of the journal for both screens, and its marks on charts.

Lines come from ``control.operations.journal``, this room's sibling: the Protocol says what of
them is read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from control.views import format as text
from control.views.columns import Column
from control.views.rows import Cell, Row, Tone
from control.views.series import Span

MARKS_MAX: Final = 20
"""More marks than this on one chart hide it; the newest are kept."""


class Line(Protocol):
    """One change that a screen or script made."""

    @property
    def at_ms(self) -> int: ...
    @property
    def who(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def operation_id(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRow(Row):
    """One line; its path opens the move, where it was one."""

    at: Cell
    what: Cell
    outcome: Cell
    who: Cell
    reason: Cell
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
    Column(id="operation", title="operation", is_number=False, rank=3),
)
_TONES: Final = {"done": Tone.FINE, "failed": Tone.CRITICAL, "refused": Tone.CRITICAL}
MOVE_PREFIX: Final = "mv-"


def journal_row(line: Line, *, now_ms: int) -> JournalRow:
    """A line as both screens list it."""
    is_move = line.operation_id.startswith(MOVE_PREFIX)
    return JournalRow(
        key=line.operation_id,
        path=f"moves/{line.operation_id}" if is_move else "journal",
        at=Cell(line.at_ms, text.clock_text(line.at_ms, now_ms=now_ms)),
        what=Cell(line.what, line.what),
        outcome=Cell(line.outcome, line.outcome, _TONES.get(line.outcome, Tone.PLAIN)),
        who=Cell(line.who, line.who or text.NONE),
        reason=Cell(line.reason, line.reason or text.NONE),
        operation=Cell(line.operation_id, line.operation_id),
    )


def marks(lines: Iterable[Line], span: Span) -> Sequence[Mark]:
    """What happened within ``span``, oldest first, the newest ``MARKS_MAX``."""
    within = [line for line in lines if span.since_ms <= line.at_ms <= span.until_ms]
    newest = sorted(within, key=lambda line: line.at_ms)[-MARKS_MAX:]
    return tuple(Mark(at_ms=line.at_ms, words=f"{line.what} ({line.outcome})") for line in newest)
