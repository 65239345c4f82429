"""Answers only who may ask: checks Host and Origin before anything else does.

A page that listens on loopback can still be reached by a web site the operator has open: by a
cross-site request, or by DNS rebinding (the site's own name then points to 127.0.0.1). The first
shows in Origin or Sec-Fetch-Site, the second in Host. All are refused with 403 and the reason, on
HTTP and on WebSocket alike. A Host is judged by its name alone: an SSH tunnel ends at any local
port. An Origin is fine that is the very Host, or one of the page's own. Other sites may link to
views and ask nothing else.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SCRIPTS_NONCE: Final = secrets.token_urlsafe(16)
"""Names the scripts that are written into the page itself."""
_POLICY: Final = "; ".join(
    (
        "default-src 'self'",
        f"script-src 'self' 'nonce-{SCRIPTS_NONCE}'",
        "style-src 'self' 'unsafe-inline'",  # charts and tables set styles of their own
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


_NO_STORE: Final = (b"cache-control", b"no-store")
_OWN_SITES: Final = frozenset({"", "none", "same-origin"})
"""Empty: no browser asks, or an old one."""
_FILES: Final = re.compile(r"^(/@[^/]*)?/(assets|_dash-component-suites)/")
DATA: Final = re.compile(
    r"^(/@[^/]*)?/(?:metrics$|(?:messages|record|rows|export|report|api|_dash)[/-])"
)
"""Answers made of what the cluster holds, which no other site may have made."""


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
            await self._app(scope, receive, _with_headers(send, scope))
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
    if origin is None and scope["type"] == "websocket":
        return "a WebSocket must name its Origin"
    site = headers.get(b"sec-fetch-site", "")
    if site not in _OWN_SITES and not _is_link(scope, headers):
        return f"Sec-Fetch-Site {site!r}: other sites may link to views and ask nothing else"
    path = scope.get("path", "")
    if ".." in path.split("/") and _FILES.match(path):
        return "a path leads to the page's own files alone"
    if origin is None:
        return None
    try:
        asking = urlsplit(origin).netloc.lower()
    except ValueError:  # no address at all
        asking = ""
    if asking not in {*hosts, host}:
        return f"Origin {origin!r} may not ask this page"
    return None


def _is_link(scope: Scope, headers: Mapping[bytes, str]) -> bool:
    """Whether somebody has followed a link to a view."""
    asked = headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")
    is_followed = scope.get("method") == "GET" and asked == ("navigate", "document")
    return is_followed and not DATA.match(scope["path"])


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


def _with_headers(send: Send, scope: Scope) -> Send:
    is_data = DATA.match(scope.get("path", "")) is not None

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            is_told = any(name.lower() == _NO_STORE[0] for name, _ in given)
            kept = [_NO_STORE] if is_data and not is_told else []
            message["headers"] = [*given, *kept, *_HEADERS]
        await send(message)

    return send_with_headers
