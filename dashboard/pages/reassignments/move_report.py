"""The report of a finished move, with its files."""

from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update

from control.operations.errors import OperationError
from control.views.move_report.documents import WRITERS, markdown
from control.views.move_report.reading import read_report
from control.views.paths import ViewPath
from dashboard import ids
from dashboard.components.parts import crumbs, empty
from dashboard.context import PageContext


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """Links to its files, then all of it."""
    move = path.params["move"]
    links = [
        html.A(f"Save as {kind.upper()}", href=f"/report/{move}.{kind}", download=f"{move}.{kind}")
        for kind in WRITERS
    ]
    return [
        crumbs([("Moves", "moves"), (move, f"moves/{move}"), ("Report", "")]),
        html.Div(links, className="actions"),
        dcc.Store(id=ids.REPORT_MOVE, data=move),
        html.Div(id=ids.REPORT_BODY, className="card"),
    ]


def register(app: Dash, context: PageContext) -> None:
    """Read once, when the move is known."""

    @app.callback(
        Output(ids.REPORT_BODY, "children"),
        Input(ids.MOVES_PUSHED, "data"),
        Input(ids.REPORT_MOVE, "data"),
        State(ids.REPORT_BODY, "children"),
        websocket=True,
    )
    def fill(_: object, move: str, shown: Any) -> Any:
        state = context.actions.moves.get(move)
        if state is None:
            trouble = context.actions.moves.trouble
            return empty("No move of this name is known yet", trouble or "g r lists all moves")
        if isinstance(shown, dict) and shown.get("type") == "Markdown":
            return no_update
        try:
            report = read_report(state, context.reader, cluster=context.cluster)
        except OperationError as error:
            return empty("There is no report yet", str(error))
        return dcc.Markdown(markdown(report), className="report")
