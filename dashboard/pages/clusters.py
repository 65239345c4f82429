"""All watched clusters side by side; a click goes to one."""

from typing import Any

from dash import Dash, Input, Output

from control.views.cluster.all_clusters import CLUSTERS, cluster_rows
from control.views.paths import ViewPath
from dashboard import ids
from dashboard.components.markup import MARKUP, markup, still
from dashboard.components.parts import crumbs
from dashboard.components.tables import rows_table
from dashboard.context import PageContext


def layout(context: PageContext, _: ViewPath) -> list[Any]:
    """One table."""
    return [crumbs([("Clusters", "clusters")]), still(table(context), id=ids.ALL_CLUSTERS)]


def register(app: Dash, context: PageContext) -> None:
    """Keep it as it is now, whatever time the other views look at."""

    @app.callback(
        Output(ids.ALL_CLUSTERS, MARKUP),
        Input(ids.TICK, "data"),
        prevent_initial_call=True,
        websocket=True,
    )
    def fill(_: object) -> str:
        return markup(table(context))


def table(context: PageContext) -> Any:
    """A row per cluster; its link loads the page anew, for a tab is about one cluster."""
    known = [(place.watched, place.feed.current) for place in context.clusters.values()]
    rows = cluster_rows(known, now_ms=context.now_ms())
    return rows_table(rows, CLUSTERS.columns, reloads=True)
