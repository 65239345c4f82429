"""Answers only who has logged in: by a session, or by the header of the one trusted proxy.

Stands behind the check of Host and Origin, so that no other site asks in the name of a login. On
each request, and all the time on a WebSocket, it asks whether the login still holds. Whoever
answers finds it in ``control.access.login.acting``.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import parse_qs

from control.access.login import PAGE, PASSWORD, PROXY, Login, Users, act_as
from dashboard.server.login.login_page import login_address, login_document, next_path
from dashboard.server.login.sessions import Attempts, Clock, Sessions
from dashboard.server.origin_check import DATA, App, Message, Receive, Scope, Send

BODY_BYTES_MAX: Final = 8_192
BODY_S_MAX: Final = 10.0
LOOK_S: Final = 1.0
"""How often a WebSocket asks whether its login still holds."""
VERIFIED_AT_ONCE_MAX: Final = 2
"""Each takes 64 MiB and a processor for some 50 ms."""
WAITING_MAX: Final = 20
POLICY_VIOLATION: Final = 1008
_FREE: Final = frozenset({"/health", "/favicon.ico"})
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_HTML: Final = (b"content-type", b"text/html; charset=utf-8")
_NO_STORE: Final = (b"cache-control", b"no-store")
_WRONG: Final = "Name or password is wrong."

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSettings:
    """The users, and the ways to log in."""

    users: Users
    lasts_s: float
    """How long a session lasts."""
    proxy_header: str = ""
    """Header in which the proxy names who has logged in there; empty: there is none."""
    proxy_address: str = ""
    """The one address from which it is believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    login: Login
    is_live: Callable[[], bool]
    """Whether it still holds."""
    token: str = ""


