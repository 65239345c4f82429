"""Answers only who may ask: checks Host and Origin before anything else does.

A page that listens on loopback can still be reached by a web site the operator has open: by a
cross-site request, or by DNS rebinding (the site's own name then points to 127.0.0.1). The first
shows in the Origin header, the second in Host; both are refused with 403 and the reason, on HTTP
and on WebSocket alike. A Host is judged by its name alone: an SSH tunnel ends at any local port. An
Origin is fine that is the very Host, or one of the page's own.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class OriginCheck:
    """ASGI middleware around the whole page. ``hosts`` are the names it answers to."""

    def __init__(self, app: App, hosts: Callable[[], frozenset[str]]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        refusal = refusal_of(scope, self._hosts())
        if refusal is None:
            await self._app(scope, receive, _with_headers(send))
        elif scope["type"] == "http":
            await _refuse_http(send, refusal)
        else:
            await _refuse_websocket(scope, receive, send, refusal)


def refusal_of(scope: Scope, hosts: frozenset[str]) -> str | None:
    """Why this request is refused; None when it is not. A WebSocket must name its origin."""
    headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
    host = headers.get(b"host", "").lower()
    origin = headers.get(b"origin")
    name = _name_of(host)
    if name is None or name not in map(_name_of, hosts):
        return f"Host {host or '(none)'!r} is not a name of this page"
    if origin is None:
        return "a WebSocket must name its Origin" if scope["type"] == "websocket" else None
    try:
        asking = urlsplit(origin).netloc.lower()
    except ValueError:  # no address at all
        asking = ""
    if asking not in {*hosts, host}:
        return f"Origin {origin!r} may not ask this page"
    return None


def _name_of(host: str) -> str | None:
    """``localhost`` of ``localhost:8050``; None: no name."""
    try:
        found = urlsplit(f"//{host}")
        return found.hostname if found.netloc == host and "@" not in host else None
    except ValueError:
        return None


async def _refuse_http(send: Send, reason: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_HEADERS]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": f"403: {reason}\n".encode()})


async def _refuse_websocket(scope: Scope, receive: Receive, send: Send, reason: str) -> None:
    await receive()
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": reason})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "websocket.http.response.start", "status": 403, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": f"403: {reason}\n".encode()})


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *_HEADERS]
        await send(message)

    return send_with_headers
