"""The map of brokers and topics, live, wherever a page shows it."""

from typing import Any

from dash import ClientsideFunction, Dash, Input, Output

from control.views.snapshot import OperatorSnapshot
from dashboard import ids
from dashboard.context import Screen
from dashboard.figures import heat
from dashboard.shown import Time, answer


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
        websocket=True,
    )
    def draw(tick: Any, chosen: str, scheme: str | None, time: Time | None) -> Any:
        colors = scheme or "light"

        def build(snapshot: OperatorSnapshot) -> Any:
            return heat.heat_figure(snapshot.heat_map(chosen), colors)

        return answer(screen, tick, time, ("heat", chosen, colors), build)
