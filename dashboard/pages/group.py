"""One group: how far behind, where, and since when."""

from typing import Any

from dash import Dash, Input, Output, State, dcc, html
from dash.exceptions import PreventUpdate

from control.operations.catalogue import forms_about
from control.operations.catalogue.forms import FieldKind
from control.views import series
from control.views.group_facts import Told, read_group
from control.views.paths import ViewPath
from control.views.snapshots import snapshot as views
from control.views.snapshots.blame import partition_to_blame
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.commits import COMMITS
from control.views.tables.group_parts import MEMBERS
from control.views.tables.groups import GROUPS
from control.views.tables.query import TableQuery
from dashboard import ids
from dashboard.cluster_actions import ClusterActionError
from dashboard.components.detail import Detail, register_detail
from dashboard.components.grid import grid_block
from dashboard.components.markup import MARKUP, markup
from dashboard.components.operation_form import operation_button
from dashboard.components.parts import card, crumbs, graph, tiles
from dashboard.components.tables import rows_table
from dashboard.context import PageContext
from dashboard.figures import lines
from dashboard.figures.base import Figure
from dashboard.live.displayed_snapshot import Time, moment_of


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """Tiles, lag over time, and every partition that it has committed."""
    group = path.params["group"]
    head = crumbs([("Groups", "groups"), (group, "")])
    return [
        head,
        dcc.Store(id=ids.GROUP_PATH, data=group),
        html.Div(id=ids.GROUP_TILES, className="tiles"),
        html.Div(
            [operation_button(form, {"group": group}) for form in forms_about(FieldKind.GROUP)],
            className="actions",
        ),
        html.Div(id=ids.GROUP_FACTS, className="stack"),
        card("Lag by partition, in records", graph(ids.GROUP_LAG)),
        grid_block(COMMITS, query=path.query, scope=group),
    ]


def register(app: Dash, context: PageContext) -> None:
    """Live blocks of a group."""
    detail = Detail(
        path=ids.GROUP_PATH,
        tiles=ids.GROUP_TILES,
        chart=ids.GROUP_LAG,
        build_tiles=group_tiles,
        build_figure=group_figure,
    )
    register_detail(app, context, detail)

    @app.callback(
        Output(ids.GROUP_FACTS, MARKUP),
        Input(ids.TICK, "data"),
        Input(ids.GROUP_PATH, "data"),
        Input(ids.TIME, "data"),
        State(ids.TAB, "data"),  # not shared with pages that asked earlier in the same version
        websocket=True,
    )
    async def tell(tick: object, group: str, time: Time | None, _: object) -> str:
        """With every version: a rebalance is seen as it happens. A coordinator tells no past."""
        if tick is None:
            raise PreventUpdate
        if moment_of(time, now_ms=context.now_ms()) is not None:
            return ""
        try:
            return markup(told(await read_group(context.actions.session, context.snapshot, group)))
        except ClusterActionError:
            return ""


def told(found: Told) -> list[Any]:
    """A card of live members, and one of facts where there are any."""
    members: Any = html.P("no live members", className="note")
    if found.members:
        members = rows_table(found.members, MEMBERS.columns)
    cards = [card("Live members", members)]
    lines = [it for fact in found.facts for it in (html.Dt(fact.title), html.Dd(fact.text))]
    if lines:
        cards.append(card("As its coordinator tells", html.Dl(lines, className="facts")))
    return cards


def group_figure(context: PageContext, group: str, scheme: str, span: series.Span) -> Figure:
    """Its lag over the span."""
    found = series.group_lag(context.reader, context.cluster, group, span)
    marks = context.marks(span)
    return lines.lines(found, scheme, keep=f"group {group}", marks=marks, span=span)


def group_tiles(snapshot: OperatorSnapshot, group: str) -> Any:
    """The group in figures."""
    found = views.group_page(snapshot, TableQuery(filter=f'group="{group}"')).rows
    return [*_blame(snapshot, group), *tiles(GROUPS.facts(found[0]))] if found else None


def _blame(snapshot: OperatorSnapshot, group: str) -> list[Any]:
    found = partition_to_blame(snapshot, group)
    link = dcc.Link(found.words, href=f"/{found.path}", className="finding-title") if found else ""
    return [html.Div(link, className="finding edge-notice wide")] if found else []
