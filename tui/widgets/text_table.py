"""A table of rows as lines of a longer text, where a table with a cursor would be too much."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from control.views.printable import cut_middle
from control.views.tables.column import Column
from control.views.tables.rows import Cell, Row
from tui.tones import STYLES

NAME_MAX: Final = 32
"""Characters of a name."""


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
    return Text(
        cut_middle(words, NAME_MAX, cells=cell_len) if column.is_long else words,
        style=STYLES[cell.tone],
    )
