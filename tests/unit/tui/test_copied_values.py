"""What `c` and `w` take of a message: its value as it was written, all of it."""

from pathlib import Path

import pytest
from textual.app import App

from broker.protocol.records import NewRecord, build_batch
from control.kafka.records.reader import Start, StartKind
from control.kafka.records.record import FetchedRecord
from control.messages.decoding.decoder import Decoder
from control.model.ids import TopicPartition
from tests.support.memory_log import MemoryCluster, MemoryLog
from tui.screens.messages.browse import MessageScreen

VALUES = (
    "\U0001f468\u200d\U0001f469 \u0645\u06cc\u200c\u062e \x1b[2J\r\n",
    '{"name":"Ann \\u00e9", "price":1.10}',
    '{"text": "' + "x" * 158_000 + '"}',
)


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@pytest.fixture
async def records(monkeypatch: pytest.MonkeyPatch) -> tuple[FetchedRecord, ...]:
    key, log = TopicPartition("t", 0), MemoryLog()
    new = [NewRecord(value=value.encode(), timestamp=7) for value in VALUES]
    log.append(build_batch(new), first=0, last=len(new) - 1)
    cluster = MemoryCluster({key: log})
    monkeypatch.setattr("control.messages.whole_record.RecordReader", lambda _: cluster.reader())
    start = Start(kind=StartKind.EARLIEST)
    found = await cluster.reader().browse([key], start, limit=10)
    assert found.records[2].whole is not None, "it was cut while it was listed"
    return found.records


async def test_what_is_taken_is_the_value(
    records: tuple[FetchedRecord, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app: App[None] = App()
    async with app.run_test() as pilot:
        for record, value in zip(records, VALUES, strict=True):
            await app.push_screen(MessageScreen(record, Decoder("t"), "memory:1"))
            await pilot.press("c", "w")
            assert app.clipboard == value
            await pilot.press("escape")
    assert contents(tmp_path) == {f"t-0-{n}.value": it.encode() for n, it in enumerate(VALUES)}
