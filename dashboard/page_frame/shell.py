"""The frame around every view: top bar, navigation, theme, pause, help, and where views go."""

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode
from uuid import uuid4

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from control.access.login import PROXY, acting
from control.model.watched_cluster import PRODUCTION
from control.operations.catalogue import FORMS
from control.operations.catalogue.topics.produce import PRODUCE
from control.views.keymap import KEYS, PLACES
from control.views.paths import PathError, ViewPath, parse_path
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.rows import Cell
from dashboard import ids
from dashboard.components.markup import MARKUP, markup, markup_box, still
from dashboard.components.parts import aria, attributes, badge, modal, toned
from dashboard.context import PageContext
from dashboard.live.push import news
from dashboard.page_frame import operation_dialog, palette, rights, times, tour
from dashboard.server.cluster_routing import QUERY
from dashboard.theme import MANTINE_THEME

NAV_LINKS: Final = (
    *(
        (place.path, place.title, f"g {place.key}")
        for place in PLACES
        if place.path not in {"findings", "job"}
    ),
    ("produce", PRODUCE.title.split()[0], PRODUCE.key),
)

SHOWN: Final = "data-shown"
"""Which path's view stands there: the browser asks again for one that never came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The address that a browser opens; ``view`` is its content."""

    pathname: str
    search: str
    scheme: str
    view: Any


def layout(context: PageContext, opened: Opened) -> Any:
    """The whole page with what is opened in it, as of the newest snapshot; where the browser does
    not say what that is, it comes with the first callback."""
    snapshot = context.snapshot
    place = {"pathname": opened.pathname, "search": opened.search} if opened.pathname else {}
    frame = html.Div(
        [
            dcc.Location(id=ids.LOCATION, refresh="callback-nav", **place),
            dcc.Store(id=ids.TICK, data=news(snapshot)),
            dcc.Store(id=ids.CHART_TICK, data=news(snapshot)),
            dcc.Store(id=ids.DENIED, data=rights.every_word(context)),
            dcc.Store(id=ids.MOVES_PUSHED),
            dcc.Store(id=ids.RIGHTS_PUSHED),
            dcc.Store(id=ids.REDIRECT),
            dcc.Store(id=ids.PAUSED, data=False),
            dcc.Store(id=ids.BEAT),
            dcc.Store(id=ids.TAB, data=uuid4().hex),
            dcc.Store(id=ids.SCHEME_CHOICE, storage_type="local"),
            dcc.Store(id=ids.SCHEME, data=opened.scheme),
            *_band(context),
            _top_bar(context),
            _nav(context),
            *tour.bar(context.settings.tour),
            times.past_bar(),
            html.Main(opened.view, id=ids.CONTENT, **attributes({SHOWN: opened.pathname})),
            _help(context),
            _keymap(),
            operation_dialog.dialog(),
            palette.dialog(),
            times.dialog(),
            html.Div(id=ids.NOTE, className="toast", role="status"),
        ],
        className="frame",
    )
    return dmc.MantineProvider(frame, id=ids.PROVIDER, theme=MANTINE_THEME)


def register(app: Dash, context: PageContext) -> None:
    """Top bar figures, theme, pause, help; the dialogs of the frame."""
    operation_dialog.register(app, context)
    rights.register(app, context)
    palette.register(app, context)
    times.register(app, context)

    @app.callback(
        Output(ids.HEAD, MARKUP),
        Output(ids.HEAD_RATES, MARKUP),
        Input(ids.TICK, "data"),
        prevent_initial_call=True,
        websocket=True,
    )
    def fill_top_bar(_: object) -> tuple[str, str]:
        return _top_bar_texts(context)

    _register_in_browser(app)