class LoginCheck:
    """ASGI middleware. ``cookie`` is the name of the session's cookie: pages on several ports of
    one host share cookies."""

    def __init__(
        self, app: App, logins: LoginSettings, *, cookie: str, now_s: Clock = time.monotonic
    ) -> None:
        self._app = app
        self._logins = logins
        self._cookie = cookie
        self.sessions = Sessions(logins.users, lasts_s=logins.lasts_s, now_s=now_s)
        self._attempts = Attempts(now_s)
        self._verifying = asyncio.Semaphore(VERIFIED_AT_ONCE_MAX)
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"} or scope["path"] in _FREE:
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        known = self._known(scope, headers)
        if scope["type"] == "websocket":
            await self._websocket(known, scope, receive, send)
        elif scope["path"] in ("/login", "/logout"):
            await self._log_in_or_out(known, scope, receive, send)
        elif known is None:
            await self._refuse(scope, headers, send)
        else:
            act_as(known.login)
            await self._app(scope, receive, send)

    def _known(self, scope: Scope, headers: Mapping[str, list[str]]) -> _Known | None:
        users, header = self._logins.users, self._logins.proxy_header.lower()
        peer = _peer(scope)
        if header and peer == self._logins.proxy_address and header in headers:
            (name, *more) = headers[header]
            address, stamp = _forwarded_for(headers) or peer, users.stamp(name)
            login = users.login(name, proven_by=PROXY, face=PAGE, address=address)
            if more or login is None:
                return None
            return _Known(login=login, is_live=lambda: users.stamp(name) == stamp)
        token = _cookie_of(headers, self._cookie)
        name = self.sessions.name_of(token)
        address = asking_address(scope, self._logins.proxy_address)
        login = users.login(name, proven_by=PASSWORD, face=PAGE, address=address) if name else None
        if login is None:
            return None
        return _Known(login=login, is_live=lambda: bool(self.sessions.name_of(token)), token=token)

    async def _websocket(
        self, known: _Known | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if known is None:
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": "log in"})
            return
        act_as(known.login)
        await self._app(scope, _while_live(receive, send, known.is_live), send)

    async def _refuse(self, scope: Scope, headers: Mapping[str, list[str]], send: Send) -> None:
        """Views lead to the login; everything else is told."""
        path = scope["path"]
        is_view = scope["method"] in ("GET", "HEAD") and not DATA.match(path)
        if is_view and "text/html" in "".join(headers.get("accept", [])):
            query = scope.get("query_string", b"").decode("latin-1")
            raw = scope.get("raw_path", path.encode()).decode("latin-1")
            await _answer(send, 303, [_location(login_address(f"{raw}?{query}" if query else raw))])
            return
        words = "401: log in first"
        if path == "/metrics":
            words = f"{words}; Prometheus asks `partiscope exporter`, which has no logins"
        await _answer(send, 401, [_TEXT, _NO_STORE], f"{words}\n")

    async def _log_in_or_out(
        self, known: _Known | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers, method = headers_of(scope), scope["method"]
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        wanted = next_path(query.get("next", [""])[0])
        is_login = scope["path"] == "/login"
        if method == "POST" and "origin" not in headers:
            # Browsers name it with each form; its value was judged before.
            await _answer(send, 403, [_TEXT], "403: a form must name its Origin\n")
        elif method == "POST" and not is_login:
            if known is not None:
                self.sessions.end(known.token)
            await _answer(send, 303, [_location("/login"), self._cookie_header("", headers)])
        elif method == "POST":
            await self._log_in(scope, headers, receive, send)
        elif is_login and known is not None:
            await _answer(send, 303, [_location(wanted)])
        elif is_login and method in ("GET", "HEAD"):
            await self._ask(send, 200, headers, wanted)
        else:
            await _answer(send, 405, [_TEXT], "405: a form asks for this\n")

    async def _log_in(
        self, scope: Scope, headers: Mapping[str, list[str]], receive: Receive, send: Send
    ) -> None:
        try:
            body = await asyncio.wait_for(_body(receive), BODY_S_MAX)
        except TimeoutError:
            await _answer(send, 408, [_TEXT], "408: the form did not arrive\n")
            return
        if body is None:
            await _answer(send, 413, [_TEXT], "413: that is no login\n")
            return
        form = _form(body)
        name, password, wanted = (
            form.get(field, [""])[0] for field in ("name", "password", "next")
        )
        name, address = name.strip()[:100], asking_address(scope, self._logins.proxy_address)
        wait_s = self._attempts.begin(name, address)
        if wait_s or self._waiting >= WAITING_MAX:
            words = f"Too many attempts failed. Try again in {max(wait_s, 1) / 60:.0f} min."
            more = [(b"retry-after", str(int(wait_s) + 1).encode())]
            await self._ask(send, 429, headers, wanted, name=name, problem=words, more=more)
        elif await self._is_right(name, password):
            self._attempts.succeeded(name, address)
            self.sessions.end(_cookie_of(headers, self._cookie))
            cookie = self._cookie_header(self.sessions.begin(name), headers, scope)
            await _answer(send, 303, [_location(next_path(wanted)), cookie])
        else:
            await self._ask(send, 401, headers, wanted, name=name, problem=_WRONG)

    async def _is_right(self, name: str, password: str) -> bool:
        self._waiting += 1
        try:
            async with self._verifying:
                return await asyncio.to_thread(self._logins.users.verify, name, password)
        finally:
            self._waiting -= 1

    async def _ask(
        self,
        send: Send,
        status: int,
        headers: Mapping[str, list[str]],
        wanted: str,
        *,
        name: str = "",
        problem: str = "",
        more: Headers | None = None,
    ) -> None:
        scheme = _cookie_of(headers, "scheme")
        document = login_document(wanted, name=name, problem=problem, scheme=scheme)
        await _answer(send, status, [_HTML, _NO_STORE, *(more or [])], document)

    def _cookie_header(
        self, token: str, headers: Mapping[str, list[str]], scope: Scope | None = None
    ) -> tuple[bytes, bytes]:
        """An empty token ends the cookie. ``Secure`` where the browser came by TLS, by its own
        word: the form's Origin."""
        is_secure = headers.get("origin", [""])[0].startswith("https://")
        is_secure |= scope is not None and scope.get("scheme") == "https"
        age_s = int(self._logins.lasts_s) if token else 0
        parts = [f"{self._cookie}={token}", "Path=/", "HttpOnly", "SameSite=Lax"]
        parts += [f"Max-Age={age_s}", *(["Secure"] if is_secure else [])]
        return b"set-cookie", "; ".join(parts).encode()


def _while_live(receive: Receive, send: Send, is_live: Callable[[], bool]) -> Receive:
    """Messages of a WebSocket until its login ends; then it is closed."""
    gone: Message = {"type": "websocket.disconnect", "code": POLICY_VIOLATION}
    is_over = False

    async def receive_while_live() -> Message:
        nonlocal is_over
        if is_over:
            return gone
        reading = asyncio.ensure_future(receive())
        try:
            while is_live() and not reading.done():
                await asyncio.wait({reading}, timeout=LOOK_S)
            if is_live():
                return reading.result()
        finally:
            reading.cancel()
        is_over = True
        with suppress(Exception):  # it may be closed already
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": "log in"})
        return gone

    return receive_while_live


async def _body(receive: Receive) -> bytes | None:
    """The body of a small form; None: it is larger, or broken off."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if message["type"] != "http.request" or len(body) > BODY_BYTES_MAX:
            return None
        if not message.get("more_body"):
            return bytes(body)


def _form(body: bytes) -> dict[str, list[str]]:
    try:
        return parse_qs(body.decode("utf-8", "replace"), max_num_fields=10)
    except ValueError:  # more fields than a login has
        return {}


async def _answer(send: Send, status: int, headers: Headers, text: str = "") -> None:
    body = text.encode()
    told = [*headers, (b"content-length", str(len(body)).encode())]
    if status not in (200, 303):
        told.append((b"connection", b"close"))  # what is left of a body is not read
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})


def _location(path: str) -> tuple[bytes, bytes]:
    return b"location", path.encode()


def headers_of(scope: Scope) -> dict[str, list[str]]:
    """Values by name in small letters."""
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _cookie_of(headers: Mapping[str, list[str]], name: str) -> str:
    """The value of a cookie; empty: there is none, or several, and some may be another site's."""
    parts = (part for it in headers.get("cookie", []) for part in it.split(";"))
    pairs = (part.strip().partition("=") for part in parts)
    found = [value for key, _, value in pairs if key == name]
    return found[0] if len(found) == 1 else ""


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return _plain_address(client[0]) if client else ""


def asking_address(scope: Scope, proxy_address: str) -> str:
    """The address that asks; only the trusted proxy is believed for whom it asks."""
    peer = _peer(scope)
    is_proxy = bool(peer) and peer == proxy_address
    return (_forwarded_for(headers_of(scope)) if is_proxy else "") or peer


def _forwarded_for(headers: Mapping[str, list[str]]) -> str:
    """The last one: the proxy itself has written it."""
    told = ",".join(headers.get("x-forwarded-for", [])).rpartition(",")[2].strip()
    return _plain_address(told)


def _plain_address(text: str) -> str:
    """Empty: it is none."""
    try:
        address = ip_address(text)
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
