"""The overview: is anything wrong, where, since when, what now; then the picture of the cluster."""

from typing import Any, Final

from dash import Dash, Input, Output, html

from control.views import format as text
from control.views import series
from control.views.cluster.racks import RACKS, rack_rows
from control.views.paths import ViewPath
from control.views.snapshots import snapshot as views
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.brokers import BROKERS
from control.views.tables.groups import GROUPS
from control.views.tables.query import LIMIT_MAX, TableQuery
from control.views.tables.rows import Row
from dashboard import ids
from dashboard.components import bars, heat_box
from dashboard.components.heat_map import heat_map, heat_markup
from dashboard.components.markup import MARKUP, markup, markup_box
from dashboard.components.parts import (
    calm_line,
    card,
    crumbs,
    empty,
    finding_line,
    graph,
    measure_switch,
    tile,
)
from dashboard.components.tables import rows_table
from dashboard.context import PageContext
from dashboard.figures import lines
from dashboard.figures.drawing import all_drawn
from dashboard.live.displayed_snapshot import AT_ONCE, Look, Time, answer, chart

FINDINGS_MAX: Final = 5
GROUPS_MAX: Final = 8
LAG_LINES_MAX: Final = 5
_BROKER_COLUMNS: Final = BROKERS.without("age")
_GROUP_COLUMNS: Final = GROUPS.only(
    "group", "status", "lag", "lag_time", "velocity", "clears", "loses"
)


def layout(context: PageContext, path: ViewPath, look: Look) -> list[Any]:
    """The same blocks in the same order as in the terminal; all but history stands at once."""
    found, figures, broker_table, rack_table, group_table = _as_text(context, look.time)
    return [
        markup_box(found, id=ids.FINDINGS, className="findings"),
        markup_box(figures, id=ids.TILES, className="tiles"),
        html.Div(
            [
                card(
                    "Brokers",
                    markup_box(_bars(context, "size_bytes", look.time), id=ids.BROKER_BARS),
                    markup_box(broker_table, id=ids.BROKER_TABLE),
                    extra=measure_switch(ids.BROKER_MEASURE, bars.MEASURES, "size_bytes"),
                ),
                card(
                    "Map: broker × topic",
                    heat_map(context, ids.HEAT_MAP, "size_bytes", look),
                    extra=measure_switch(ids.HEAT_MEASURE, heat_box.MEASURES, "size_bytes"),
                ),
                card("Racks", markup_box(rack_table, id=ids.RACK_TABLE)),
                card("Groups, worst first", markup_box(group_table, id=ids.GROUP_TABLE)),
                card("Lag by group, in records", graph(ids.LAG_CHART, 220, grows=True)),
                card("Throughput", graph(ids.THROUGHPUT_CHART, 220, grows=True)),
            ],
            className="columns",
        ),
    ]


def findings_layout(context: PageContext, path: ViewPath, look: Look) -> list[Any]:
    """All findings."""
    found = _all_findings(context, look.time)
    return [
        crumbs([("Findings", "findings")]),
        markup_box(found, id=ids.ALL_FINDINGS, className="findings"),
    ]


def register(app: Dash, context: PageContext) -> None:
    """Live blocks of the overview."""

    @app.callback(
        Output(ids.ALL_FINDINGS, MARKUP),
        Input(ids.TICK, "data"),
        Input(ids.TIME, "data"),
        prevent_initial_call=True,
        websocket=True,
    )
    def fill_findings(tick: Any, time: Time | None) -> str:
        return _all_findings(context, time, tick)

    # One for all blocks: each callback costs the page a walk through all of them.
    @app.callback(
        Output(ids.FINDINGS, MARKUP),
        Output(ids.TILES, MARKUP),
        Output(ids.BROKER_TABLE, MARKUP),
        Output(ids.RACK_TABLE, MARKUP),
        Output(ids.GROUP_TABLE, MARKUP),
        Output(ids.BROKER_BARS, MARKUP),
        Output(ids.HEAT_MAP, MARKUP),
        Input(ids.TICK, "data"),
        Input(ids.BROKER_MEASURE, "value"),
        Input(ids.HEAT_MEASURE, "value"),
        Input(ids.SCHEME, "data"),
        Input(ids.TIME, "data"),
        # The view comes with it.
        prevent_initial_call=True,
        websocket=True,
    )
    def fill(
        tick: Any, bar_measure: str, heat_measure: str, scheme: str | None, time: Time | None
    ) -> tuple[str, ...]:
        look = Look(time or {}, scheme or "light")
        return (
            *_as_text(context, time, tick),
            _bars(context, bar_measure, time, tick),
            heat_markup(context, heat_measure, look, tick),
        )

    _register_charts(app, context)


def _all_findings(context: PageContext, time: Time | None, tick: Any = AT_ONCE) -> str:
    def build(snapshot: OperatorSnapshot) -> str:
        return markup(findings(snapshot, most=None))

    return answer(context, tick, time, "findings", build)


def _as_text(context: PageContext, time: Time | None, tick: Any = AT_ONCE) -> tuple[str, ...]:
    def build(snapshot: OperatorSnapshot) -> tuple[str, ...]:
        return tuple(map(markup, blocks(snapshot)))

    return answer(context, tick, time, "overview", build)


