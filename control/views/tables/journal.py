"""Rows of the journal for all faces, and its marks on charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from control.model.moments import iso_text
from control.move.journal_lines import JournalLine, Values
from control.views import format as text
from control.views.printable import visible
from control.views.series import Span
from control.views.tables import units
from control.views.tables.column import Table, column, name_column, worded
from control.views.tables.rows import Cell, Tone

MARKS_MAX: Final = 20
"""More marks than this on one chart hide it; the newest are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something that happened, to be drawn on a chart."""

    at_ms: int
    words: str


_TONES: Final = {
    "done": Tone.FINE,
    "failed": Tone.CRITICAL,
    "partly done": Tone.WARNING,
    "refused": Tone.CRITICAL,
    "interrupted": Tone.WARNING,
    "begun": Tone.WARNING,
}
NOT_PROVEN: Final = "not proven"
"""No known installation has signed the line: anybody may have written it."""
CHANGES_MAX: Final = 3
"""Values of one line that its row shows; export and JSON have them all."""
MOVE_PREFIX: Final = "mv-"
REPORTED: Final = frozenset({"done", "cancelled", "failed"})
"""A move that ended so has a report."""


def _change_cell(line: JournalLine) -> Cell:
    names = tuple(line.before.keys() | line.after.keys())
    if not names:
        return Cell(None, text.NONE)
    changes = [_change(line, name) for name in sorted(names)]
    shown, left = changes[:CHANGES_MAX], len(changes) - CHANGES_MAX
    value = "\n".join(changes)
    if left <= 0:
        return Cell(value, "; ".join(shown))
    lines = tuple(visible(change) for change in changes)
    return Cell(value, f"{'; '.join(shown)}; … {left:,} more", lines=lines)


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


def _path(line: JournalLine) -> str:
    """The view of the reassignment that the line is about, or its report once it has ended; empty
    for others."""
    move, _, part = line.operation_id.partition("/")
    if not move.startswith(MOVE_PREFIX):
        return ""
    has_ended = not part and line.outcome in REPORTED
    return f"moves/{move}/report" if has_ended else f"moves/{move}"


def _outcome_cell(line: JournalLine) -> Cell:
    told = f"{line.outcome}: {line.error}" if line.error else line.outcome
    return Cell(told, told, _TONES.get(line.outcome, Tone.PLAIN))


def _who_cell(line: JournalLine) -> Cell:
    if not line.is_foreign:
        return Cell(line.who or None, line.who or text.NONE)
    return Cell(line.who, f"{line.who} ({NOT_PROVEN})".strip(), Tone.WARNING)


JOURNAL: Final = Table(
    name="journal",
    about="A row per operation that was tried or done, the newest first",
    key=lambda line: line.operation_id,
    path=_path,
    columns=(
        column("at", "when", units.TIME, rank=1,
               cell=lambda line: Cell(line.at_ms, text.date_time_text(line.at_ms))),
        name_column("what", "what", rank=1, cell=worded(lambda line: line.what, missing="")),
        column("outcome", "outcome", rank=1, cell=_outcome_cell),
        name_column("who", "who", rank=2, cell=_who_cell),
        name_column("reason", "why", rank=2, cell=worded(lambda line: line.reason)),
        name_column("change", "from → to", "Values before and after, the first few of them",
                    rank=2, cell=_change_cell),
        name_column("cluster", "cluster", cell=worded(lambda it: it.cluster_id or it.bootstrap)),
        name_column("proof", "proof", "Whether a known installation has signed the line",
                    cell=worded(lambda line: NOT_PROVEN if line.is_foreign else "proven")),
        column("operation", "operation", cell=worded(lambda line: line.operation_id)),
    ),
)  # fmt: skip


def matching(lines: Iterable[JournalLine], words: str) -> list[JournalLine]:
    """The lines whose cells hold all of these words, whatever their case."""
    wanted = words.casefold().split()
    return [line for line in lines if all(map(_all_of(line).casefold().__contains__, wanted))]


def _all_of(line: JournalLine) -> str:
    return " ".join(_exported_cells(line).values())


def _exported_cells(line: JournalLine) -> dict[str, str]:
    """Texts of a line by column, with every value that it changed."""
    told = JOURNAL.cells(line)
    texts = {name: cell.text for name, cell in told.items()}
    return texts | {"change": str(told["change"].value or "")}


def exported(lines: Iterable[JournalLine]) -> pa.Table:
    """The lines as files have them."""
    rows = [_exported_cells(line) | {"at": iso_text(line.at_ms)} for line in lines]
    return pa.table(
        {it.id: pa.array([row[it.id] for row in rows], pa.string()) for it in JOURNAL.columns}
    )


def marks(lines: Iterable[JournalLine], span: Span) -> Sequence[Mark]:
    """Changes within ``span``, oldest first, the newest ``MARKS_MAX``."""
    within = [line for line in lines if span.since_ms <= line.at_ms <= span.until_ms]
    newest = sorted(within, key=lambda line: line.at_ms)[-MARKS_MAX:]
    return tuple(Mark(at_ms=line.at_ms, words=f"{line.what} ({line.outcome})") for line in newest)
