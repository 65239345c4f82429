"""Tones of a cell as Rich styles; the shape beside it says the same without colour."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.text import Text

from control.views.printable import printable
from control.views.tables.column import Column
from control.views.tables.rows import Cell, Fact, Row, Tone

STYLES: Final = {
    Tone.PLAIN: "",
    Tone.FINE: "green",
    Tone.NOTICE: "cyan",
    Tone.WARNING: "yellow",
    Tone.CRITICAL: "bold red",
    Tone.MUTED: "dim",
}


def facts_text(head: Text, facts: Iterable[Fact], width: int) -> Text:
    """A name and what is known of it; a line ends between two facts, never within one."""
    lines = [head]
    for title, cell, _ in facts:
        fact = Text(f"   {title} ", style="dim").append_text(cell_text(cell))
        if lines[-1].cell_len + fact.cell_len > width:
            lines.append(Text())
        lines[-1].append_text(fact)
    return Text("\n").join(lines)


def cell_text(cell: Cell, *, is_number: bool = False, wraps: bool = False) -> Text:
    """A cell as text: numbers to the right, the tone's shape in front where it has one."""
    return Text(
        cell.shaped(is_number=is_number),
        style=STYLES[cell.tone],
        justify="right" if is_number else "left",
        no_wrap=not wraps,
    )


def rows_text(columns: Sequence[Column], rows: Sequence[Row]) -> Text:
    """A small table as text, under dim heads; numbers end at the right."""
    lines = [[Text(it.title, style="dim") for it in columns]]
    for row in rows:
        lines.append([_printed(row.cell(it.id), is_number=it.is_number) for it in columns])
    for place, column in enumerate(columns):
        width = max(line[place].cell_len for line in lines)
        for line in lines:
            room = width - line[place].cell_len
            (line[place].pad_left if column.is_number else line[place].pad_right)(room)
    return Text("\n").join(Text("  ").join(line) for line in lines)


def _printed(cell: Cell, *, is_number: bool) -> Text:
    return Text(printable(cell.shaped(is_number=is_number)), style=STYLES[cell.tone])
