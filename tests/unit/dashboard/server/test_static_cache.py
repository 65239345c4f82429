"""Files are answered from memory the second time, everything else never."""

import gzip
from collections.abc import MutableMapping
from typing import Any

import pytest

from dashboard.server.static_cache import Receive, Send, StaticCache


class Inner:
    """Counts what it is asked."""

    def __init__(self, status: int = 200) -> None:
        self.asked: list[str] = []
        self._status = status

    async def __call__(self, scope: MutableMapping[str, Any], _: Receive, send: Send) -> None:
        self.asked.append(scope["path"])
        await send({"type": "http.response.start", "status": self._status, "headers": []})
        await send({"type": "http.response.body", "body": b"first ", "more_body": True})
        await send({"type": "http.response.body", "body": scope["path"].encode()})


async def get(app: StaticCache, path: str, **headers: str) -> tuple[int, bytes]:
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request"}

    named = {"accept-encoding": "gzip", **headers}
    encoded = [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": encoded}
    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    is_packed = (b"content-encoding", b"gzip") in sent[0]["headers"]
    assert not is_packed or (b"content-length", str(len(body)).encode()) in sent[0]["headers"]
    return sent[0]["status"], gzip.decompress(body) if is_packed else body


async def test_a_file_is_asked_for_once() -> None:
    inner = Inner()
    app = StaticCache(inner)
    first = await get(app, "/assets/a.js")
    assert first == await get(app, "/assets/a.js") == (200, b"first /assets/a.js")
    assert (await get(app, "/assets/b.js"))[1] == b"first /assets/b.js"
    assert inner.asked == ["/assets/a.js", "/assets/b.js"]
    assert (b"content-encoding", b"gzip") in await headers_of(app, b"")


@pytest.mark.parametrize(
    ("status", "path", "headers"),
    [
        (200, "/overview", {}),
        (404, "/assets/none.js", {}),
        (200, "/assets/a.js", {"accept_encoding": "identity"}),
        (200, "/assets/a.js", {"if_none_match": "x"}),
    ],
)
async def test_what_may_change_is_asked_for_again(
    status: int, path: str, headers: dict[str, str]
) -> None:
    inner = Inner(status)
    app = StaticCache(inner)
    for _ in range(2):
        assert (await get(app, path, **headers))[0] == status
    assert len(inner.asked) == 2


async def test_a_browser_keeps_what_has_a_fingerprint() -> None:
    app = StaticCache(Inner())
    assert (b"cache-control", b"public, max-age=31536000, immutable") in await headers_of(
        app, b"m=1"
    )
    assert b"cache-control" not in dict(await headers_of(app, b""))


async def test_no_browser_keeps_the_layout_which_is_that_of_one_view() -> None:
    found = await headers_of(StaticCache(Inner()), b"", "/_dash-layout")
    assert dict(found)[b"cache-control"] == b"no-store"


async def headers_of(
    app: StaticCache, query: bytes, path: str = "/assets/a.js"
) -> list[tuple[bytes, bytes]]:
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request"}

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query,
        "headers": [(b"accept-encoding", b"gzip")],
    }
    await app(scope, receive, send)
    found: list[tuple[bytes, bytes]] = sent[0]["headers"]
    return found
