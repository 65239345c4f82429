"""Who may ask: Host and Origin, on HTTP and on WebSocket."""

from typing import Any

import pytest

from dashboard.server.origin_check import OriginCheck, refusal_of
from dashboard.settings import DashboardSettings

HOSTS = DashboardSettings(store="s", allowed_hosts=["ops.example"]).hosts(8050)


def scope(kind: str = "http", **headers: str) -> dict[str, Any]:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": kind, "headers": pairs, "extensions": {"websocket.http.response": {}}}


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "127.0.0.1:8050"},
        {"host": "localhost:8050"},
        {"host": "LOCALHOST:8050", "origin": "http://localhost:8050"},
        {"host": "[::1]:8050"},
        {"host": "127.0.0.1:9999"},
        {"host": "localhost:18050", "origin": "http://localhost:18050"},
        {"host": "localhost"},
        {"host": "127.0.0.1:8050", "origin": "https://ops.example"},
        {"host": "ops.example", "origin": "https://ops.example"},
    ],
)
def test_own_names_are_answered(headers: dict[str, str]) -> None:
    assert refusal_of(scope(**headers), HOSTS) is None


def test_a_page_on_an_address_of_version_6_answers_by_it() -> None:
    hosts = DashboardSettings(store="s", host="fd00::7").hosts(8050)
    assert refusal_of(scope(host="[fd00::7]:8050"), hosts) is None


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "Host"),
        ({"host": "evil.example:8050"}, "Host"),
        ({"host": "evil.example:9999"}, "Host"),
        ({"host": "localhost.evil.example:8050"}, "Host"),
        ({"host": "x@localhost:8050"}, "Host"),
        ({"host": "localhost/:8050"}, "Host"),
        ({"host": "["}, "Host"),
        ({"host": "localhost:18050", "origin": "http://localhost:3000"}, "Origin"),
        ({"host": "127.0.0.1:8050", "origin": "http://evil.example"}, "Origin"),
        ({"host": "127.0.0.1:8050", "origin": "http://127.0.0.1:8051"}, "Origin"),
        ({"host": "127.0.0.1:8050", "origin": "null"}, "Origin"),
        ({"host": "127.0.0.1:8050", "origin": "http://["}, "Origin"),
    ],
)
def test_other_names_and_origins_are_refused_with_the_reason(
    headers: dict[str, str], reason: str
) -> None:
    refusal = refusal_of(scope(**headers), HOSTS)

    assert refusal is not None
    assert refusal.startswith(reason)


VIEW = {"host": "localhost:8050", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
COSTLY = (
    *("/messages/a.jsonl", "/record/a/0/1", "/rows/topics", "/export/plan", "/@a/rows/t"),
    *("/metrics", "/@a/metrics"),
)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_other_sites_may_link_to_views_and_ask_nothing_else(site: str) -> None:
    link = {**VIEW, "sec-fetch-site": site}
    assert refusal_of({**scope(**link), "method": "GET", "path": "/topics/a.b"}, HOSTS) is None
    for change in (
        {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},  # <img src=…>
        {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"},
        {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
        {"sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
    ):
        asked = {**scope(**{**link, **change}), "method": "GET", "path": "/assets/partiscope.css"}
        assert "Sec-Fetch-Site" in (refusal_of(asked, HOSTS) or "")
    for method, path in (("POST", "/topics"), *(("GET", path) for path in COSTLY)):
        asked = {**scope(**link), "method": method, "path": path}
        assert "Sec-Fetch-Site" in (refusal_of(asked, HOSTS) or "")


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_the_page_itself_and_what_is_typed_may_ask_all(site: str) -> None:
    for path in COSTLY:
        asked = scope(**{"host": "localhost", "sec-fetch-site": site})
        assert refusal_of({**asked, "method": "GET", "path": path}, HOSTS) is None


def test_a_websocket_must_name_its_origin() -> None:
    own = {"host": "127.0.0.1:8050"}

    assert refusal_of(scope("websocket", **own), HOSTS) is not None
    fine = scope("websocket", **own, origin="http://127.0.0.1:8050")
    assert refusal_of(fine, HOSTS) is None


async def ask(kind: str, path: str = "/", **headers: str) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> dict[str, Any]:
        return {"type": f"{kind}.connect"}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    await OriginCheck(app, lambda: HOSTS)({**scope(kind, **headers), "path": path}, receive, send)
    return sent


async def test_refused_requests_get_403_and_never_reach_the_page() -> None:
    for kind in ("http", "websocket"):
        start, body = await ask(kind, host="evil.example")
        assert start["status"] == 403
        assert b"evil.example" in body["body"]


async def test_answers_carry_protective_headers() -> None:
    (start,) = await ask("http", host="127.0.0.1:8050")
    headers = dict(start["headers"])

    assert headers[b"x-frame-options"] == b"DENY"
    assert headers[b"cross-origin-resource-policy"] == b"same-origin"
    policy = headers[b"content-security-policy"].decode()
    assert "default-src 'self'" in policy
    (scripts,) = [each for each in policy.split("; ") if each.startswith("script-src")]
    assert "unsafe" not in scripts
    assert b"cache-control" not in headers
    (start,) = await ask("http", path="/record/orders/0/1", host="127.0.0.1:8050")
    assert dict(start["headers"])[b"cache-control"] == b"no-store"
