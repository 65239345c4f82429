"""One broker: what it carries, its throughput, and the partitions it holds."""

from typing import Any, Final

import dash_mantine_components as dmc
from dash import Dash, dcc, html

from control.operations.catalogue import forms_about
from control.operations.catalogue.forms import FieldKind
from control.views import series
from control.views.cluster.collector_requests import load_cell
from control.views.paths import ViewPath
from control.views.snapshots import snapshot as views
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.brokers import BROKERS, LOG_DIRS, several_log_dirs
from control.views.tables.partitions import PARTITIONS
from control.views.tables.query import TableQuery
from dashboard import ids
from dashboard.components.detail import Detail, register_detail
from dashboard.components.grid import grid_block
from dashboard.components.operation_form import operation_button
from dashboard.components.parts import card, crumbs, graph, tile, tiles
from dashboard.components.tables import rows_table
from dashboard.context import PageContext
from dashboard.figures import lines
from dashboard.figures.base import Figure

_ASKED: Final = "Means of the last half minute; bounded by `broker_rows_per_s` of the settings"


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """Tiles, throughput, and its partitions as a table filtered to it."""
    broker = int(path.params["broker"])
    head = crumbs([("Brokers", "brokers"), (f"broker {broker}", "")])
    query = {"q": f"broker:{broker}", **path.query}
    return [
        head,
        dcc.Store(id=ids.BROKER_PATH, data=broker),
        html.Div(id=ids.BROKER_TILES, className="tiles"),
        html.Div(_actions(broker), className="actions"),
        card("Throughput of what it leads", graph(ids.BROKER_THROUGHPUT, 200)),
        grid_block(PARTITIONS, query=query),
    ]


def register(app: Dash, context: PageContext) -> None:
    """Live blocks of a broker."""
    detail = Detail(
        path=ids.BROKER_PATH,
        tiles=ids.BROKER_TILES,
        chart=ids.BROKER_THROUGHPUT,
        build_tiles=broker_tiles,
        build_figure=broker_figure,
    )
    register_detail(app, context, detail)


def broker_figure(context: PageContext, broker: int, scheme: str, span: series.Span) -> Figure:
    """Its throughput over the span."""
    found = series.broker_throughput(context.reader, context.cluster, broker, span)
    marks = context.marks(span)
    return lines.throughput(found, scheme, keep=f"broker {broker}", marks=marks, span=span)


def _actions(broker: int) -> list[Any]:
    links = [
        dcc.Link(dmc.Button(label, size="xs", variant="light"), href=href)
        for label, href in (
            ("Decommission it: plan moves", f"/plan?remove_brokers={broker}"),
            ("What if it dies", f"/what-if?broker={broker}"),
            ("Configs (V)", f"/brokers/{broker}/configs"),
        )
    ]
    given = {"broker": str(broker)}
    return [*links, *(operation_button(form, given) for form in forms_about(FieldKind.BROKER))]


def broker_tiles(snapshot: OperatorSnapshot, broker: int) -> Any:
    """The broker in figures, and its log directories where it has several."""
    found = views.broker_page(snapshot, TableQuery(filter=f"broker:{broker}")).rows
    if not found:
        return None
    asked = load_cell(snapshot.watch, broker)
    collector = [] if asked is None else [tile("collector asks", asked, _ASKED)]
    directories = several_log_dirs(snapshot.evidence, broker)
    table = rows_table(directories, LOG_DIRS.columns, link=False)
    wide = [card("Log directories", table, class_name="wide")] if directories else []
    return [*tiles(BROKERS.facts(found[0])), *collector, *wide]