def _register_in_browser(app: Dash) -> None:
    in_browser: Any = app.clientside_callback
    for function, outputs, inputs in (
        (
            "hear",
            [Output(ids.TICK, "data"), Output(ids.CHART_TICK, "data")],
            [
                Input(ids.BEAT, "data"),
                Input(ids.PAUSED, "data"),
                Input(ids.TIME, "data"),
                State(ids.TAB, "data"),
                State(ids.TICK, "data"),
                State(ids.CHART_TICK, "data"),
            ],
        ),
        (
            "togglePause",
            [Output(ids.PAUSED, "data"), Output(ids.PAUSE_BUTTON, "children")],
            [Input(ids.PAUSE_BUTTON, "n_clicks")],
        ),
        (
            "switchScheme",
            [Output(ids.SCHEME_CHOICE, "data")],
            [Input(ids.SCHEME_SWITCH, "n_clicks"), State(ids.SCHEME, "data")],
        ),
        (
            "applyScheme",
            [Output(ids.PROVIDER, "forceColorScheme"), Output(ids.SCHEME, "data")],
            [Input(ids.SCHEME_CHOICE, "data"), State(ids.SCHEME, "data")],
        ),
        (
            "toggleHelp",
            [Output(ids.HELP, "opened")],
            [Input(ids.HELP_BUTTON, "n_clicks"), State(ids.HELP, "opened")],
        ),
        (
            "togglePalette",
            [Output(ids.PALETTE, "opened"), Output(ids.PALETTE_QUERY, "value")],
            [Input(ids.PALETTE_BUTTON, "n_clicks")],
        ),
        ("followRedirect", [], [Input(ids.REDIRECT, "data")]),
        ("markNav", [Output(ids.NAV, "data-view")], [Input(ids.LOCATION, "pathname")]),
    ):
        in_browser(
            ClientsideFunction("partiscope", function),
            *outputs,
            *inputs,
            prevent_initial_call=function
            in {"togglePause", "switchScheme", "toggleHelp", "togglePalette"},
        )  # fmt: skip


def _top_bar_texts(context: PageContext) -> tuple[str, str]:
    return top_bar_texts(context.snapshot, context.now_ms(), context.watched.name)


def top_bar_texts(snapshot: OperatorSnapshot, now_ms: int, name: str = "") -> tuple[str, str]:
    """Markup of the top bar's left and right; a cluster without a ``name`` shows its id."""
    head = snapshot.headline
    left = (
        badge(
            ids.HEAD_CLUSTER,
            html.Span(name or head.cluster.text, title=f"cluster {head.cluster.text}"),
        ),
        badge(ids.HEAD_BROKERS, toned(head.brokers)),
        badge(ids.HEAD_CONTROLLER, head.controller.text),
        badge(ids.HEALTH, _health(snapshot)),
        badge(ids.HEAD_MOVING, _moving(snapshot)),
    )
    job = badge(ids.JOB, toned(snapshot.job_cell(now_ms)))
    right = (
        badge(ids.HEAD_IN, f"in {head.in_bytes.text}"),
        badge(ids.HEAD_OUT, f"out {head.out_bytes.text}"),
        dcc.Link(job, href="/job", title="The metrics job (g h)"),
    )
    return markup(left), markup(right)


def _health(snapshot: OperatorSnapshot) -> Any:
    """The badge of the whole, leading to what it is about."""
    words = toned(snapshot.health)
    return dcc.Link(words, href=f"/{snapshot.health_path}") if snapshot.health_path else words


def _moving(snapshot: OperatorSnapshot) -> Any:
    """That partitions move, leading to the reassignments; nothing where none does."""
    moving = snapshot.headline.moving
    return dcc.Link(toned(moving), href="/moves") if moving.value else None


def view_of(pathname: str | None, search: str | None) -> ViewPath | str:
    """The wanted view, or why there is none."""
    try:
        return parse_path((pathname or "/") + (search or ""))
    except PathError as error:
        return str(error)


def _top_bar(context: PageContext) -> html.Header:
    read_only = (
        [html.Span(toned(Cell(1, "read-only")), className="badge")]
        if context.watched.is_read_only
        else []
    )
    left, right = _top_bar_texts(context)
    return html.Header(
        [
            dcc.Link("partiscope", href="/overview", className="brand"),
            *_clusters(context),
            markup_box(left, id=ids.HEAD, className="head-places"),
            *read_only,
            html.Span(className="stretch"),
            markup_box(right, id=ids.HEAD_RATES, className="head-places"),
            html.Span("…", id=ids.AGE, className="age", title="Since the newest figure was read"),
            html.Span(_icons(), className="icons"),
            *_account(context),
        ],
        className="top-bar",
    )  # fmt: skip


