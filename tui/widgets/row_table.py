"""A table of view rows that refreshes without flicker: cursor and scroll stay with their row."""

from collections.abc import Collection
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.message import Message
from textual.widgets import DataTable

from control.views.printable import cut_middle
from control.views.tables.column import Column
from control.views.tables.query import Page
from control.views.tables.rows import Row
from tui.messages import PathChosen
from tui.tones import cell_text
from tui.widgets.kept_cursor import KeptCursorTable

SCROLLBAR_WIDTH: Final = 1
MARK: Final = "✔ "
"""Before the name of a marked row."""
ELASTIC_MIN: Final = 40
"""So much room an elastic column has before others are left out for it."""
NAME_MIN: Final = 24
NAME_SHARE: Final = 0.4
"""Of the width: so much a column of long names has, and what is left over by the others."""


class RowTable(KeptCursorTable):
    """Shows one page of rows; Enter opens the row's path."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "open", show=True),
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
    ]

    class RowChosen(Message):
        """Enter on a row of a table that opens nothing by itself."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    def __init__(self, *, id: str, opens: bool = True) -> None:  # noqa: A002 (Textual's name)
        super().__init__(id=id, cursor_type="row")
        self._opens = opens
        self._rows: list[Row] = []
        self._gone = ""
        """Key of the row that was selected until it disappeared; it is selected again if it
        returns before the cursor is moved."""
        self._shown: tuple[str, ...] = ()
        self._page: Page | None = None
        self.marked: Collection[str] = ()
        """Keys of marked rows; ``show`` shows the marks."""
        self._marked_shown: frozenset[str] = frozenset()
        self._is_chosen = False
        self._widths: dict[str, int] = {}
        """The widest that each column has been: columns must not come and go with figures."""
        self._room_of: dict[str, int] = {}
        """Of columns that are cut, in characters."""

    @property
    def pointed(self) -> Row | None:
        """The selected row; None: there is none, or it is gone."""
        at = self.cursor_row
        return self._rows[at] if self.show_cursor and 0 <= at < len(self._rows) else None

    def name_of(self, column: str) -> str:
        """Value of the row under the cursor in a column; empty: no such row or column."""
        cell = getattr(self.pointed, column, None)
        return "" if cell is None else str(cell.value)

    @property
    def page(self) -> Page | None:
        """The shown rows, with the columns that have no room."""
        return self._page

    @property
    def shown(self) -> tuple[str, ...]:
        """Ids of the columns on screen, in order."""
        return self._shown

    def show(self, page: Page, *, is_chosen: bool = False) -> None:
        """Show a newer page of the same table; columns that the operator chose are all shown,
        of others those that have room, and always that by which it is sorted."""
        self._page, self._is_chosen = page, is_chosen
        rows: list[Row] = list(page.rows)
        room_before = self._room_of
        columns = self._fitting(_with_sorted(page), rows)
        ids = tuple(column.id for column in columns)
        marked, self._marked_shown = self._marked_shown, frozenset(self.marked)
        if ids != self._shown or self._room_of != room_before or marked != self._marked_shown:
            self._refill(columns, rows, is_rebuilt=True)
        elif self.row_count == len(rows) and _keys(rows) == _keys(self._rows):
            self._update(columns, rows)
        else:
            self._refill(columns, rows)

    def begin_again(self) -> None:
        """The next page is shown from its first row: who sorts or filters wants to see the top."""
        self._rows, self._gone = [], ""
        self.show_cursor = True

    def on_resize(self) -> None:
        """More room shows more columns; the selected row stays in sight."""
        if self._page is not None:
            self.show(self._page, is_chosen=self._is_chosen)
            self.call_after_refresh(self._scroll_cursor_into_view)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter, or a click on the row under the cursor: that one, wherever it may be by now."""
        event.stop()
        row = next((row for row in self._rows if row.key == event.row_key.value), None)
        if row is None:
            return
        if not self._opens:
            self.post_message(self.RowChosen(row))
        elif row.path:
            self.post_message(PathChosen(row.path))

    def _fitting(self, columns: tuple[Column, ...], rows: list[Row]) -> list[Column]:
        """The essential columns, and of the others those that have room, by importance."""
        room = self._room() - SCROLLBAR_WIDTH
        most = {column.id: ELASTIC_MIN for column in columns if column.is_elastic}
        names = {column.id for column in columns if column.is_long}
        most |= dict.fromkeys(names, max(NAME_MIN, int(room * NAME_SHARE)))
        taken: dict[str, int] = {}
        sorted_by = None if self._page is None else self._page.sorted_by
        for column in sorted(columns, key=lambda it: (it is not sorted_by, it.rank)):
            natural = self._width(column, rows)
            width = min(natural, most.get(column.id, natural))
            is_wanted = column.rank == 1 or column is sorted_by
            if is_wanted or room >= width + 2 or self._is_chosen:
                taken[column.id] = width
                room -= width + 2
        self._room_of = {}
        for name in (it.id for it in columns if it.id in taken and it.id in most):
            wider = max(self._widths[name] - taken[name], 0) if name in names else max(room, 0)
            self._room_of[name] = taken[name] + min(wider, max(room, 0))
            room -= self._room_of[name] - taken[name]
        return [column for column in columns if column.id in taken]

    def _width(self, column: Column, rows: list[Row]) -> int:
        """The widest text that it has shown: columns must not come and go with figures."""
        mark = len(MARK) if self.marked and self._is_first(column) else 0
        texts = (row.cell(column.id).shaped(is_number=column.is_number) for row in rows)
        widest = max(map(cell_len, texts), default=0) + mark
        known = self._widths.get(column.id, 0)
        self._widths[column.id] = max(widest, len(column.title), known)
        return self._widths[column.id]

    def _room(self) -> int:
        return self.size.width or self.app.size.width

    def _refill(self, columns: list[Column], rows: list[Row], *, is_rebuilt: bool = False) -> None:
        """All rows anew, with ``is_rebuilt`` the columns as well; the cursor stays with its row."""
        pointed, line, top = self.pointed, self.cursor_row, int(self.scroll_y)
        key = self._gone if pointed is None else pointed.key
        with self.app.batch_update():
            self.clear(columns=is_rebuilt)
            for column in columns if is_rebuilt else ():
                title = Text(column.title, justify="right" if column.is_number else "left")
                self.add_column(title, key=column.id)
            for row in rows:
                self.add_row(*(self._text(column, row) for column in columns), key=row.key)
            self._rows = rows
            self._shown = tuple(column.id for column in columns)
            if key:
                self._return_to(key, line, top)

    def _return_to(self, key: str, line: int, top: int) -> None:
        """To the row of that key, which was in ``line`` while ``top`` was the first in sight."""
        keys = _keys(self._rows)
        is_same = key in keys
        at = keys.index(key) if is_same else max(min(line, len(keys) - 1), 0)
        self._gone = "" if is_same else key
        self.stand(Coordinate(at, 0), is_same=is_same)
        height = max(1, self.scrollable_content_region.height - self.header_height)
        if top <= line < top + height:
            top = min(max(top, at - height + 1), at)
        self.scroll_to(y=top, animate=False, immediate=True)

    def _update(self, columns: list[Column], rows: list[Row]) -> None:
        """Write the cells that changed, then paint their rows: while cells change, Textual finds
        the place of one by going through all rows."""
        changed = set()
        for index, (old, new) in enumerate(zip(self._rows, rows, strict=True)):
            for place, column in enumerate(columns):
                if old.cell(column.id) != new.cell(column.id):
                    text = self._text(column, new)
                    is_wider = text.cell_len > self.ordered_columns[place].content_width
                    self.write_cell(Coordinate(index, place), text, is_wider=is_wider)
                    changed.add(index)
        self._rows = rows
        first = int(self.scroll_y)
        for index in changed.intersection(range(first, first + self.size.height + 1)):
            self.refresh_row(index)

    def _text(self, column: Column, row: Row) -> Text:
        cell = row.cell(column.id)
        text = cell_text(cell, is_number=column.is_number)
        if row.key in self._marked_shown and self._is_first(column):
            text = Text(MARK + text.plain, style=text.style)
        room = self._room_of.get(column.id, text.cell_len)
        if text.cell_len > room and column.is_long:
            return Text(
                cut_middle(text.plain, room, cells=cell_len), style=text.style, no_wrap=True
            )
        text.truncate(room, overflow="ellipsis")
        return text

    def _is_first(self, column: Column) -> bool:
        return self._page is not None and column.id == self._page.columns[0].id


def _with_sorted(page: Page) -> tuple[Column, ...]:
    """Its columns, and the one that it is sorted by where that was left out."""
    if page.sorted_by is None or page.sorted_by in page.columns:
        return page.columns
    return (*page.columns, page.sorted_by)


def _keys(rows: list[Row]) -> list[str]:
    return [row.key for row in rows]
