"""Requests that no page makes: each has an answer of its own, and none is an error of ours."""

import asyncio
from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import unquote

import pytest

from dashboard.app import create_app, guarded
from dashboard.server.origin_check import SCRIPTS_NONCE
from tests.support.cases import case
from tests.unit.dashboard.page_context import context_on

HOST: Final = "127.0.0.1:8050"
VERY_LONG: Final = "x" * 5_000


class Page:
    """The page as it is served."""

    def __init__(self, app: Any) -> None:
        self._app = app
        asyncio.run(self._start())

    async def _start(self) -> None:
        asked = [{"type": "lifespan.shutdown"}, {"type": "lifespan.startup"}]

        async def receive() -> MutableMapping[str, Any]:
            return asked.pop()

        async def send(_: MutableMapping[str, Any]) -> None:
            pass

        await self._app({"type": "lifespan"}, receive, send)

    def get(self, address: str) -> tuple[int, str]:
        return asyncio.run(self._get(address))

    async def _get(self, address: str) -> tuple[int, str]:
        path, _, query = address.partition("?")
        scope = {
            "type": "http", "method": "GET", "path": unquote(path), "raw_path": path.encode(),
            "query_string": query.encode(), "headers": [(b"host", HOST.encode())],
        }  # fmt: skip
        answers: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            answers.append(message)

        await self._app(scope, receive, send)
        body = b"".join(answer.get("body", b"") for answer in answers[1:])
        return answers[0]["status"], body.decode(errors="replace")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    context = context_on(tmp_path_factory.mktemp("store"), bootstrap="127.0.0.1:1")
    return Page(guarded(create_app(context), context, lambda: frozenset({HOST})))


def test_every_view_is_200_and_no_view_is_404(page: Page) -> None:
    names = ("/groups/team%2Fapp", "/groups/a%5B%2Fb%5Dc%3Fx%23y", "/groups/100%25", "/groups/%FF")
    for address in ("/", "/topics", "/topics/topic-0", "/brokers/101", "/favicon.ico", *names):
        with case(address):
            assert page.get(address)[0] == 200
    for address in ("/nowhere", "/topics/a/b/c/d", "/brokers/x", "/brokers/²", f"/{VERY_LONG}"):
        with case(address):
            assert page.get(address)[0] == 404


def test_all_scripts_of_the_page_are_named(page: Page) -> None:
    _, text = page.get("/")
    assert text.count("<script") == text.count(f'<script nonce="{SCRIPTS_NONCE}"') > 5


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/rows/nothing", 404),
        ("/topics?cluster=prod", 404),
        ("/@prod/topics", 404),
        ("/rows/topics?cluster=prod", 404),
        ("/rows/topics?from=x", 400),
        ("/rows/topics?from=-5&to=-10", 400),
        ("/rows/topics?to=99999999999999999999", 200),
        (f"/rows/topics?q={VERY_LONG}", 200),
        (f"/rows/partitions?q=lag>{'1' * 60_000}$", 200),
        (f"/rows/partitions?q=broker:{'9' * 1_900}", 200),
        (f"/rows/topics?sort={VERY_LONG}", 200),
        ("/rows/topics?q=((&sort=nothing", 200),
        ("/rows/topics?at=yesterday", 400),
        ("/rows/partitions?scope=nothing", 200),
        ("/export/topics.xml", 400),
        ("/export/nothing.csv", 404),
        ("/export/topics.csv?cols=nothing", 400),
        ("/export/plan", 400),
        ("/export/plan?name=nothing", 404),
        ("/report/nothing.html", 404),
        ("/report/nothing.exe", 404),
        ("/record/t/x/1", 400),
        ("/record/t/0/-1", 400),
        ("/record/t/0/99999999999999999999", 400),
        ("/record/t/99999999999/0", 400),
        ("/messages/t.exe", 404),
        ("/messages/t.jsonl?limit=x", 400),
        ("/messages/t.jsonl?cel=((", 400),
        ("/messages/t.jsonl?regex=((", 400),
        ("/messages/t.jsonl?since=nothing", 400),
        ("/messages/t.jsonl?partitions=x", 400),
        ("/messages/t.jsonl?vf=nothing", 400),
    ],
)
def test_a_bad_request_is_told(page: Page, address: str, status: int) -> None:
    found, text = page.get(address)
    assert (found, "Traceback" in text) == (status, False), text[:300]