def _band(context: PageContext) -> list[Any]:
    """A band in the cluster's colour over everything; what is production says so in words."""
    watched = context.watched
    if watched.hex_color is None:
        return []
    words = f"{PRODUCTION} {watched.name}" if watched.is_production else ""
    return [html.Div(words, className="cluster-band", role="note")]


def _clusters(context: PageContext) -> list[Any]:
    """The switcher, where there is something to switch: the browser fills in present view."""
    if len(context.clusters) == 1:
        return []
    here = context.watched.name
    choices = [
        html.A(
            [
                html.Span("●", style={"color": place.watched.hex_color or "inherit"}),
                " ".join((name, *place.watched.flags)),
            ],
            href=f"/overview?{urlencode({QUERY: name})}",
            className="cluster-choice",
            **attributes({"data-name": name, **({"aria-current": "true"} if name == here else {})}),
        )
        for name, place in context.clusters.items()
    ]
    summary = html.Summary(here, title="Another cluster (c)")
    return [html.Details([summary, html.Div(choices)], id=ids.CLUSTERS, className="clusters")]


def _account(context: PageContext) -> list[Any]:
    """The login with its role here, and the way out; nothing where nobody has to log in."""
    login = acting()
    if login is None:
        return []
    role = login.role_on(context.watched.name)
    words = f"{login.name} · {role.name if role else 'no role'}"
    if login.proven_by == PROXY:
        return [html.Span(words, className="account")]
    out = html.Button("Log out", className="icon wide-icon", type="submit")
    form = html.Form(out, method="post", action="/logout")
    return [html.Span([html.Span(words), form], className="account")]


def _icons() -> list[html.Button]:
    return [
        html.Button("❚❚", id=ids.PAUSE_BUTTON, className="icon", title="Pause (Space)",
                    **aria("pause")),
        html.Button("◐", id=ids.SCHEME_SWITCH, className="icon", title="Light or dark (t)",
                    **aria("light or dark")),
        html.Button("link", id=ids.COPY_BUTTON, className="icon wide-icon",
                    title="Copy link (y)",
                    **aria("copy the link of this view")),
        html.Button("⌘", id=ids.PALETTE_BUTTON, className="icon", title="Palette (:)",
                    **aria("palette")),
        html.Button("?", id=ids.HELP_BUTTON, className="icon", title="Keys (?)",
                    **aria("help")),
    ]  # fmt: skip


def _nav(context: PageContext) -> html.Nav:
    links = [
        dcc.Link(label, href=f"/{path}", className="nav-link", title=keys, id=f"nav-{path}")
        for path, label, keys in NAV_LINKS
        if path != "clusters" or len(context.clusters) > 1
    ]
    when = html.Button(
        html.Span("last 10 minutes", id=ids.TIME_SHOWN),
        id=ids.TIME_BUTTON,
        className="time-button",
        title="Look at another time (@)",
    )
    return html.Nav([*links, when], id=ids.NAV, className="nav", **attributes({"data-view": ""}))


def _keymap() -> html.Div:
    """Places and operations by their keys, for the script that listens to keys."""
    places = {place.key: place.path for place in PLACES}
    forms = {form.key: form.name for form in FORMS}
    return html.Div(
        id=ids.KEYMAP,
        hidden=True,
        **attributes({"data-places": json.dumps(places), "data-forms": json.dumps(forms)}),
    )


def _help(context: PageContext) -> Any:
    head = html.Tr([html.Th(word) for word in ("Where", "Key", "Does")])
    lines = [
        *(("anywhere", f"g {place.key}", f"{place.title}: {place.help}") for place in PLACES),
        *((line.where, line.key, line.does) for line in KEYS),
        *(("operations", form.key, f"{form.title}: {form.help}") for form in FORMS),
        ("a figure", "i", "why: what it means, where the pointer or the focus is"),
        ("anywhere", "t", "light or dark"),
    ]
    body = [
        html.Tr([html.Td(where), html.Td(html.Kbd(key)), html.Td(does)])
        for where, key, does in lines
    ]
    table = html.Table([html.Thead(head), html.Tbody(body)], className="rows wraps")
    return modal(ids.HELP, "Keys", [*tour.link(context.settings.tour), still(table)], size="lg")
