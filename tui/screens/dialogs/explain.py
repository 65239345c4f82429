"""``i``: every figure of a row with what it means, also those for which the table has no room."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from control.views.tables.column import Column
from control.views.tables.rows import Row
from tui.tones import cell_text


class ExplainScreen(ModalScreen[None]):
    """One line a column: its title, the row's value, its meaning below where it has one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close"),
        Binding("i", "dismiss", show=False),
        Binding("q", "dismiss", show=False),
    ]

    def __init__(self, columns: Sequence[Column], row: Row | None) -> None:
        super().__init__()
        self._columns, self._row = columns, row

    def compose(self) -> ComposeResult:
        """All columns; Esc closes."""
        with VerticalScroll(id="explain") as box:
            box.border_subtitle = "Esc closes"
            yield Static(Text("\n").join(map(self._line, self._columns)))

    def _line(self, column: Column) -> Text:
        line = Text(f"{column.title:<16}", style="bold")
        if self._row is not None:
            line.append_text(cell_text(self._row.cell(column.id)))
        return line.append(f"\n  {column.help}", style="dim") if column.help else line
