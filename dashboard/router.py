"""From a view path to a view."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from dash import Dash, Input, Output, State

from control.views.paths import ViewPath
from dashboard import ids
from dashboard.components.parts import crumbs, empty
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import USUAL_LOOK, Look, Time
from dashboard.page_frame import not_found, shell
from dashboard.page_frame.shell import SHOWN
from dashboard.pages import (
    alerts,
    broker,
    browse,
    clusters,
    configs,
    group,
    job,
    journal,
    lists,
    overview,
    partition,
    produce,
    what_if,
)
from dashboard.pages import map as map_page
from dashboard.pages.reassignments import (
    check,
    move,
    move_report,
    moves,
    plan,
    plan_map,
)

Layout = Callable[[PageContext, ViewPath, Look], Any]


_LATER: Final[dict[str, Callable[[PageContext, ViewPath], Any]]] = {
    "topics": lists.topics_layout,
    "topic": lists.topic_layout,
    "partitions": lists.partitions_layout,
    "partition": partition.layout,
    "segments": partition.layout,
    "clusters": clusters.layout,
    "topic_configs": configs.layout,
    "broker_configs": configs.layout,
    "brokers": lists.brokers_layout,
    "broker": broker.layout,
    "groups": lists.groups_layout,
    "group": group.layout,
    "plan": plan.layout,
    "check": check.layout,
    "moves": moves.layout,
    "move": move.layout,
    "move_report": move_report.layout,
    "produce": produce.layout,
    "produce_any": produce.layout,
    "browse": browse.layout,
    "journal": journal.layout,
    "what-if": what_if.layout,
}
"""Views whose figures come with the first news."""


def _without_figures(layout: Callable[[PageContext, ViewPath], Any]) -> Layout:
    return lambda context, path, _: layout(context, path)


VIEWS: Final[dict[str, Layout]] = {
    "overview": overview.layout,
    "findings": overview.findings_layout,
    "alerts": alerts.layout,
    "map": map_page.layout,
    "job": job.layout,
    **{name: _without_figures(layout) for name, layout in _LATER.items()},
}

PAGES: Final = (
    overview, alerts, lists, partition, broker, group, map_page, plan, plan_map, check, move, moves,
    move_report, produce, browse, configs, journal, what_if, job, clusters,
)  # fmt: skip


def register(app: Dash, context: PageContext) -> None:
    """Callbacks of all views, and the one that shows the right view."""
    for page in PAGES:
        page.register(app, context)
    not_found.register(app, context, lambda path, look: VIEWS[path.view](context, path, look))

    @app.callback(
        Output(ids.CONTENT, "children"),
        Output(ids.CONTENT, SHOWN),
        Input(ids.LOCATION, "pathname"),
        Input(ids.LOCATION, "search"),
        State(ids.TIME, "data"),
        State(ids.SCHEME, "data"),
        # The first view comes with the page.
        prevent_initial_call=True,
        websocket=True,
    )
    def show(
        pathname: str | None, search: str | None, time: Time | None, scheme: str | None
    ) -> tuple[Any, str | None]:
        return view(context, pathname, search, Look(time or {}, scheme or "light")), pathname


def opened(context: PageContext, address: str, scheme: str) -> shell.Opened:
    """The view that a page is opened with, by the whole ``address`` that its browser says it is
    at (the Referer); none where it says nothing."""
    found = urlsplit(address)
    search = f"?{found.query}" if found.query else ""
    shown = view(context, found.path, search, Look({}, scheme)) if found.path else None
    return shell.Opened(pathname=found.path, search=search, scheme=scheme, view=shown)


def view(
    context: PageContext, pathname: str | None, search: str | None, look: Look = USUAL_LOOK
) -> Any:
    """The view's layout, or what to do when there is no such view; ``look`` has the time that
    the page looks at where the address says nothing of it."""
    path = shell.view_of(pathname, search)
    if isinstance(path, str):
        return _nowhere(path)
    if path.view == "map" and path.query.get("plan"):
        return plan_map.layout(context, path)
    asked = {name: path.query[name] for name in ("at", "range") if name in path.query}
    layout = VIEWS[path.view]
    looked = replace(look, time=asked or look.time)
    return not_found.framed(context, path, looked, lambda path, look: layout(context, path, look))


def _nowhere(reason: str) -> list[Any]:
    return [
        crumbs([("Overview", "overview"), ("Nothing here", "")]),
        empty(reason, "Press g o for the overview, or ? for all keys"),
    ]
