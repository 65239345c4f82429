"""Tones of a cell as Rich styles; the shape beside it says the same without colour."""

from collections.abc import Iterable
from typing import Final

from rich.text import Text

from control.views.tables.rows import Cell, Fact, Tone

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
