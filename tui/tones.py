"""Rich texts of cells, facts and small tables. A tone is a style; the shape beside it says the same
without colour."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.text import Text

from control.views.tables.column import Column
from control.views.tables.rows import Cell, Fact, Row, Tone
from tui.names import cut_middle

NAME_MAX: Final = 32
"""Characters of a name in a table within a text."""

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
        fact = Text(f"   {title} ", style="dim")
        fact.append_text(cell_text(cell, with_shape=title == "status"))
        if lines[-1].cell_len + fact.cell_len > width:
            lines.append(Text())
        lines[-1].append_text(fact)
    return Text("\n").join(lines)


def cell_text(cell: Cell, *, is_number: bool = False, with_shape: bool = False) -> Text:
    """A cell as text: numbers to the right, the tone's shape in front where it has one."""
    shape = f"{cell.shape} " if with_shape and cell.shape.strip() else ""
    return Text(
        f"{shape}{cell.text}",
        style=STYLES[cell.tone],
        justify="right" if is_number else "left",
        no_wrap=True,
    )


def table_text(columns: Sequence[Column], rows: Sequence[Row]) -> Text:
    """Rows under their heads, for a table within a longer text."""
    cells = [[_placed(row.cell(it.id), it) for it in columns] for row in rows]
    heads = [Text(it.title, style="bold") for it in columns]
    widths = [max(text.cell_len for text in column) for column in zip(heads, *cells, strict=True)]
    lines = []
    for texts in (heads, *cells):
        line = Text(" ")
        for text, column, width in zip(texts, columns, widths, strict=True):
            blank = " " * (width - text.cell_len)
            line.append_text(Text.assemble(blank, text) if column.is_number else text + Text(blank))
            line.append("  ")
        line.rstrip()
        lines.append(line)
    return Text("\n").join(lines)


def _placed(cell: Cell, column: Column) -> Text:
    words = cell.shaped(is_number=column.is_number)
    return Text(cut_middle(words, NAME_MAX) if column.is_long else words, style=STYLES[cell.tone])
