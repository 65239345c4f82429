"""The search as a file: its name tells where the file does not hold all."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI

from broker.protocol.records import NewRecord, build_batch
from control.kafka.errors import UnreachableError
from control.model.ids import TopicPartition
from dashboard.server import message_files
from tests.support.memory_log import MemoryCluster, MemoryLog
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking
from tests.support.settle import until
from tests.unit.dashboard.page_context import context_on

COUNT = 40
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    """Forty records in each of two partitions."""
    logs = {}
    for key in (FIRST, SECOND):
        logs[key] = log = MemoryLog()
        records = [NewRecord(value=b"%d" % number, timestamp=number) for number in range(COUNT)]
        log.append(build_batch(records), first=0, last=COUNT - 1)
    found = MemoryCluster(logs)
    monkeypatch.setattr("control.messages.message_search.RecordReader", lambda _: found.reader())
    return found


def asked(query: dict[str, str]) -> Any:
    """By somebody who waits."""
    return SimpleNamespace(query_params=query, receive=asyncio.Event().wait)


async def file_of(folder: Path, **query: str) -> tuple[str, int, str]:
    """Its name, how many lines it has, and what its header says that it lacks."""
    server = FastAPI()
    message_files.register(server, context_on(folder, bootstrap="memory:1"))
    route: Any = server.routes[-1]
    answer = await route.endpoint("orders", "jsonl", asked(query))
    name = answer.headers["content-disposition"].partition("filename=")[2]
    lines = [line async for line in answer.body_iterator]
    lacks = answer.headers.get(message_files.LACKS, "")
    return name.strip('"'), sum(map(bool, lines)), lacks


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("query", "count", "lacks"),
    [
        ({"since": "earliest"}, 2 * COUNT, ""),
        ({"since": "-10"}, 10, ""),
        ({"since": "earliest", "limit": "30"}, 30, "30 records"),
        ({"since": "earliest", "limit": "80"}, 2 * COUNT, ""),
        ({"since": "-60", "limit": "30"}, 30, "30 records"),
        ({"since": "earliest", "q": "39", "limit": "79"}, 1, "79 records"),
        ({"since": "earliest", "cel": "int(value) > 'é'"}, 0, "80 records could not be judged"),
    ],
)
async def test_a_file_that_lacks_messages_says_so_in_its_name_and_a_header(
    tmp_path: Path, query: dict[str, str], count: int, lacks: str
) -> None:
    name, lines, told = await file_of(tmp_path, **query)
    assert (name, lines) == (f"messages{'-part' if lacks else ''}.jsonl", count)
    assert told.isascii()
    assert (bool(told), lacking(told, lacks)) == (bool(lacks), [])


@pytest.mark.usefixtures("cluster")
async def test_a_file_holds_so_many_messages_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_files, "RECORDS_MAX", 50)
    name, lines, told = await file_of(tmp_path, since="earliest")
    assert (name, lines, lacking(told, "50 messages")) == ("messages-part.jsonl", 50, [])


async def test_a_file_without_a_partition_that_cannot_be_read_says_so(
    tmp_path: Path, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.kafka.records.browsing.STALLED_S", 0.1)
    cluster.refused[SECOND] = UnreachableError("gone", reason="no answer", next_step="wait")
    name, lines, told = await file_of(tmp_path, since="earliest")
    assert (name, lines, lacking(told, str(SECOND))) == ("messages-part.jsonl", COUNT, [])


async def test_a_damaged_batch_is_lacking(tmp_path: Path, cluster: MemoryCluster) -> None:
    log = cluster.logs[SECOND]
    batch = bytearray(build_batch([NewRecord(value=b"bent", timestamp=COUNT)]))
    batch[-1] ^= 1
    log.append(bytes(batch), first=COUNT, last=COUNT)
    name, lines, told = await file_of(tmp_path, since="earliest")
    assert (name, lines) == ("messages-part.jsonl", 2 * COUNT)
    assert lacking(told, f"{SECOND} offset {COUNT}") == []


class Asker:
    """Goes when it is told."""

    def __init__(self, query: dict[str, str]) -> None:
        self.query_params = query
        self.leaves = asyncio.Event()

    async def receive(self) -> dict[str, str]:
        await self.leaves.wait()
        return {"type": "http.disconnect"}


async def test_a_search_ends_with_its_asker_and_so_many_run_at_once(
    tmp_path: Path, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = FastAPI()
    message_files.register(server, context_on(tmp_path, bootstrap="memory:1"))
    route: Any = server.routes[-1]
    running: set[object] = set()

    async def never(*_: object, **__: object) -> None:
        running.add(task := asyncio.current_task())
        try:
            await asyncio.Event().wait()
        finally:
            running.discard(task)

    with monkeypatch.context() as patch:
        patch.setattr("control.messages.message_search._outside", never)
        askers = [Asker({"since": "earliest"}) for _ in range(message_files.FILES_AT_ONCE_MAX)]
        files = [asyncio.create_task(route.endpoint("orders", "csv", it)) for it in askers]
        await until(lambda: len(running) == len(askers))
        refused = await route.endpoint("orders", "csv", asked({"since": "earliest"}))
        assert (refused.status_code, lacking(refused.body.decode(), "5 files")) == (429, [])
        for asker in askers:
            asker.leaves.set()
        answers = await asyncio.wait_for(asyncio.gather(*files), WAIT_S)
    assert [answer.status_code for answer in answers] == [499] * len(askers)
    assert not running
    assert (await route.endpoint("orders", "csv", asked({}))).status_code == 200


async def test_a_body_without_end_holds_up_no_search(
    tmp_path: Path, cluster: MemoryCluster
) -> None:
    async def more() -> dict[str, object]:
        return {"type": "http.request", "body": b"x", "more_body": True}

    server = FastAPI()
    message_files.register(server, context_on(tmp_path, bootstrap="memory:1"))
    route: Any = server.routes[-1]
    asking = SimpleNamespace(query_params={}, receive=more)
    assert (await route.endpoint("orders", "csv", asking)).status_code == 200
