"""Frames the view of one thing: while the thing is not there, nothing is offered to be done to it.

It may come or go while the page is open: then the view appears, or gives way, by itself. What was
typed into a view that gives way is kept for when its thing is back.
"""

from collections.abc import Callable
from typing import Any, Final

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from control.views.not_found import Missing, missing
from control.views.paths import ViewPath, parse_path
from control.views.snapshots.snapshot import OperatorSnapshot
from dashboard import ids
from dashboard.components.parts import crumbs, empty
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import Look, Time, answer, displayed_snapshot

Build = Callable[[ViewPath, Look], Any]
_NAMES: Final = frozenset({"topic", "broker", "group"})


def framed(context: PageContext, path: ViewPath, look: Look, build: Build) -> Any:
    """The view, or that its thing is not there; a view of no one thing as it is."""
    if not _NAMES & set(path.params):
        return build(path, look)
    gone = missing(displayed_snapshot(context, look.time), path)
    view = build(path, look) if gone is None else None
    return [
        dcc.Store(id=ids.THING, data={"path": str(path), "is_built": gone is None}),
        html.Div(view, id=ids.EXISTING, hidden=gone is not None),
        html.Div(_words(gone), id=ids.MISSING, hidden=gone is None),
    ]


def register(app: Dash, context: PageContext, build: Build) -> None:
    """Follow whether the thing is there."""

    @app.callback(
        Output(ids.MISSING, "children"),
        Output(ids.MISSING, "hidden"),
        Output(ids.EXISTING, "hidden"),
        Output(ids.EXISTING, "children"),
        Output(ids.THING, "data"),
        Input(ids.TICK, "data"),
        Input(ids.TIME, "data"),
        State(ids.THING, "data"),
        State(ids.EXISTING, "hidden"),
        State(ids.SCHEME, "data"),
        prevent_initial_call=True,
        websocket=True,
    )
    def follow(
        tick: Any, time: Time | None, thing: dict[str, Any], is_away: bool, scheme: str | None
    ) -> tuple[Any, ...]:
        path = parse_path(thing["path"])

        def look(snapshot: OperatorSnapshot) -> Missing | None:
            return missing(snapshot, path)

        gone = answer(context, tick, time, ("existing", thing["path"]), look)
        if (gone is not None) == bool(is_away):
            return (no_update,) * 5
        if gone is not None or thing["is_built"]:
            return _words(gone), gone is None, gone is not None, no_update, no_update
        view = build(path, Look(time or {}, scheme or "light"))
        return None, True, False, view, {**thing, "is_built": True}


def _words(gone: Missing | None) -> Any:
    if gone is None:
        return None
    up = dcc.Link(dmc.Button(gone.up_words, size="xs", variant="light"), href=f"/{gone.up}")
    return [
        crumbs(gone.crumbs),
        empty(gone.title, *gone.steps),
        html.Div(up, className="actions"),
    ]
