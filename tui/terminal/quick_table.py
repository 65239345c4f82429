"""Textual's table, quicker where ours are simple: every cell is one line of one style."""

from typing import Final, Self

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.coordinate import Coordinate
from textual.geometry import Region
from textual.widgets import DataTable

LINES_KEPT: Final = 120
CELLS_OF_LINE: Final = 12
"""As painted; more than a large screen shows."""


class QuickTable(DataTable[Text]):
    """Its texts have a style and a justification as a whole, and no line breaks."""

    _paints_nothing = False
    """While `write_cell` is at work; the class has it because Textual's constructor refreshes."""

    def __init__(self, *, id: str, cursor_type: str, fixed_columns: int = 0) -> None:  # noqa: A002 (Textual's name)
        super().__init__(
            id=id,
            cursor_type=cursor_type,  # type: ignore[arg-type]
            zebra_stripes=False,
            fixed_columns=fixed_columns,
            cell_padding=1,
        )
        self._keep_little()

    def _keep_little(self) -> None:
        """Keeps few painted lines. Textual keeps ten thousand cells, tens of megabytes, and never
        asks again for those painted before the last change."""
        self._line_cache.maxsize = self._row_render_cache.maxsize = LINES_KEPT
        self._row_renderable_cache.maxsize = LINES_KEPT
        self._cell_render_cache.maxsize = LINES_KEPT * CELLS_OF_LINE

    def write_cell(self, place: Coordinate, text: Text, *, is_wider: bool) -> None:
        """One cell, without painting: `update_cell_at` would paint the whole table."""
        if is_wider:
            self.update_cell_at(place, text, update_width=True)
            return
        self._paints_nothing = True
        try:
            self.update_cell_at(place, text)
        finally:
            self._paints_nothing = False

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """As Textual's, but for the cells that `write_cell` writes."""
        if self._paints_nothing and not regions:
            return self
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _render_cell(  # type: ignore[override]  # it is called by keyword
        self,
        row_index: int,
        column_index: int,
        base_style: Style,
        width: int,
        *,
        cursor: bool = False,
        hover: bool = False,
    ) -> list[list[Segment]]:
        """The same segments as Textual's, without Rich's way through console, padding, wrapping
        and justification, which took most of a refresh."""
        ordered = min(row_index, column_index) >= 0
        cell = self.get_cell_at(Coordinate(row_index, column_index)) if ordered else Text("\n")
        room = width - 2 * self.cell_padding - cell.cell_len
        is_simple = cell.justify in ("left", "right") and not cell.spans and "\n" not in cell.plain
        if not is_simple or room < 0:
            return super()._render_cell(row_index, column_index, base_style, width, cursor, hover)
        is_fixed = row_index < self.fixed_rows or column_index < self.fixed_columns
        above, over = self._get_styles_to_render_cell(
            False, False, is_fixed, hover, cursor, self.show_cursor, self._show_hover_cursor,
            self.cursor_foreground_priority == "css", self.cursor_background_priority == "css",
        )  # fmt: skip
        under = base_style + Style.from_meta({"row": row_index, "column": column_index}) + above
        plain, style = under + over, under + self.app.console.get_style(cell.style) + over
        margin = Segment(" " * self.cell_padding, plain)
        fill = " " * room
        words = fill + cell.plain if cell.justify == "right" else cell.plain + fill
        return [[margin, Segment(words, style), margin]]
