"""The map: broker × topic, or every partition as one cell; a click opens what it shows."""

from collections.abc import Mapping
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from control.views.cluster.partition_map import MEASURES, PartitionMap, partition_map, table_path
from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.filters import FilterError
from dashboard import ids
from dashboard.components import heat_box
from dashboard.components.heat_map import heat_map, register_heat_map
from dashboard.components.parts import attributes, card, crumbs, graph, measure_switch
from dashboard.context import PageContext
from dashboard.figures.base import empty_figure
from dashboard.figures.partition_map import cells_figure
from dashboard.live.displayed_snapshot import Look, Time, answer, displayed_snapshot

BY_PARTITIONS = "partitions"


def layout(context: PageContext, path: ViewPath, look: Look) -> list[Any]:
    """One chart, one switch, and the way to the other map."""
    wanted = path.query.get("measure", "")
    if path.query.get("by") == BY_PARTITIONS:
        return _cells_layout(wanted, path.query.get("q", ""))
    measure = wanted if wanted in heat_box.MEASURES else "size_bytes"
    switch = measure_switch(ids.MAP_MEASURE, heat_box.MEASURES, measure)
    return [
        crumbs([("Map", "map")]),
        _ways("topics"),
        card(
            "Broker × topic, on a log scale",
            heat_map(context, ids.MAP_FIGURE, measure, look),
            extra=switch,
            class_name="tall",
        ),
    ]


def _cells_layout(wanted: str, filter_text: str) -> list[Any]:
    measure = wanted if wanted in MEASURES else "size_bytes"
    switch = measure_switch(ids.CELLS_MEASURE, MEASURES, measure)
    return [
        crumbs([("Map", "map")]),
        _ways(BY_PARTITIONS),
        dcc.Store(id=ids.CELLS_FILTER, data=filter_text),
        dcc.Store(id=ids.CELLS_OPENED),
        card(
            "Every partition a cell, by name, on a log scale",
            html.Div(id=ids.CELLS_UNDER, className="under-pointer", role="status"),
            graph(ids.CELLS_FIGURE, 560),
            html.Div(id=ids.CELLS_TABLE, className="actions"),
            extra=switch,
        ),
    ]


def _ways(chosen: str) -> html.Div:
    ways = {"topics": "broker × topic", BY_PARTITIONS: "partition by partition"}
    return html.Div(
        [
            dcc.Link(
                words,
                href=f"/map?by={way}",
                className="way chosen" if way == chosen else "way",
            )
            for way, words in ways.items()
        ],
        className="actions",
    )


def register(app: Dash, context: PageContext) -> None:
    """Draw both, live; a click opens the topic or the partition."""
    in_browser: Any = app.clientside_callback
    in_browser(ClientsideFunction("partiscope", "openPath"), Input(ids.CELLS_OPENED, "data"))
    for measure in (ids.MAP_MEASURE, ids.CELLS_MEASURE):
        in_browser(ClientsideFunction("partiscope", "measureChosen"), Input(measure, "value"))

    register_heat_map(app, context, ids.MAP_FIGURE, ids.MAP_MEASURE)
    _register_cells(app, context)


def _register_cells(app: Dash, context: PageContext) -> None:
    @app.callback(
        Output(ids.CELLS_FIGURE, "figure"),
        Input(ids.TICK, "data"),
        Input(ids.CELLS_MEASURE, "value"),
        Input(ids.CELLS_FILTER, "data"),
        Input(ids.SCHEME, "data"),
        Input(ids.TIME, "data"),
        websocket=True,
    )
    def draw_cells(
        tick: Any, measure: str, filter_text: str, scheme: str | None, time: Time | None
    ) -> Any:
        colors = scheme or "light"

        def build(snapshot: OperatorSnapshot) -> Any:
            try:
                found = partition_map(snapshot, measure, filter=filter_text)
            except FilterError as error:
                return empty_figure(str(error), colors)
            return cells_figure(found, colors, keep=filter_text)

        return answer(context, tick, time, ("cells", measure, filter_text, colors), build)

    _register_pointer(app, context)


def _register_pointer(app: Dash, context: PageContext) -> None:
    """Registers the browser's part: value under the pointer, click, and the table in sight."""
    asked = (
        State(ids.CELLS_MEASURE, "value"),
        State(ids.CELLS_FILTER, "data"),
        State(ids.TIME, "data"),
    )

    def cells(measure: str, filter_text: str, time: Time | None) -> PartitionMap:
        return partition_map(displayed_snapshot(context, time), measure, filter=filter_text)

    @app.callback(
        Output(ids.CELLS_UNDER, "children"),
        Input(ids.CELLS_FIGURE, "hoverData"),
        *asked,
        websocket=True,
    )
    def tell(hover: Mapping[str, Any] | None, *given: Any) -> Any:
        return under_pointer(cells(*given), hover) if hover else POINT_AT

    @app.callback(
        Output(ids.CELLS_OPENED, "data"),
        Input(ids.CELLS_FIGURE, "clickData"),
        *asked,
        prevent_initial_call=True,
        websocket=True,
    )
    def open_cell(click: Mapping[str, Any] | None, *given: Any) -> str:
        record = cells(*given).record(*_place(click)) if click else None
        return record["path"] if record else ""

    @app.callback(
        Output(ids.CELLS_TABLE, "children"),
        Input(ids.CELLS_FIGURE, "relayoutData"),
        Input(ids.CELLS_MEASURE, "value"),
        State(ids.CELLS_FILTER, "data"),
        State(ids.TIME, "data"),
        websocket=True,
    )
    def offer_table(zoom: Mapping[str, Any] | None, *given: Any) -> Any:
        return table_link(cells(*given), zoom or {}, within=given[1])


POINT_AT = "Point at a cell for its value; click opens it; drag zooms into rows, twice shows all"


def under_pointer(found: PartitionMap, hover: Mapping[str, Any]) -> Any:
    """Name, value and leader of the cell, as a link that keys can act on."""
    record = found.record(*_place(hover))
    if record is None:
        return POINT_AT
    leader = record["leader"] if record["leader"] >= 0 else "none"
    return html.Span(
        [
            dcc.Link(f"{record['topic']}-{record['partition']}", href=f"/{record['path']}"),
            f"  {record['words']}, leader {leader}",
        ],
        **attributes({"data-path": record["path"]}),
    )


def table_link(found: PartitionMap, zoom: Mapping[str, Any], *, within: str = "") -> Any:
    """To the table of the rows of cells that are in sight."""
    ends = sorted((zoom.get("yaxis.range[0]", -0.5), zoom.get("yaxis.range[1]", found.rows - 0.5)))
    first, last = max(round(ends[0] + 0.4), 0), min(round(ends[1] - 0.4), found.rows - 1)
    topics = found.topics_between(first, last)
    if topics is None:
        return None
    words = f"{topics[0]} to {topics[1]}" if topics[0] != topics[1] else topics[0]
    path = table_path(found, first, last, within=within)
    return dcc.Link(f"{words}: these partitions as a table →", href=f"/{path}")


def _place(event: Mapping[str, Any]) -> tuple[int, int]:
    """Row and column of the cell that an event of the chart is about."""
    point = event["points"][0]
    return int(point["y"]), int(point["x"])
