"""From a view path to a view."""

from collections.abc import Callable
from typing import Any, Final

from dash import Dash, Input, Output

from control.views.paths import ViewPath
from dashboard import ids, shell
from dashboard.components.parts import crumbs, empty
from dashboard.context import Screen
from dashboard.pages import (
    broker,
    browse,
    clusters,
    group,
    job,
    journal,
    lists,
    moves,
    overview,
    partition,
    plan,
    plan_map,
    produce,
    what_if,
)
from dashboard.pages import map as map_page

Layout = Callable[[Screen, ViewPath], Any]

VIEWS: Final[dict[str, Layout]] = {
    "overview": overview.layout,
    "findings": overview.findings_layout,
    "topics": lists.topics_layout,
    "topic": lists.topic_layout,
    "partitions": lists.partitions_layout,
    "partition": partition.layout,
    "segments": partition.layout,
    "clusters": clusters.layout,
    "brokers": lists.brokers_layout,
    "broker": broker.layout,
    "groups": lists.groups_layout,
    "group": group.layout,
    "map": map_page.layout,
    "plan": plan.layout,
    "moves": moves.layout,
    "move": moves.move_layout,
    "produce": produce.layout,
    "produce_any": produce.layout,
    "browse": browse.layout,
    "journal": journal.layout,
    "job": job.layout,
    "what-if": what_if.layout,
}


PAGES: Final = (
    overview, lists, partition, broker, group, map_page, plan, plan_map, moves, produce, browse,
    journal, what_if, job, clusters,
)  # fmt: skip


def register(app: Dash, screen: Screen) -> None:
    """Callbacks of all views, and the one that shows the right view."""
    for page in PAGES:
        page.register(app, screen)

    @app.callback(
        Output(ids.CONTENT, "children"),
        Input(ids.LOCATION, "pathname"),
        Input(ids.LOCATION, "search"),
        websocket=True,
    )
    def show(pathname: str | None, search: str | None) -> Any:
        return view(screen, pathname, search)


def view(screen: Screen, pathname: str | None, search: str | None) -> Any:
    """The view's layout, or what to do when there is no such view."""
    path = shell.view_of(pathname, search)
    if isinstance(path, str):
        return _nowhere(path)
    if path.view == "map" and path.query.get("plan"):
        return plan_map.layout(screen, path)
    return VIEWS[path.view](screen, path)


def _nowhere(reason: str) -> list[Any]:
    return [
        crumbs([("Overview", "overview"), ("Nothing here", "")]),
        empty(reason, "Press g o for the overview, or ? for all keys"),
    ]
