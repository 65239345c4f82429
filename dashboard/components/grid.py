"""The large tables: the server (``dashboard.server.table_rows``) filters and sorts their rows, and
sends them block by block.

The grid keeps scroll place, selection and column widths while its rows are refreshed, since rows
have identities (their keys) and blocks are refreshed in place.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final
from uuid import uuid4

import dash_ag_grid as dag
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from control.operations.catalogue import forms_about
from control.operations.catalogue.forms import FieldKind
from control.operations.catalogue.several import takes_several
from control.views.snapshots.snapshot import LISTS
from control.views.tables.column import Column, ColumnError, Table, chosen
from control.views.tables.commits import COMMITS
from control.views.tables.export import FORMATS
from control.views.tables.filters import column_name
from control.views.tables.groups import GROUPS
from control.views.tables.topics import TOPICS
from dashboard import ids
from dashboard.components.markup import MARKUP
from dashboard.components.operation_form import operation_button
from dashboard.components.parts import attributes
from dashboard.theme import DARK, LIGHT

_MARKED: Final = {TOPICS.name: FieldKind.TOPIC, GROUPS.name: FieldKind.GROUP}
"""Lists whose rows can be marked, and what operations on them are about."""
_MARK_COLUMN: Final[dict[str, Any]] = {
    "colId": "mark",
    "headerName": "",
    "cellRenderer": "MarkBox",
    "cellClass": "rank-1 mark-cell",
    "pinned": "left",
    "width": 32,
    "minWidth": 32,
    "resizable": False,
    "sortable": False,
}
_ORDERS: Final = ("asc", "desc")
BLOCK_ROWS: Final = 100
"""Asked for at once; over the border of two blocks the browser asks for both side by side."""
WIDTH_MIN: Final = 40
"""Of a column, in pixels."""
CELL_PADDING: Final = 7
"""At each side of a cell, in pixels (`PADDING_PX` in ``fit.js``)."""
_THEME_SIZES: Final = (
    "fontFamily: 'inherit', fontSize: 13, rowHeight: 34, headerHeight: 36,"
    f" cellHorizontalPadding: {CELL_PADDING}"
)
GRID_THEME: Final = (
    f"themeQuartz.withParams({{{_THEME_SIZES}, accentColor: '{LIGHT.leader}',"
    f" foregroundColor: '{LIGHT.text}', backgroundColor: '{LIGHT.surface}'}}, 'light')"
    f".withParams({{{_THEME_SIZES}, accentColor: '{DARK.leader}', browserColorScheme: 'dark',"
    f" foregroundColor: '{DARK.text}', backgroundColor: '{DARK.surface}'}}, 'dark')"
)


def grid_block(
    table: Table,
    *,
    query: Mapping[str, str],
    scope: str | None = None,
    without: str = "",
) -> html.Div:
    """Filter field, counts and the grid itself; ``query`` is that of the view's path, the
    column ``without`` says the same in every row of ``scope``."""
    kind = table.name
    shown = table.without(without)
    return html.Div(
        [
            dcc.Store(id=ids.grid_scope(kind), data=scope),
            html.Div(
                [
                    html.Label("filter", htmlFor=ids.grid_filter(kind), className="unseen"),
                    _filter_field(kind, table.example, query),
                    _count_line(kind),
                    *([_internal_switch(query)] if LISTS[kind].hidden_by else []),
                    _column_choice(kind, shown, query.get("cols", "")),
                    *_exports(),
                ],
                className="filter-line",
            ),
            *([_marks_bar(kind)] if kind in _MARKED else []),
            _grid(kind, shown, query.get("sort", "")),
        ],
        className="grid-block",
    )


def register_grid(app: Dash, kind: str) -> None:
    """Registers the browser's part of a kind of table; ``table_rows`` sends its rows."""
    in_browser: Any = app.clientside_callback
    in_browser(
        ClientsideFunction("partiscope", "columnsChosen"),
        Output(ids.grid_columns_word(kind), "children"),
        Input(ids.grid_columns(kind), "value"),
        State(ids.grid_columns(kind), "options"),
        State(ids.grid_columns(kind), "id"),
    )
    in_browser(
        ClientsideFunction("partiscope", "rowsWanted"),
        Input(ids.grid(kind), "getRowsRequest"),
        State(ids.grid_scope(kind), "data"),
        State(ids.grid(kind), "id"),
        # Should the first question be there before this callback is, nobody asks again.
        prevent_initial_call=False,
    )


def _marks_bar(kind: str) -> html.Div:
    """Buttons that act on marked rows (`assets/modules/marks.js`)."""
    forms = filter(takes_several, forms_about(_MARKED[kind]))
    acts = [operation_button(form, about="several") for form in forms]
    every = html.Button("mark all", className="export mark-all", title="All that match (*)")
    none = html.Button("mark none", className="export mark-none")
    count = html.Span("", className="marks-count", role="status")
    of_rows = html.Span([count, none, *acts], className="marks-of-rows", hidden=True)
    return html.Div(
        [every, of_rows], className="marks-bar actions", **attributes({"data-kind": kind})
    )


def _filter_field(kind: str, example: str, query: Mapping[str, str]) -> html.Div:
    """A field of the browser's own: one that Dash keeps gets its text back late, over letters that
    were typed meanwhile. Tables listen to the field itself (`assets/modules/grids.js`)."""
    given = {
        "id": ids.grid_filter(kind),
        "type": "search",
        "class": "filter-input",
        "value": query.get("q", ""),
        "placeholder": f"filter, e.g. {example}   ( / )",
        "autocomplete": "off",
        "spellcheck": "false",
    }
    words = " ".join(f'{name}="{escape(value)}"' for name, value in given.items())
    # Another view's field begins anew, with what its path says.
    return html.Div(
        key=uuid4().hex, className="filter-place", **attributes({MARKUP: f"<input {words}>"})
    )


