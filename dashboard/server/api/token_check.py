"""Lets programs use the API by a token alone, and not by a cookie, a proxy's header or a query.

What begins with ``/api/`` goes to the API alone, and the page never answers it; so a browser that
has logged in cannot be made to act by it. Whoever answers finds the token's login in
``control.access.login.acting``, and the cluster in ``chosen_cluster``.
"""

import asyncio
import re
import time
from collections.abc import Collection
from typing import Final
from urllib.parse import parse_qs

from control.access.login import Login, TokenRefusedError, Tokens, act_as
from dashboard.server.api.errors import ApiError
from dashboard.server.cluster_routing import chosen_cluster
from dashboard.server.login.login_check import asking_address, headers_of
from dashboard.server.login.sessions import Attempts, Clock
from dashboard.server.origin_check import App, Message, Receive, Scope, Send

BODY_BYTES_MAX: Final = 1 << 20
BODY_S_MAX: Final = 10.0
_PATH: Final = re.compile(r"/api(/|$)")
_BEARER: Final = re.compile(r"bearer ([A-Za-z0-9_-]{20,200})", re.IGNORECASE)
_ADD: Final = "make one with `partiscope tokens add NAME --role viewer` and send it"


class TokenCheck:
    """ASGI middleware: ``/api/`` is answered by ``api``, all else by ``page``."""

    def __init__(
        self,
        page: App,
        api: App,
        tokens: Tokens,
        clusters: Collection[str],
        *,
        proxy_address: str = "",
        now_s: Clock = time.monotonic,
    ) -> None:
        self._page = page
        self._api = api
        self._tokens = tokens
        self._clusters = tuple(clusters)
        self._proxy_address = proxy_address
        self._attempts = Attempts(now_s)
        self._noting: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"} or not _PATH.match(scope["path"]):
            await self._page(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "no WebSocket here"})
        else:
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            secret, login = self._login(scope)
            chosen_cluster.set(self._cluster(scope))
            body = await _body(receive)
        except ApiError as error:
            await _refuse(send, error)
            return
        act_as(login)
        noting = asyncio.create_task(asyncio.to_thread(self._tokens.maybe_note_use, secret))
        self._noting.add(noting)
        noting.add_done_callback(self._noting.discard)
        await self._api(
            {**scope, "state": {"is_live": lambda: self._is_live(secret)}},
            _after(body, receive),
            send,
        )

    def _login(self, scope: Scope) -> tuple[str, Login]:
        """:raises ApiError: the request has no token that lets it in."""
        told = headers_of(scope).get("authorization", [])
        found = _BEARER.fullmatch(told[0].strip()) if len(told) == 1 else None
        address = asking_address(scope, self._proxy_address)
        try:
            if found is None:
                raise TokenRefusedError("no token was sent as `Authorization: Bearer TOKEN`")
            return found[1], self._tokens.login(found[1], address=address)
        except TokenRefusedError as error:
            # A right token goes on: nobody guesses it, and other programs share the address.
            wait_s = self._attempts.begin("", address) if found else 0.0
            if wait_s:
                raise ApiError(
                    429, "not logged in", why="too many attempts from this address failed",
                    next_step=f"try again in {wait_s / 60:.0f} min",
                ) from error  # fmt: skip
            raise ApiError(401, "not logged in", why=str(error), next_step=_ADD) from error

    def _cluster(self, scope: Scope) -> str:
        """:raises ApiError: the query names a cluster that is not watched."""
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        name: str = query.get("cluster", [""])[0]
        if name and name not in self._clusters:
            known = ", ".join(filter(None, self._clusters)) or "the only one has no name"
            raise ApiError(
                404, f"there is no cluster {name!r} here", why=f"known: {known}",
                next_step="name another, or leave `cluster` out",
            )  # fmt: skip
        return name

    def _is_live(self, secret: str) -> bool:
        """Whether a token still lets in."""
        try:
            self._tokens.login(secret, address="")
        except TokenRefusedError:
            return False
        return True


async def _body(receive: Receive) -> bytes:
    """:raises ApiError: it is too large, or does not arrive."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S_MAX):
            while True:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > BODY_BYTES_MAX:
                    raise ApiError(
                        413, "the body was not read", why=f"it has over {BODY_BYTES_MAX:,} bytes",
                        next_step="send less",
                    )  # fmt: skip
                if message["type"] != "http.request" or not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        raise ApiError(
            408, "the body was not read", why=f"it did not arrive within {BODY_S_MAX:.0f} s",
            next_step="send it again",
        ) from None  # fmt: skip


def _after(body: bytes, receive: Receive) -> Receive:
    """The body that was read, then what comes after it."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return first.pop() if first else await receive()

    return receive_again


async def _refuse(send: Send, error: ApiError) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(error.body)).encode()),
        (b"connection", b"close"),  # what is left of a body is not read
    ]
    if error.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="partiscope"'))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": error.body})
