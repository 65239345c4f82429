"""The map: broker × topic in full width; a click opens what it shows."""

from typing import Any

from dash import ClientsideFunction, Dash, Input, Output

from control.views.paths import ViewPath
from control.views.snapshot import OperatorSnapshot
from dashboard import ids
from dashboard.components.parts import card, crumbs, graph, measure_switch
from dashboard.context import Screen
from dashboard.figures import heat
from dashboard.shown import Time, answer


def layout(screen: Screen, path: ViewPath) -> list[Any]:
    """One chart, one switch."""
    switch = measure_switch(ids.MAP_MEASURE, heat.MEASURES, "size_bytes")
    return [
        crumbs([("Map", "map")]),
        card("Broker × topic, on a log scale", graph(ids.MAP_FIGURE, 420), extra=switch),
    ]


def register(app: Dash, screen: Screen) -> None:
    """Draw it, live; a click opens the topic."""
    in_browser: Any = app.clientside_callback
    in_browser(ClientsideFunction("partiscope", "openTopic"), Input(ids.MAP_FIGURE, "clickData"))

    @app.callback(
        Output(ids.MAP_FIGURE, "figure"),
        Input(ids.TICK, "data"),
        Input(ids.MAP_MEASURE, "value"),
        Input(ids.SCHEME, "data"),
        Input(ids.TIME, "data"),
        websocket=True,
    )
    def draw(tick: Any, measure: str, scheme: str | None, time: Time | None) -> Any:
        shown = scheme or "light"

        def build(snapshot: OperatorSnapshot) -> Any:
            return heat.heat_figure(snapshot.heat_map(measure), shown)

        return answer(screen, tick, time, ("heat", measure, shown), build)
