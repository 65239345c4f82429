"""Pushes news to every open page over WebSocket: one small message per version of the store.

The message goes into a store of the page (``ids.BEAT``), whose news the browser hands on to
``ids.TICK`` unless the operator paused; whatever shows live figures depends on that. It comes once
a second even when nothing is new, with the age of the data: silence must be seen. When that falls
silent as well, the browser (``assets/modules/connection.js``) counts the age on and says that it
hears nothing. Each store that is written costs the page a walk through all its callbacks, so there
is one for what comes each second; moves and rights are written when they change.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dash import Dash, ctx, set_props
from dash.exceptions import WebsocketDisconnected
from fastapi import FastAPI

from control.views import format as text
from control.views.refusals import refusals
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.rows import Tone
from dashboard import ids
from dashboard.context import PageContext

HEARTBEAT_S: Final = 1.0
AMBER_INTERVALS: Final = 2


def register(app: Dash, context: PageContext) -> None:
    """One task per open page, for as long as it is open: tabs of a browser share a connection, so
    each says when it goes."""
    tabs: dict[str, asyncio.Event] = {}
    server: FastAPI = app.server

    @server.post("/tab-gone/{name}", include_in_schema=False, status_code=204)
    async def end(name: str) -> None:
        if name in tabs:
            tabs.pop(name).set()

    @app.callback(persistent=True, websocket=True)
    async def push() -> None:
        try:
            name = str(await ctx.websocket.get_prop(ids.TAB, "data"))
        except (TimeoutError, WebsocketDisconnected):
            return  # it has gone already
        gone = tabs[name] = asyncio.Event()
        try:
            await _tell(context, gone)
        finally:
            if tabs.get(name) is gone:
                del tabs[name]


async def _tell(context: PageContext, gone: asyncio.Event) -> None:
    """News, as they come, until the tab or its connection has gone."""
    context.actions.moves.maybe_follow()
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wake(_: OperatorSnapshot) -> None:
        loop.call_soon_threadsafe(changed.set)

    endings = (context.feed.subscribe(wake), context.actions.moves.subscribe(changed.set))
    seen = Seen()
    try:
        while not (gone.is_set() or ctx.websocket.is_shutdown):
            seen = push_news(context, seen)
            await _wait(changed)
    finally:
        for end in endings:
            end()


@dataclass(frozen=True, slots=True)
class Seen:
    """News that one open page has been told."""

    moves: int = -1
    denied: Mapping[str, str] | None = None


async def _wait(changed: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(changed.wait(), HEARTBEAT_S)
    except TimeoutError:
        return
    changed.clear()


def push_news(context: PageContext, seen: Seen) -> Seen:
    """Send the beat, and the versions that this page has not seen."""
    snapshot = context.snapshot
    now_ms = context.now_ms()
    words, tone = age_of(snapshot, now_ms)
    age = {"age_ms": snapshot.age_ms(now_ms), "words": words, "tone": tone}
    set_props(ids.BEAT, {"data": {"now_ms": now_ms, **age, "news": news(snapshot)}})
    denied = refusals(snapshot.watch, is_read_only=snapshot.is_read_only, is_past=False)
    current = Seen(context.actions.moves.version, dict(denied))
    if current.moves != seen.moves:
        set_props(ids.MOVES_PUSHED, {"data": current.moves})
    if current.denied != seen.denied:
        set_props(ids.RIGHTS_PUSHED, {"data": current.denied})
    return current


def news(snapshot: OperatorSnapshot) -> dict[str, Any]:
    """Marks that tell one snapshot from the next."""
    return {"version": snapshot.version, "built_ms": snapshot.built_ms}


def age_of(snapshot: OperatorSnapshot, now_ms: int) -> tuple[str, Tone]:
    """Text and tone of the data's age: amber past its interval, red past three and more."""
    age = snapshot.age_ms(now_ms)
    if age is None:
        return "no data yet", Tone.MUTED
    if snapshot.is_stale(now_ms):
        return f"✖ {text.age_text(age)}", Tone.CRITICAL
    # Between two samples the age grows up to the interval, and a batch takes about as long.
    if age > 2 * AMBER_INTERVALS * snapshot.interval_ms:
        return f"▲ {text.age_text(age)}", Tone.WARNING
    return text.age_text(age), Tone.FINE
