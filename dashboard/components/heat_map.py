"""The map of brokers and topics, live, wherever a page shows it."""

from typing import Any

from dash import Dash, Input, Output, html

from control.views.snapshots.snapshot import OperatorSnapshot
from dashboard import ids
from dashboard.components.heat_box import heat_box
from dashboard.components.markup import MARKUP, markup, markup_box
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import AT_ONCE, Look, Time, answer


def register_heat_map(app: Dash, context: PageContext, box: str, measure: str) -> None:
    """Fill ``box`` by the switch ``measure``."""

    @app.callback(
        Output(box, MARKUP),
        Input(ids.TICK, "data"),
        Input(measure, "value"),
        Input(ids.SCHEME, "data"),
        Input(ids.TIME, "data"),
        # The first one comes with the view.
        prevent_initial_call=True,
        websocket=True,
    )
    def draw(tick: Any, chosen: str, scheme: str | None, time: Time | None) -> str:
        return heat_markup(context, chosen, Look(time or {}, scheme or "light"), tick)


def heat_map(context: PageContext, box: str, measure: str, look: Look) -> html.Div:
    """``box`` with the map in it."""
    return markup_box(heat_markup(context, measure, look, AT_ONCE), id=box, className="heat-place")


def heat_markup(context: PageContext, measure: str, look: Look, tick: Any) -> str:
    """The content of its box."""

    def build(snapshot: OperatorSnapshot) -> str:
        return markup(heat_box(snapshot.heat_map(measure), look.scheme))

    return answer(context, tick, look.time, ("heat", measure, look.scheme), build)
