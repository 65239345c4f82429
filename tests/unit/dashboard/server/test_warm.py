"""What every visitor needs is asked for before anybody comes."""

from collections.abc import MutableMapping
from typing import Any

from dashboard.server.origin_check import Receive, Send
from dashboard.server.warm import warm

DOCUMENT = b"""<link rel="stylesheet" href="/assets/a.css?m=1"><a href="/overview">
<script src="/@prod/_dash-component-suites/x/b.js"></script><script>var c = "/assets/c.js";</script>
<script src="https://elsewhere/assets/d.js"></script>"""


async def test_the_document_and_all_it_names_are_asked_for() -> None:
    asked: list[tuple[str, bytes, dict[bytes, bytes]]] = []

    async def page(scope: MutableMapping[str, Any], _: Receive, send: Send) -> None:
        asked.append((scope["path"], scope["query_string"], dict(scope["headers"])))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send(
            {"type": "http.response.body", "body": DOCUMENT if scope["path"] == "/" else b""}
        )

    await warm(page, "localhost:1")

    assert [(path, query) for path, query, _ in asked] == [
        ("/", b""),
        ("/assets/a.css", b"m=1"),
        ("/@prod/_dash-component-suites/x/b.js", b""),
        ("/assets/c.js", b""),
        ("/_dash-layout", b""),
    ]
    assert all(headers[b"host"] == b"localhost:1" for _, _, headers in asked)
    assert asked[-1][2][b"referer"] == b"http://localhost:1/overview"
