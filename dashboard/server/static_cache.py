"""Scripts and styles are compressed once, and served from memory from then on.

The page's libraries are two megabytes when compressed; compressing them anew for every visit would
take most of a second of the process that also draws. What is kept are whole answers, under the
very address that was asked for: the files of a running page do not change. The layout has the view
of the address in it that asks for it, so nobody keeps it: a browser that goes back would show that
of another view.
"""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

FOLDERS: Final = ("/_dash-component-suites/", "/assets/")
LAYOUT: Final = "/_dash-layout"
KEPT_BYTES_MAX: Final = 32 * 2**20
_GZIP: Final = b"gzip"
LEVEL: Final = 6
"""Within one in 200 bytes of the smallest, in two thirds of the time."""
_ENCODING: Final = (b"accept-encoding",)
_VARY: Final = (b"vary", b"Accept-Encoding")
_FINGERPRINT: Final = b"m="
"""In the address of our own files: another file has another address."""
_NEVER: Final = (b"cache-control", b"no-store")
_FOR_EVER: Final = (b"cache-control", b"public, max-age=31536000, immutable")


@dataclass(frozen=True, slots=True)
class _Answer:
    start: Message
    body: bytes


class StaticCache:
    """ASGI middleware that answers a file's second visitor from memory."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._kept: dict[str, _Answer] = {}
        self._kept_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_kept(scope):
            is_layout = scope["type"] == "http" and scope["path"] == LAYOUT
            await self._app(scope, receive, _never_kept(send) if is_layout else send)
            return
        address = f"{scope['path']}?{scope['query_string'].decode('latin-1')}"
        answer = self._kept.get(address) or await self._ask(scope, receive)
        self._keep(address, answer)
        await send(answer.start)
        await send({"type": "http.response.body", "body": answer.body})

    async def _ask(self, scope: Scope, receive: Receive) -> _Answer:
        start: Message = {}
        pieces: list[bytes] = []

        async def collect(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                pieces.append(message.get("body", b""))

        await self._app(
            {**scope, "headers": _without(scope["headers"], _ENCODING)}, receive, collect
        )
        body = b"".join(pieces)
        if start.get("status") != 200:
            return _Answer(start, body)
        body = await asyncio.to_thread(gzip.compress, body, LEVEL)
        named = _without(start["headers"], (b"content-length",))
        named += [(b"content-encoding", _GZIP), (b"content-length", str(len(body)).encode()), _VARY]
        if _FINGERPRINT in scope["query_string"]:
            named.append(_FOR_EVER)
        return _Answer({**start, "headers": named}, body)

    def _keep(self, address: str, answer: _Answer) -> None:
        is_new = address not in self._kept and answer.start.get("status") == 200
        if is_new and self._kept_bytes + len(answer.body) <= KEPT_BYTES_MAX:
            self._kept[address] = answer
            self._kept_bytes += len(answer.body)


def _never_kept(send: Send) -> Send:
    async def send_with_header(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), _NEVER]
        await send(message)

    return send_with_header


def _without(headers: Headers, names: Collection[bytes]) -> Headers:
    return [(name, value) for name, value in headers if name.lower() not in names]


def _is_kept(scope: Scope) -> bool:
    """A file asked for by a browser that takes gzip and does not already have it."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    headers = dict(scope["headers"])
    takes_gzip = _GZIP in headers.get(b"accept-encoding", b"")
    return scope["path"].startswith(FOLDERS) and takes_gzip and b"if-none-match" not in headers
