"""The journal: who changed what, when and why, live; a move opens."""

from typing import Any

from dash import Dash, Input, Output, html

from control.views.paths import ViewPath
from control.views.tables.journal import JOURNAL
from dashboard import ids
from dashboard.components.parts import card, crumbs, empty, warnings
from dashboard.components.tables import rows_table
from dashboard.context import PageContext

LINES_SHOWN_MAX = 500


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """One table."""
    return [
        crumbs([("Journal", "journal")]),
        card("Every change, the newest first", html.Div(id=ids.JOURNAL_TABLE)),
    ]


def register(app: Dash, context: PageContext) -> None:
    """Filled with every event."""

    @app.callback(
        Output(ids.JOURNAL_TABLE, "children"), Input(ids.MOVES_PUSHED, "data"), websocket=True
    )
    def fill(_: object) -> Any:
        return journal_block(context)


def journal_block(context: PageContext) -> Any:
    """The lines, or why there are none."""
    moves = context.actions.moves
    if not moves.journal and moves.trouble:
        return empty("The journal cannot be read at the moment", moves.trouble)
    notes: list[Any] = warnings(moves.unreadable)
    if not moves.journal:
        nothing = empty("Nothing was changed yet", "Moves, new topics and resets are listed here")
        return [*notes, nothing]
    rows = [JOURNAL.row(line) for line in moves.journal[:LINES_SHOWN_MAX]]
    if len(moves.journal) > LINES_SHOWN_MAX:
        more = f"the newest {LINES_SHOWN_MAX} of {len(moves.journal):,}"
        notes.append(html.P(more, className="note"))
    return [*notes, rows_table(rows, JOURNAL.columns)]
