"""Common parts of the pages of a topic, a broker and a group: tiles and a chart, live."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dash import Dash, Input, Output

from control.views.series import Span
from control.views.snapshots.snapshot import OperatorSnapshot
from dashboard import ids
from dashboard.components.markup import MARKUP, markup
from dashboard.context import PageContext
from dashboard.figures.base import Figure
from dashboard.figures.drawing import drawn
from dashboard.live.displayed_snapshot import Time, answer, chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """``path``, ``tiles`` and ``chart`` are ids: of the store with the name of what is shown, and
    of what is filled."""

    path: str
    tiles: str
    chart: str
    build_tiles: Callable[[OperatorSnapshot, Any], Any]
    build_figure: Callable[[PageContext, Any, str, Span], Figure]
    """Of the name, in a colour scheme, over the span."""


def register_detail(app: Dash, context: PageContext, detail: Detail) -> None:
    """Fill both with every version."""

    @app.callback(
        Output(detail.tiles, MARKUP),
        Input(ids.TICK, "data"),
        Input(detail.path, "data"),
        Input(ids.TIME, "data"),
        websocket=True,
    )
    def fill(tick: Any, name: Any, time: Time | None) -> str:
        def build(snapshot: OperatorSnapshot) -> str:
            return markup(detail.build_tiles(snapshot, name))

        return answer(context, tick, time, (detail.tiles, name), build)

    @app.callback(
        Output(detail.chart, "figure"),
        Input(ids.CHART_TICK, "data"),
        Input(detail.path, "data"),
        Input(ids.SCHEME, "data"),
        Input(ids.TIME, "data"),
        websocket=True,
    )
    def draw(tick: Any, name: Any, scheme: str | None, time: Time | None) -> Any:
        colors = scheme or "light"

        def build(_: OperatorSnapshot) -> Figure:
            span = context.span(time)
            return drawn(lambda: detail.build_figure(context, name, colors, span), colors)

        return chart(context, tick, time, (detail.chart, name, colors), build)
