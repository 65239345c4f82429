"""The metrics job: is it in time, what does it carry, what did it miss?"""

from typing import Any

from dash import Dash, Input, Output

from control.views import series
from control.views.cluster.metrics_job import job_figures
from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from dashboard import ids
from dashboard.components.markup import MARKUP, markup, markup_box
from dashboard.components.parts import card, crumbs, empty, graph, tile
from dashboard.context import PageContext
from dashboard.figures import lines
from dashboard.figures.base import Figure
from dashboard.figures.drawing import all_drawn
from dashboard.live.displayed_snapshot import AT_ONCE, Look, Time, answer, chart


def layout(context: PageContext, path: ViewPath, look: Look) -> list[Any]:
    """Tiles, and how batch time, delay and input went."""
    return [
        crumbs([("Metrics job", "job")]),
        markup_box(_tiles(context, look.time), id=ids.JOB_TILES, className="tiles"),
        card("Batch time and delay", graph(ids.JOB_TIMES)),
        card("Samples in", graph(ids.JOB_INPUT, 180)),
        card("State rows", graph(ids.JOB_STATE, 180)),
    ]


def register(app: Dash, context: PageContext) -> None:
    """Live blocks of the job."""

    @app.callback(
        Output(ids.JOB_TILES, MARKUP),
        Input(ids.TICK, "data"),
        Input(ids.TIME, "data"),
        prevent_initial_call=True,
        websocket=True,
    )
    def fill(tick: Any, time: Time | None) -> str:
        return _tiles(context, time, tick)

    @app.callback(
        Output(ids.JOB_TIMES, "figure"),
        Output(ids.JOB_INPUT, "figure"),
        Output(ids.JOB_STATE, "figure"),
        Input(ids.CHART_TICK, "data"),
        Input(ids.SCHEME, "data"),
        Input(ids.TIME, "data"),
        websocket=True,
    )
    def draw(tick: Any, scheme: str | None, time: Time | None) -> Any:
        shown = scheme or "light"

        def build(_: OperatorSnapshot) -> Any:
            return all_drawn(lambda: figures(context, shown, context.span(time)), 3, shown)

        return chart(context, tick, time, ("job charts", shown), build)


def _tiles(context: PageContext, time: Time | None, tick: Any = AT_ONCE) -> str:
    def build(snapshot: OperatorSnapshot) -> str:
        return markup(tiles(snapshot, context.now_ms()))

    return answer(context, tick, time, ("job",), build)


def tiles(snapshot: OperatorSnapshot, now_ms: int) -> Any:
    """The job in figures; of a past moment, as of then."""
    found = job_figures(snapshot, min(now_ms, snapshot.built_ms))
    if not found:
        return empty("The metrics job has written nothing yet", "It takes about 20 s to start")
    return [tile(it.title, it.cell, it.why) for it in found]


def figures(context: PageContext, scheme: str, span: series.Span) -> tuple[Figure, ...]:
    """Over the span."""
    batch, delay, records, state = series.job_series(context.reader, span)
    return tuple(
        lines.lines(found, scheme, keep=f"job {found[0].name}", span=span)
        for found in ((batch, delay), (records,), (state,))
    )
