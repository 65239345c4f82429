"""Views that are one table: brokers, topics, partitions, groups, findings."""

from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import unquote

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from control.views.paths import ViewPath
from control.views.snapshots.snapshot import LISTS, OperatorSnapshot, list_page
from control.views.tables.export import ExportError, export
from control.views.tables.query import Page, TableQuery
from tui.screens.base import ViewScreen, heading
from tui.screens.dialogs.choose_columns import ColumnsScreen, SortScreen
from tui.terminal_session import TerminalSession
from tui.widgets.filter_line import FilterLine
from tui.widgets.row_table import RowTable

ROWS_MAX: Final = 500
"""Rows in the terminal at once; the filter finds the others."""


class TableScreen(ViewScreen):
    """A filter line, a table, and how many rows it shows of how many."""

    AUTO_FOCUS: ClassVar[str | None] = "RowTable"
    """From the first moment: a key that comes with the view is no text of its filter."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", show=True),
        Binding("s", "sort", "sort", show=True),
        Binding("l", "columns", "columns", show=False),
        *(Binding(str(n % 10), f"sort_place({n})", show=False) for n in range(1, 11)),
        Binding("e", "export('csv')", "export", show=False),
        Binding("J", "export('json')", "export JSON", show=False),
    ]

    KIND: ClassVar[str] = ""
    """Name of its list; empty: the view has the same name."""

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        self._filter = path.query.get("q", "")
        self._sort = path.query.get("sort", "")
        self._chosen = path.query.get("cols", "")
        self._columns: list[tuple[str, str]] = []
        self._numbers: set[str] = set()
        self._prepared: tuple[OperatorSnapshot, TableQuery, Page] | None = None

    @property
    def topic_here(self) -> str:
        """Topic of the path, or of the row under the cursor."""
        return self.path.params.get("topic", "") or _pointed(self, "topic")

    @property
    def partition_here(self) -> str:
        """Partition of the row under the cursor, in a table of partitions."""
        return _pointed(self, "partition")

    @property
    def group_here(self) -> str:
        """Group of the path, or of the row under the cursor."""
        return self.path.params.get("group", "") or _pointed(self, "group")

    @property
    def broker_here(self) -> str:
        """The broker of the path, or of the row under the cursor."""
        return self.path.params.get("broker", "") or _pointed(self, "broker")

    def compose_body(self) -> ComposeResult:
        """Filter, title, table."""
        example = LISTS[self.KIND or self.path.view].kind.example
        hint = f"filter, e.g. {example}"
        filter_line = FilterLine(self._filter, narrows=True, placeholder=hint, id="filter")
        filter_line.display = bool(self._filter)
        yield filter_line
        yield Static(id="table-title")
        yield RowTable(id="table")

    @property
    def marks_words(self) -> str:
        """Words of the title about marked rows."""
        return ""

    def page(self, snapshot: OperatorSnapshot, query: TableQuery) -> Page:
        """The rows of this view."""
        return list_page(snapshot, self.path.view, query)

    def prepare(self, snapshot: OperatorSnapshot) -> None:
        """The rows."""
        super().prepare(snapshot)
        query = self._query(limit=ROWS_MAX)
        self._prepared = (snapshot, query, self.page(snapshot, query))

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Rows by the present filter and order."""
        query = self._query(limit=ROWS_MAX)
        prepared, self._prepared = self._prepared, None
        is_prepared = prepared is not None and prepared[0] is snapshot and prepared[1] == query
        page = prepared[2] if prepared and is_prepared else self.page(snapshot, query)
        all_columns = page.every_column
        self._columns = [(column.id, column.title) for column in all_columns]
        self._numbers = {column.id for column in all_columns if column.begins_with_largest}
        self.put("#table-title", _title(self.path, page, query).append(self.marks_words))
        table = self.query_one(RowTable)
        table.show(page, is_chosen=bool(self._chosen))

    def _query(self, *, limit: int = 0) -> TableQuery:
        return TableQuery(
            filter=self._filter,
            sort=self._sort,
            limit=limit,
            columns=self._chosen,
            hides_internal=self.path.query.get("internal") != "yes",
        )

    def action_filter(self) -> None:
        """Open the filter line."""
        line = self.query_one("#filter", Input)
        line.display = True
        line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as it is typed; an empty one that was left closes its line."""
        self._filter = event.value
        event.input.display = bool(event.value) or event.input.has_focus
        self.show_anew()

    def on_input_submitted(self) -> None:
        """Back to the table; an empty filter closes its line."""
        self.query_one("#filter", Input).display = bool(self._filter)
        self.query_one(RowTable).focus()

    def on_filter_line_left(self) -> None:
        """As Enter."""
        self.on_input_submitted()

    def action_sort(self) -> None:
        """Choose a column to sort by."""
        digits = {name: str(n % 10) for n, name in enumerate(self._digits[:10], 1)}
        self.app.push_screen(SortScreen(self._columns, self._sort, digits), self._chosen_now)

    def action_sort_place(self, place: int) -> None:
        """``1`` to ``9``, ``0``: by that column of the table; again turns the order.

        They count all columns, or those that were chosen, so that a digit means the same at every
        width. Numbers begin with the largest, times that are left with the soonest, texts with the
        first, a status with the worst.
        """
        names = self._digits
        if place <= len(names):
            name = names[place - 1]
            ways = (f"-{name}", name) if name in self._numbers else (name, f"-{name}")
            self._chosen_now(ways[self._sort == ways[0]])

    @property
    def _digits(self) -> list[str]:
        """Columns that ``1``, ``2`` … sort by."""
        known = [name for name, _ in self._columns]
        chosen = [name for name in self._chosen.split(",") if name in known]
        return list(dict.fromkeys([*known[:1], *chosen])) if chosen else known

    def action_columns(self) -> None:
        """Which columns, for as long as this view is open; they are part of the link."""
        shown = self.query_one(RowTable).shown
        chooser = ColumnsScreen(self._columns, shown)
        self.app.push_screen(chooser, lambda columns: self._chosen_now(columns=columns))

    def action_export(self, format: str) -> None:  # noqa: A002 (as the page's path has it)
        """All rows that the filter leaves, into the working directory."""
        snapshot = self.session.snapshot
        query = self._query()
        place = str(ViewPath(view=self.path.view, params=self.path.params)).replace("/", "-")
        target = Path(f"partiscope-{place}.{format}")
        try:
            pieces = export(lambda wanted: self.page(snapshot, wanted), query, format=format)
            target.write_text("".join(pieces))
        except (ExportError, OSError) as error:
            self.notify(f"nothing was exported: {error}", severity="error")
            return
        self.notify(f"wrote {target.resolve()}")

    def _chosen_now(self, sort: str | None = None, *, columns: str | None = None) -> None:
        """An order, or columns; None: as it was."""
        if sort is None and columns is None:
            return
        self._sort = self._sort if sort is None else sort
        self._chosen = self._chosen if columns is None else columns
        self.show_anew()

    def show_anew(self) -> None:
        """By the present filter, order and columns, from the first row; its path says so."""
        query = {
            **self.path.query, "q": self._filter, "sort": self._sort, "cols": self._chosen
        }  # fmt: skip
        self.path = ViewPath(view=self.path.view, params=self.path.params, query=query)
        self.query_one(RowTable).begin_again()
        self.show(self.session.snapshot)


def _pointed(screen: ViewScreen, column: str) -> str:
    """A value of the row under the cursor; a key may come before the table is there."""
    tables = screen.query(RowTable)
    return tables.first().name_of(column) if tables else ""


_KINDS: Final = {
    "broker": "PARTITIONS ON BROKER",
    "topic": "PARTITIONS OF",
    "group": "PARTITIONS READ BY",
}
"""What the table of such a view holds."""


def _title(path: ViewPath, page: Page, query: TableQuery) -> Text:
    """Which table, how much of it, in which order; or why not."""
    kind, *names = str(ViewPath(view=path.view, params=path.params)).split("/")
    place = " ".join((_KINDS.get(path.view, kind.upper()), *map(unquote, names)))
    if page.problem:
        return heading(place, f" ▲ {page.problem}", "yellow")
    shown = f"{len(page.rows)} of {page.matching}" if len(page.rows) < page.matching else ""
    filtered = f"{page.matching} of {page.total} match" if query.filter else f"{page.total}"
    order = ""
    if page.sorted_by is not None:
        order = f"  by {page.sorted_by.title} {'↓' if query.sort[:1] == '-' else '↑'}"
    return heading(place, f" {shown or filtered}{order}")
