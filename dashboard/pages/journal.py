"""The journal: who changed what, when and why, live; a move opens."""

from typing import Any, Final
from urllib.parse import urlencode

from dash import Dash, Input, Output, html

from control.views.paths import ViewPath
from control.views.tables.export import FORMATS
from control.views.tables.journal import JOURNAL, matching
from dashboard import ids
from dashboard.components.forms import text_field
from dashboard.components.markup import RELOADS
from dashboard.components.parts import attributes, card, crumbs, empty, warnings
from dashboard.components.tables import rows_table
from dashboard.context import PageContext

LINES_SHOWN_MAX: Final = 500
FILTER_DEBOUNCE_MS: Final = 200


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """A filter, and one table."""
    field = text_field(
        ids.JOURNAL_FILTER,
        "Filter",
        "words of a line: a name, an operation, failed …",
        path.query.get("q", ""),
        debounce=FILTER_DEBOUNCE_MS,
        className="filter-field",
    )
    return [
        crumbs([("Journal", "journal")]),
        card("Every change, the newest first", field, html.Div(id=ids.JOURNAL_TABLE)),
    ]


def register(app: Dash, context: PageContext) -> None:
    """Filled with every event, and as the filter is typed."""

    @app.callback(
        Output(ids.JOURNAL_TABLE, "children"),
        Input(ids.MOVES_PUSHED, "data"),
        Input(ids.JOURNAL_FILTER, "value"),
        websocket=True,
    )
    def fill(_: object, words: str | None) -> Any:
        return journal_block(context, words or "")


def journal_block(context: PageContext, words: str = "") -> Any:
    """The lines that match, or why there are none."""
    moves = context.actions.moves
    if not moves.journal and moves.trouble:
        return empty("The journal cannot be read at the moment", moves.trouble)
    notes: list[Any] = warnings(moves.unreadable)
    if not moves.journal:
        nothing = empty("Nothing was changed yet", "Moves, new topics and resets are listed here")
        return [*notes, nothing]
    found = matching(moves.journal, words)
    shown = found[:LINES_SHOWN_MAX]
    more = f"the newest {len(shown)} of {len(found):,}" if len(shown) < len(found) else ""
    notes.append(
        html.P([more and f"{more}; ", "All as a file: ", *_files(words)], className="note")
    )
    return [*notes, rows_table([JOURNAL.row(line) for line in shown], JOURNAL.columns)]


def _files(words: str) -> list[Any]:
    query = f"?{urlencode({'q': words})}" if words else ""
    links = [
        html.A(kind.upper(), href=f"/export/journal.{kind}{query}", **attributes({RELOADS: "yes"}))
        for kind in FORMATS
    ]
    return [links[0], " · ", *links[1:]]