def _internal_switch(query: Mapping[str, str]) -> html.Div:
    """Lists internal topics or groups too; `assets/modules/grids.js` keeps it in the address."""
    checked = " checked" if query.get("internal") == "yes" else ""
    words = (
        '<label title="Also those whose names begin with __ (H)">'
        f'<input type="checkbox"{checked}> internal</label>'
    )
    return html.Div(key=uuid4().hex, className="internal-switch", **attributes({MARKUP: words}))


def _count_line(kind: str) -> html.Span:
    return html.Span("", id=ids.grid_count(kind), className="count", role="status")


def _column_choice(kind: str, columns: Sequence[Column], wanted: str) -> html.Details:
    """Which columns are shown: those that the path names, else (the browser sees to that) those
    that were chosen last, else those that have room."""
    others = columns[1:]
    problem = ""
    try:
        shown = [column.id for column in chosen(columns, wanted) if column in others]
    except ColumnError as error:
        shown, problem = [column.id for column in others], str(error)
    return html.Details(
        [
            html.Summary(
                "columns", id=ids.grid_columns_word(kind), title="Which columns to show (l)"
            ),
            html.Div(
                [
                    html.P(problem, className="tone-critical") if problem else None,
                    html.Button("all that fit", className="export columns-fit"),
                    dcc.Checklist(
                        id=ids.grid_columns(kind),
                        options=[{"value": column.id, "label": column.title} for column in others],
                        value=shown,
                        className="column-list",
                    ),
                ]
            ),
        ],
        className="column-choice",
        open=bool(problem),
    )


def _exports() -> list[html.Button]:
    return [
        html.Button(
            name,
            className="export",
            title=f"Filtered rows as {name.upper()}" + (" (e)" if name == "csv" else ""),
            **attributes({"data-export": name}),
        )
        for name in FORMATS
    ]


def _grid(kind: str, columns: Sequence[Column], sort: str) -> dag.AgGrid:
    return dag.AgGrid(
        id=ids.grid(kind),
        rowModelType="infinite",
        columnDefs=[
            *([_MARK_COLUMN] if kind in _MARKED else []),
            *(_column_def(it, sort, is_first=it is columns[0]) for it in columns),
        ],
        defaultColDef={
            "resizable": True,
            "suppressMovable": True,
            # One function: the grid interprets what it is given as text, for every cell anew.
            "cellStyle": {"function": "toneStyle(params)"},
        },
        getRowId="params.data.key",
        rowClassRules={"awaited": "!params.data"},
        eventListeners={
            "gridReady": ["fitColumns(params)"],
            "gridSizeChanged": ["fitColumns(params)"],
            "columnResized": ["columnResized(params)"],
            "modelUpdated": [
                "fitColumns(params)",
                "fitHeight(params)",
                *(["selectRow(params)"] if kind == COMMITS.name else []),
            ],
            "rowDoubleClicked": ["openRow(params)"],
            "cellKeyDown": ["openRowOnEnter(params)"],
            "cellClicked": ["openRowOfFirstColumn(params)"],
            "sortChanged": ["keepSort(params)", "fitColumns(params)"],
            "selectionChanged": ["rememberRow(params)"],
        },
        dashGridOptions={
            "theme": {"function": GRID_THEME},
            "cacheBlockSize": BLOCK_ROWS,
            # A refresh loads every block that is kept, one after another, and a jump waits for it:
            # two blocks cover any window.
            "maxBlocksInCache": 2,
            # A window over the border of two blocks waits for both at once.
            "maxConcurrentDatasourceRequests": 2,
            "infiniteInitialRowCount": 1,
            "blockLoadDebounceMillis": 10,
            # Rows that are drawn beyond the window: a jump draws them as well.
            "rowBuffer": 1,
            "rowSelection": {
                "mode": "singleRow",
                "checkboxes": False,
                "enableClickSelection": True,
            },
            "animateRows": False,
            "suppressColumnMoveAnimation": True,
            # The browser's own: those of the grid are built for every cell.
            "enableBrowserTooltips": True,
            "suppressDragLeaveHidesColumns": True,
            "enableCellTextSelection": True,
            "localeText": {"noRowsToShow": "Nothing to show"},
        },
        className="grid",
        style={"height": None, "width": "100%"},
    )  # fmt: skip


def _column_def(column: Column, sort: str, *, is_first: bool) -> dict[str, Any]:
    """Widths, and which columns have room: ``assets/modules/fit.js``."""
    ordered = bool(column.sort)
    classes = [f"rank-{column.rank}"]
    classes += ["number"] if column.is_number else []
    classes += ["long"] if column.is_long else []
    shown: dict[str, Any] = {
        "field": column.id,
        "colId": column.id,
        "headerName": column.title,
        "headerTooltip": column.help or None,
        "tooltipField": None if column.is_number else column.id,
        "sortable": ordered,
        "sortingOrder": [*(_ORDERS[::-1] if column.begins_with_largest else _ORDERS), None],
        "cellClass": " ".join(classes),
        "headerClass": "ag-right-aligned-header" if column.is_number else "",
        "pinned": "left" if is_first else None,
        "minWidth": WIDTH_MIN,
    }
    if column.is_long and not column.is_elastic:
        shown["valueFormatter"] = {"function": "cutMiddle(params)"}
    if column_name(sort.removeprefix("-")) in column.filters and ordered:
        shown["sort"] = "desc" if sort.startswith("-") else "asc"
    return shown
