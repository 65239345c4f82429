"""The map of brokers and topics, live, wherever a page shows it."""

from typing import Any

from dash import ClientsideFunction, Dash, Input, Output

from control.views.snapshot import OperatorSnapshot
from dashboard import ids
from dashboard.context import Screen
from dashboard.figures import heat
from dashboard.figures.base import Figure
from dashboard.shown import AT_ONCE, Look, Time, answer


def register_heat_map(app: Dash, screen: Screen, figure: str, measure: str) -> None:
    """Draw ``figure`` by the switch ``measure``; a click opens the topic."""
    in_browser: Any = app.clientside_callback
    in_browser(ClientsideFunction("partiscope", "openTopic"), Input(figure, "clickData"))

    @app.callback(
        Output(figure, "figure"),
        Input(ids.TICK, "data"),
        Input(measure, "value"),
        Input(ids.SCHEME, "data"),
        Input(ids.TIME, "data"),
        # The first one comes with the view.
        prevent_initial_call=True,
        websocket=True,
    )
    def draw(tick: Any, chosen: str, scheme: str | None, time: Time | None) -> Any:
        return heat_map(screen, chosen, Look(time or {}, scheme or "light"), tick)


def heat_map(screen: Screen, measure: str, look: Look, tick: Any = AT_ONCE) -> Figure:
    """Its figure."""

    def build(snapshot: OperatorSnapshot) -> Figure:
        return heat.heat_figure(snapshot.heat_map(measure), look.scheme)

    return answer(screen, tick, look.time, ("heat", measure, look.scheme), build)