def _register_charts(app: Dash, context: PageContext) -> None:
    @app.callback(
        Output(ids.THROUGHPUT_CHART, "figure"),
        Output(ids.LAG_CHART, "figure"),
        Input(ids.CHART_TICK, "data"),
        Input(ids.SCHEME, "data"),
        Input(ids.TIME, "data"),
        websocket=True,
    )
    def draw_history(tick: Any, scheme: str | None, time: Time | None) -> tuple[Any, ...]:
        shown = scheme or "light"

        def build(snapshot: OperatorSnapshot) -> tuple[Any, ...]:
            span = context.span(time)
            return all_drawn(lambda: history_figures(context, snapshot, shown, span), 2, shown)

        return chart(context, tick, time, ("history", shown), build)


def _bars(context: PageContext, measure: str, time: Time | None, tick: Any = AT_ONCE) -> str:
    def build(snapshot: OperatorSnapshot) -> str:
        return markup(bars.broker_bars(broker_rows(snapshot), measure))

    return answer(context, tick, time, ("bars", measure), build)


def blocks(snapshot: OperatorSnapshot) -> tuple[Any, ...]:
    """All that is text: findings, tiles, brokers, racks, groups."""
    if snapshot.why_empty:
        return findings(snapshot), tiles(snapshot), *(empty(text.NA) for _ in range(3))
    return (
        findings(snapshot),
        tiles(snapshot),
        rows_table(broker_rows(snapshot), _BROKER_COLUMNS),
        rack_block(snapshot),
        group_block(snapshot),
    )


def broker_rows(snapshot: OperatorSnapshot) -> tuple[Row, ...]:
    """All brokers."""
    return views.broker_page(snapshot, TableQuery(limit=LIMIT_MAX)).rows


def findings(snapshot: OperatorSnapshot, *, most: int | None = FINDINGS_MAX) -> list[Any]:
    """The worst ``most`` (None: all), or one calm line; where nothing is known, why."""
    if snapshot.why_empty:
        return [empty(_sentence(snapshot.why_empty), "@ chooses another time")]
    if snapshot.is_empty and snapshot.unwatched:
        return [empty("No figures of this cluster", snapshot.unwatched)]
    rows = snapshot.finding_rows
    if snapshot.is_empty and not rows:
        return [
            empty(
                "No data yet",
                "The metrics job writes its first figures some seconds after it starts",
                "`partiscope doctor` says what is missing",
            )
        ]
    if not rows:
        groups = snapshot.behind_words or "all groups moving"
        return [calm_line(f"No findings: all partitions online and in sync, {groups}")]
    shown: list[Any] = [finding_line(row) for row in rows[:most]]
    if most is not None and len(rows) > most:
        more = f"{len(rows) - most} more findings"
        shown.append(html.A(more, href="/findings", className="more"))
    return shown


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def tiles(snapshot: OperatorSnapshot) -> list[Any]:
    """The cluster in figures."""
    head = snapshot.headline
    return [
        tile("topics", head.topics),
        tile("partitions", head.partitions),
        tile("replicas", head.replicas),
        tile("bytes", head.size_bytes, "On disk, all replicas"),
        tile("produced", head.in_records),
        tile("offline", head.offline, "Partitions without a leader"),
        tile("under-replicated", head.under_replicated, "Partitions that lack a replica in sync"),
        *([tile("reassignments", head.moving, "All of the cluster; g r lists those started here")]
          if head.moving.value else []),
    ]  # fmt: skip


def rack_block(snapshot: OperatorSnapshot) -> Any:
    """Load of each rack; without racks, the meaning of that."""
    rows = rack_rows(broker_rows(snapshot))
    if len(rows) < 2:
        return empty(
            "All brokers are in one rack, or name none",
            "`broker.rack` in a broker's settings names its rack",
        )
    return rows_table(rows, RACKS.columns)


def group_block(snapshot: OperatorSnapshot) -> Any:
    """The groups that need to be looked at first."""
    page = views.group_page(snapshot, TableQuery(limit=GROUPS_MAX, hides_internal=True))
    if not page.rows:
        return empty("No consumer group has committed yet", "Groups appear with their first commit")
    return rows_table(page.rows, _GROUP_COLUMNS)


def history_figures(
    context: PageContext, snapshot: OperatorSnapshot, scheme: str, span: series.Span
) -> tuple[Any, Any]:
    """Throughput of the cluster, and lag of the groups with the most of it."""
    cluster, marks = context.cluster, context.marks(span)
    moved = series.cluster_throughput(context.reader, cluster, span)
    query = TableQuery(sort="-lag", limit=LAG_LINES_MAX, hides_internal=True)
    rows = views.group_page(snapshot, query).rows
    lags = [
        series.total_lag(context.reader, cluster, row.key, span)
        for row in rows
        if row.lag.value is not None
    ]
    return (
        lines.throughput(moved, scheme, keep="throughput", marks=marks, span=span),
        lines.lines(lags, scheme, keep="lag", marks=marks, span=span),
    )
