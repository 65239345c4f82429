"""One partition: what it is, its replicas, who reads it, its history, its segments."""

from dataclasses import replace
from typing import Any, Final

import dash_mantine_components as dmc
from dash import Dash, Input, Output, dcc, html

from control.model.ids import TopicPartition
from control.views import series
from control.views.paths import ViewPath
from control.views.snapshots import snapshot as views
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.commits import GROUPS_OF_PARTITION
from control.views.tables.partition_parts import REPLICAS, SEGMENTS
from control.views.tables.partitions import PARTITIONS
from control.views.tables.rows import Row
from dashboard import ids
from dashboard.components.markup import MARKUP, markup
from dashboard.components.parts import card, crumbs, empty, graph, tiles
from dashboard.components.tables import rows_table
from dashboard.context import PageContext
from dashboard.figures import lines
from dashboard.figures.drawing import all_drawn
from dashboard.figures.segments import segment_bars
from dashboard.live.displayed_snapshot import Time, answer, chart

_GROUP_COLUMNS: Final = tuple(
    item for item in GROUPS_OF_PARTITION if item.id not in {"end", "consumed", "member"}
)


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """Tiles above, blocks below; all filled by callbacks, so that they stay live."""
    topic, partition = path.params["topic"], int(path.params["partition"])
    head = crumbs([("Topics", "topics"), (topic, f"topics/{topic}"), (f"{topic}-{partition}", "")])
    return [
        head,
        dcc.Store(id=ids.DETAIL_PATH, data={"topic": topic, "partition": partition}),
        html.Div(id=ids.DETAIL_TILES, className="tiles"),
        html.Div(_actions(topic, partition), className="actions"),
        html.Div(
            [
                card("Replicas", html.Div(id=ids.DETAIL_REPLICAS), class_name="many-columns"),
                card(
                    "Groups that read it",
                    html.Div(id=ids.DETAIL_GROUPS),
                    class_name="many-columns",
                ),
                card("Throughput", graph(ids.DETAIL_THROUGHPUT)),
                card("Lag by group, in records", graph(ids.DETAIL_LAG)),
                card(
                    "Segments of the leader",
                    graph(ids.DETAIL_SEGMENTS),
                    html.Details(
                        [html.Summary("as a table"), html.Div(id=ids.DETAIL_SEGMENT_TABLE)]
                    ),
                ),
                card("Log bytes", graph(ids.DETAIL_SIZE)),
            ],
            className="columns",
        ),
    ]


def register(app: Dash, context: PageContext) -> None:
    """Live blocks of a partition."""

    @app.callback(
        Output(ids.DETAIL_TILES, MARKUP),
        Output(ids.DETAIL_REPLICAS, MARKUP),
        Output(ids.DETAIL_GROUPS, MARKUP),
        Output(ids.DETAIL_SEGMENT_TABLE, MARKUP),
        Input(ids.TICK, "data"),
        Input(ids.DETAIL_PATH, "data"),
        Input(ids.TIME, "data"),
        websocket=True,
    )
    def fill(tick: Any, where: dict[str, Any], time: Time | None) -> tuple[str, ...]:
        name = TopicPartition(where["topic"], where["partition"])

        def build(snapshot: OperatorSnapshot) -> tuple[str, ...]:
            return tuple(map(markup, blocks(snapshot, name)))

        return answer(context, tick, time, ("partition", name), build)

    @app.callback(
        Output(ids.DETAIL_THROUGHPUT, "figure"),
        Output(ids.DETAIL_SIZE, "figure"),
        Output(ids.DETAIL_LAG, "figure"),
        Output(ids.DETAIL_SEGMENTS, "figure"),
        Input(ids.CHART_TICK, "data"),
        Input(ids.DETAIL_PATH, "data"),
        Input(ids.SCHEME, "data"),
        Input(ids.TIME, "data"),
        websocket=True,
    )
    def draw(
        tick: Any, where: dict[str, Any], scheme: str | None, time: Time | None
    ) -> tuple[Any, ...]:
        name = TopicPartition(where["topic"], where["partition"])
        shown = scheme or "light"

        def build(snapshot: OperatorSnapshot) -> tuple[Any, ...]:
            span = context.span(time)
            return all_drawn(lambda: figures(context, snapshot, name, shown, span), 4, shown)

        return chart(context, tick, time, ("partition charts", name, shown), build)


def blocks(snapshot: OperatorSnapshot, name: TopicPartition) -> tuple[Any, ...]:
    """Tiles, replicas, groups and segments."""
    row = views.partition_row(snapshot, name)
    if row is None:
        return None, None, None, None
    groups = views.groups_of_partition(snapshot, name)
    segments = views.segment_rows(snapshot, name)
    return (
        tiles(PARTITIONS.facts(row)),
        rows_table(views.replica_rows(snapshot, name), REPLICAS.columns),
        rows_table([_led_to_group(row) for row in groups], _GROUP_COLUMNS)
        if groups
        else empty("No group has committed an offset here"),
        rows_table(segments, SEGMENTS.columns, link=False) if segments else empty("n/a"),
    )


def _led_to_group(row: Row) -> Row:
    """This partition is shown already: the row leads to the group."""
    return replace(row, path=str(ViewPath(view="group", params={"group": row.group.text})))


def figures(
    context: PageContext,
    snapshot: OperatorSnapshot,
    name: TopicPartition,
    scheme: str,
    span: series.Span,
) -> tuple[Any, ...]:
    """Throughput, size, lag of each group, segments."""
    cluster, marks = context.cluster, context.marks(span)
    history = series.partition_series(context.reader, cluster, name, span)
    size = [item for item in history if item.name == "size"]
    lags = [
        series.named(line, row.group.text)
        for row in views.groups_of_partition(snapshot, name)[: series.SERIES_MAX]
        for line in series.group_lag(context.reader, cluster, row.group.text, span, only=name)
    ]
    return (
        lines.throughput(history, scheme, keep=f"throughput {name}", marks=marks, span=span),
        lines.lines(size, scheme, keep=f"size {name}", marks=marks, span=span),
        lines.lines(lags, scheme, keep=f"lag {name}", marks=marks, span=span),
        segment_bars(views.segment_rows(snapshot, name), scheme),
    )


def _actions(topic: str, partition: int) -> list[Any]:
    scope = f"/plan?topics={topic}&partition={partition}"
    return [
        dcc.Link(dmc.Button("Reassign", size="xs", variant="light"), href=scope),
        dcc.Link(
            dmc.Button("Produce here", size="xs", variant="light"),
            href=f"/produce/{topic}?partition={partition}",
        ),
        dcc.Link(
            dmc.Button("Browse messages", size="xs", variant="light"),
            href=f"/browse/{topic}?partition={partition}",
        ),
    ]
