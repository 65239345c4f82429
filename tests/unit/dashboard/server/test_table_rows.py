"""The rows of the large tables: what a grid asks becomes a query, what it gets texts and tones."""

import asyncio
import gzip
import json
import threading
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi import FastAPI, Request

from control.views.snapshots import snapshot as views
from control.views.tables.query import TableQuery
from dashboard.components.grid import BLOCK_ROWS
from dashboard.server import export, table_rows
from dashboard.server.export import FILES_AT_ONCE_MAX
from dashboard.server.table_rows import answer_of, count_words, query_of, row_of
from tests.support.patience import WAIT_S
from tests.support.settle import until
from tests.unit.dashboard.page_context import context_on


def test_a_request_becomes_a_query() -> None:
    asked = {"from": "200", "to": "300", "q": "topic:a", "sort": "-lag"}

    assert query_of(asked) == TableQuery(filter="topic:a", sort="-lag", offset=200, limit=100)
    assert query_of({}) == TableQuery(limit=BLOCK_ROWS)
    with pytest.raises(ValueError, match="many"):
        query_of({"from": "many"})


def test_rows_have_identity_texts_and_tones(tmp_path: Path) -> None:
    page = views.partition_page(context_on(tmp_path).snapshot, TableQuery(limit=2))

    answer = answer_of(page)

    assert (answer["count"], answer["words"], answer["is_problem"]) == (12, "12 rows", False)
    assert [row["key"] for row in answer["rows"]] == ["topic-0-0", "topic-0-1"]
    first = row_of(page.rows[0], page.columns)
    assert first["path"] == "topics/topic-0/partitions/0"
    assert (first["status"], first["status__tone"]) == ("✔ ok", "fine")
    assert first["leader"] == "★ 101"


def test_counts_tell_how_many_match(tmp_path: Path) -> None:
    snapshot = context_on(tmp_path).snapshot

    assert count_words(views.partition_page(snapshot)) == "12 rows"
    some = views.partition_page(snapshot, TableQuery(filter="topic-1"))
    assert count_words(some) == "4 of 12 rows"


async def _stay() -> dict[str, object]:
    return await asyncio.Future()


@pytest.mark.parametrize(("room", "suffix"), [(table_rows, ()), (export, ("csv",))])
async def test_few_answers_are_made_at_once_and_none_for_who_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: ModuleType, suffix: tuple[str, ...]
) -> None:
    """One tab that asks fifty dear questions leaves the page time for others."""
    server = FastAPI()
    room.register(server, context_on(tmp_path))
    route: Any = server.routes[-1]
    ask = partial(route.endpoint, "topics", *suffix)
    begun, may_go_on = list[str](), threading.Event()

    def slow(snapshot: Any, kind: str, *_: Any) -> Any:
        begun.append(kind)
        assert may_go_on.wait(WAIT_S)
        return views.list_page(snapshot, kind)

    monkeypatch.setattr(room, "list_page", slow)
    leaves = asyncio.Event()

    async def go() -> dict[str, object]:
        await leaves.wait()
        return {"type": "http.disconnect"}

    scope = {"type": "http", "query_string": b"", "headers": []}
    first = [asyncio.create_task(ask(Request(scope, _stay))) for _ in range(2)]
    await until(lambda: len(begun) == len(first))
    late = [asyncio.create_task(ask(Request(scope, go))) for _ in range(50)]
    leaves.set()
    gone = await asyncio.wait_for(asyncio.gather(*late), WAIT_S)
    assert {answer.status_code for answer in gone} == {499}
    may_go_on.set()
    made = await asyncio.wait_for(asyncio.gather(*first), WAIT_S)
    assert [answer.status_code for answer in made] == [200, 200]
    assert len(begun) == len(first) == table_rows.AT_ONCE_MAX


async def test_files_that_nobody_takes_are_bounded(tmp_path: Path) -> None:
    server = FastAPI()
    export.register(server, context_on(tmp_path))
    route: Any = server.routes[-1]
    request = Request({"type": "http", "query_string": b"", "headers": []}, _stay)
    slow = [await route.endpoint("topics", "csv", request) for _ in range(FILES_AT_ONCE_MAX)]
    begun = [aiter(answer.body_iterator) for answer in slow]
    heads = [await anext(pieces) for pieces in begun]
    assert all(head.startswith("topic,") for head in heads)

    refused = await route.endpoint("topics", "csv", request)
    assert (refused.status_code, f"{FILES_AT_ONCE_MAX} files" in refused.body.decode()) == (
        429,
        True,
    )
    async for _ in begun[0]:
        pass
    assert (await route.endpoint("topics", "csv", request)).status_code == 200


@pytest.mark.parametrize(
    ("kind", "query", "status", "found"),
    [
        ("partitions", "q=topic-1&from=1&to=3", 200, ["topic-1-1", "topic-1-2"]),
        ("partitions", "scope=topic-2&sort=-partition&to=1", 200, ["topic-2-3"]),
        ("partitions", "q=nothing:1", 200, []),
        ("partitions", "from=many", 400, "row numbers"),
        ("shelves", "", 404, "there are topics"),
    ],
)
def test_the_route_answers_what_is_asked_and_says_what_is_wrong(
    tmp_path: Path, kind: str, query: str, status: int, found: list[str] | str
) -> None:
    server = FastAPI()
    table_rows.register(server, context_on(tmp_path))
    route: Any = server.routes[-1]
    headers = [(b"accept-encoding", b"gzip, br")]
    scope = {"type": "http", "query_string": query.encode(), "headers": headers}

    answer = asyncio.run(route.endpoint(kind, Request(scope, _stay)))

    assert answer.status_code == status
    if isinstance(found, str):
        assert found in answer.body.decode()
    else:
        page = json.loads(gzip.decompress(answer.body))
        assert [row["key"] for row in page["rows"]] == found
        assert page["is_problem"] == ("nothing" in query)
