"""Views that are one large table: topics, partitions, brokers, groups."""

from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, dcc, html

from control.operations.catalogue import forms_about
from control.operations.catalogue.forms import FieldKind
from control.operations.catalogue.topics.create_topic import CreateTopic
from control.views import series
from control.views.cluster.skew import broker_skew, most_skewed
from control.views.paths import ViewPath
from control.views.snapshots import snapshot as views
from control.views.snapshots.snapshot import LISTS, OperatorSnapshot
from control.views.tables import query as table_query
from control.views.tables.brokers import BROKERS
from control.views.tables.groups import GROUPS
from control.views.tables.partitions import PARTITIONS
from control.views.tables.query import TableQuery
from control.views.tables.topics import TOPICS
from dashboard import ids
from dashboard.components.detail import Detail, register_detail
from dashboard.components.grid import grid_block, register_grid
from dashboard.components.operation_form import operation_button
from dashboard.components.parts import card, crumbs, graph, tiles
from dashboard.context import PageContext
from dashboard.figures import lines
from dashboard.figures.base import Figure
from dashboard.figures.drawing import drawn
from dashboard.live.displayed_snapshot import Time, chart


def topics_layout(context: PageContext, path: ViewPath) -> list[Any]:
    """All topics."""
    if "status:" in path.query.get("q", ""):
        # Findings lead here; what has a status are partitions.
        return partitions_layout(context, path)
    return [
        crumbs([("Topics", "topics")]),
        html.Div(operation_button(CreateTopic.FORM), className="actions"),
        grid_block(TOPICS, query=path.query),
    ]


def topic_layout(context: PageContext, path: ViewPath) -> list[Any]:
    """The partitions of one topic."""
    topic = path.params["topic"]
    return [
        crumbs([("Topics", "topics"), (topic, "")]),
        html.Div(_topic_actions(topic), className="actions"),
        dcc.Store(id=ids.TOPIC_PATH, data=topic),
        html.Div(id=ids.TOPIC_TILES, className="tiles"),
        card("Throughput", graph(ids.TOPIC_THROUGHPUT, 180)),
        grid_block(PARTITIONS, query=path.query, scope=topic, without="topic"),
    ]


def partitions_layout(context: PageContext, path: ViewPath) -> list[Any]:
    """All partitions of all topics."""
    return [
        crumbs([("Partitions", "partitions")]),
        grid_block(PARTITIONS, query=path.query),
    ]


def brokers_layout(context: PageContext, path: ViewPath) -> list[Any]:
    """All registered brokers."""
    return [
        crumbs([("Brokers", "brokers")]),
        grid_block(BROKERS, query=path.query),
        card("Bytes against the mean, over time", graph(ids.SKEW_CHART, 220)),
    ]


def groups_layout(context: PageContext, path: ViewPath) -> list[Any]:
    """All consumer groups."""
    return [
        crumbs([("Groups", "groups")]),
        grid_block(GROUPS, query=path.query),
    ]


def register(app: Dash, context: PageContext) -> None:
    """Tables, and what stands beside them."""
    for kind in LISTS:
        register_grid(app, kind)

    topic = Detail(
        path=ids.TOPIC_PATH,
        tiles=ids.TOPIC_TILES,
        chart=ids.TOPIC_THROUGHPUT,
        build_tiles=topic_tiles,
        build_figure=topic_figure,
    )
    register_detail(app, context, topic)

    @app.callback(
        Output(ids.SKEW_CHART, "figure"),
        Input(ids.TICK, "data"),
        Input(ids.SCHEME, "data"),
        Input(ids.TIME, "data"),
        websocket=True,
    )
    def draw_skew(tick: Any, scheme: str | None, time: Time | None) -> Any:
        shown = scheme or "light"

        def build(snapshot: OperatorSnapshot) -> Any:
            return drawn(lambda: skew_figure(context, snapshot, shown, context.span(time)), shown)

        return chart(context, tick, time, ("skew", shown), build)


def skew_figure(
    context: PageContext, snapshot: OperatorSnapshot, scheme: str, span: series.Span
) -> Figure:
    """How far the most uneven brokers were from the mean."""
    rows = views.broker_page(snapshot, TableQuery(limit=table_query.LIMIT_MAX)).rows
    found = broker_skew(
        context.reader, snapshot.cluster.cluster, most_skewed(rows), len(rows), span
    )
    named = [series.named(line, f"broker {line.name}") for line in found]
    return lines.lines(named, scheme, keep="skew", marks=context.marks(span), span=span)


def topic_figure(context: PageContext, topic: str, scheme: str, span: series.Span) -> Figure:
    """Its throughput over the span."""
    found = series.topic_throughput(context.reader, context.cluster, topic, span)
    marks = context.marks(span)
    return lines.throughput(found, scheme, keep=f"topic {topic}", marks=marks, span=span)


def topic_tiles(snapshot: OperatorSnapshot, topic: str) -> Any:
    """The topic in figures."""
    found = views.topic_page(snapshot, TableQuery(filter=f'topic="{topic}"')).rows
    return tiles(TOPICS.facts(found[0])) if found else None


def _topic_actions(topic: str) -> list[Any]:
    links = (
        ("Reassign (R)", f"/plan?topics={topic}"),
        ("Produce (P)", f"/produce/{topic}"),
        ("Browse (v)", f"/browse/{topic}"),
        ("Configs (V)", f"/topics/{topic}/configs"),
    )
    return [
        *(
            dcc.Link(dmc.Button(label, size="xs", variant="light"), href=href)
            for label, href in links
        ),
        *(operation_button(form, {"topic": topic}) for form in forms_about(FieldKind.TOPIC)),
    ]
