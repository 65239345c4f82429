"""Moves: every reassignment, running and past."""

from typing import Any, Final

from dash import Dash, Input, Output, html

from control.model.command_line import typed
from control.views.paths import ViewPath
from control.views.tables.moves import MOVES, move_row
from dashboard import ids
from dashboard.components.parts import card, crumbs, empty, warnings
from dashboard.components.tables import rows_table
from dashboard.context import PageContext

ROWS_MAX: Final = 200


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """All moves."""
    return [crumbs([("Moves", "moves")]), card("", html.Div(id=ids.MOVES_TABLE))]


def register(app: Dash, context: PageContext) -> None:
    """The live list."""

    @app.callback(
        Output(ids.MOVES_TABLE, "children"),
        Input(ids.MOVES_PUSHED, "data"),
        websocket=True,
    )
    def fill_list(_: object) -> Any:
        return moves_block(context)


def moves_block(context: PageContext) -> Any:
    """The newest of them, or why there is none."""
    moves, trouble = context.actions.moves.newest_first, context.actions.moves.trouble
    unreadable = context.actions.moves.unreadable
    if not moves and trouble:
        return empty("Moves cannot be read at the moment", trouble)
    if not moves:
        nothing = empty("No reassignments yet", "Plan moves: press g n, or R on a topic")
        return html.Div([*warnings(unreadable), nothing])
    now_ms = context.now_ms()
    notes: list[Any] = warnings(trouble and f"as they were; no news: {trouble}", unreadable)
    if len(moves) > ROWS_MAX:
        words = f"the newest {ROWS_MAX} of {len(moves):,}; `partiscope moves` lists all"
        notes.append(html.P(typed(words), className="note"))
    table = rows_table([move_row(move, now_ms=now_ms) for move in moves[:ROWS_MAX]], MOVES.columns)
    return html.Div([*notes, table])
