"""The bus while it has no leader, and with more events than one reading holds."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

import pytest
from kio.schema.errors import ErrorCode

from broker.protocol.records import BatchHeader
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError, RefusedError, UnreachableError
from control.kafka.ports import OffsetAt, OffsetSpec
from control.kafka.records.log_bounds import LogExtents
from control.kafka.records.producer import OutgoingRecord
from control.kafka.records.reader import FetchedRecord, PartitionChunk, RecordReader
from control.model.ids import TopicPartition
from control.move.events import Event, EventKind, encode_event
from control.operations.bus import topics as bus_module
from control.operations.bus.topics import Bus, BusUnreachableError
from control.operations.executor.executor import Executor, ExecutorSettings
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    change,
    command_of,
    run,
)
from tests.unit.control.operations.folded import fold

A = change("a")
NOTE: Final = Event(operation_id="mv-1", kind=EventKind.NOTE, at_ms=1, message="well")
AWAY = UnreachableError("not taken", reason="no leader", next_step="wait")


def refused(code: ErrorCode) -> RefusedError:
    return RefusedError(code, what="sending")


class Producer:
    """Its records share a fate."""

    failure: KafkaPortError | None = None
    opened: Final[list["Producer"]] = []

    def __init__(self, *_: object) -> None:
        self.failure, self.sent, self.is_closed = Producer.failure, 0, False
        Producer.opened.append(self)

    async def __aenter__(self) -> "Producer":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.is_closed = True

    async def send(self, _: OutgoingRecord) -> None:
        if self.failure is not None:
            raise self.failure
        self.sent += 1


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Bus:
    monkeypatch.setattr(bus_module, "RecordProducer", Producer)
    monkeypatch.setattr(Producer, "failure", None)
    Producer.opened.clear()
    return Bus("bus:1")


@pytest.mark.parametrize(
    "failure",
    [
        AWAY,
        refused(ErrorCode.leader_not_available),
        refused(ErrorCode.out_of_order_sequence_number),
        refused(ErrorCode.unknown_producer_id),
    ],
)
async def test_after_a_record_that_nobody_took_the_next_has_another_producer(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, failure: KafkaPortError
) -> None:
    monkeypatch.setattr(Producer, "failure", failure)
    with pytest.raises(BusUnreachableError):
        await bus.publish_event(NOTE)
    monkeypatch.setattr(Producer, "failure", None)
    await bus.publish_event(NOTE)
    await bus.publish_event(NOTE)
    assert [(p.is_closed, p.sent) for p in Producer.opened] == [(True, 0), (False, 2)]


async def test_a_record_that_the_bus_does_not_take_is_refused(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Producer, "failure", refused(ErrorCode.message_too_large))
    with pytest.raises(RefusedError):
        await bus.publish_event(NOTE)


async def test_no_move_ends_because_of_the_bus(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is read anew instead: it may have the record."""
    command = command_of(A)
    executor = Executor(ExecutorSettings(bus=KafkaSettings(bootstrap="bus:1")), say=lambda _: None)
    executor.memory.take(command)
    executor.memory.apply(FakeContext(command).events[0])
    monkeypatch.setattr(executor, "_bus", bus)
    monkeypatch.setattr(executor, "_admin_of", lambda _: FakeCluster({A.key: FROM}))
    monkeypatch.setattr(Producer, "failure", refused(ErrorCode.out_of_order_sequence_number))
    nobody: Any = SimpleNamespace()
    with pytest.raises(BusUnreachableError):
        await executor._lane(nobody, command.site)
    assert not executor.memory.state_of(command.operation_id).is_finished


async def test_events_that_were_written_twice_come_to_the_same() -> None:
    cluster = FakeCluster({A.key: FROM})
    context = FakeContext(command_of(A, throttle=1 << 20))
    ended = await run(cluster, context, cluster.arrive)
    twice = fold([event for event in context.events for _ in range(2)])
    assert len(context.events) > 6
    assert {id_: replace(state, notes=ended.notes) for id_, state in twice.items()} == {
        ended.operation_id: ended
    }


async def test_only_of_progress_does_the_newest_replace_the_others(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a compacted topic keeps comes to the same: also where an executor that slept told of
    its progress after the end."""
    keys: list[bytes | None] = []

    async def send(_: Producer, record: OutgoingRecord) -> None:
        keys.append(record.key)

    monkeypatch.setattr(Producer, "send", send)
    context = FakeContext(command_of(A, throttle=1 << 20))
    cluster = FakeCluster({A.key: FROM})
    ended = await run(cluster, context, cluster.arrive)
    (late, *_) = [event for event in context.events if event.kind is EventKind.PROGRESS]
    events = [*context.events, replace(late, data={**late.data, "partitions_done": 0})]
    for event in events:
        await bus.publish_event(event)
    kept = dict(zip(keys, events, strict=True)).values()
    in_order = [event for event in events if any(event is one for one in kept)]
    assert len(in_order) < len(events)
    assert sum(event.kind is EventKind.PROGRESS for event in in_order) == 1
    assert ended.progress is not None
    assert ended.progress.partitions_done == 1
    assert fold(in_order) == fold(events) == {ended.operation_id: ended}


class Log(RecordReader):
    """Two records a fetch, of a bus whose clock was set back; the second fetch fails once."""

    values: tuple[bytes, ...] = ()
    fails = 1

    def __init__(self, *_: object) -> None:
        admin: Any = SimpleNamespace(offsets=self)
        self._admin = admin
        self._extents = LogExtents(admin)

    async def close(self) -> None:
        """Nothing is open."""

    async def list_offsets(
        self,
        keys: Iterable[TopicPartition],
        spec: int = OffsetSpec.LATEST,
        *,
        is_committed: bool = False,
    ) -> dict[TopicPartition, OffsetAt]:
        offset = 0 if spec == OffsetSpec.EARLIEST else len(self.values)
        return {key: OffsetAt(offset=offset, timestamp_ms=-1) for key in keys}

    async def fetch(
        self, positions: Mapping[TopicPartition, int], *, max_wait_ms: int
    ) -> dict[TopicPartition, PartitionChunk]:
        ((key, at),) = positions.items()
        if at and Log.fails:
            Log.fails -= 1
            raise AWAY
        records = tuple(_record(key, n, v) for n, v in enumerate(self.values))[at : at + 2]
        end = len(self.values)
        return {
            key: PartitionChunk(records=records, next_offset=at + len(records), high_watermark=end)
        }


def _record(key: TopicPartition, offset: int, value: bytes) -> FetchedRecord:
    batch: BatchHeader = SimpleNamespace()  # type: ignore[assignment]
    return FetchedRecord(
        topic=key.topic,
        partition=key.partition,
        offset=offset,
        timestamp_ms=100 - offset,
        key=None,
        value=value,
        headers=(),
        batch=batch,
        crc_is_valid=True,
    )


@pytest.fixture
def long_bus(monkeypatch: pytest.MonkeyPatch) -> Bus:
    events = [replace(NOTE, at_ms=n, message=str(n)) for n in range(7)]
    monkeypatch.setattr(Log, "values", (*map(encode_event, events), b"{}"))
    monkeypatch.setattr(Log, "fails", 1)
    monkeypatch.setattr(bus_module, "RecordReader", Log)
    monkeypatch.setattr(bus_module, "_OUTAGE_POLL_S", 0.0)
    monkeypatch.setattr(bus_module, "_READ_MAX", 5, raising=False)
    return Bus("bus:1")


async def test_all_events_are_read_in_the_order_in_which_they_were_written(long_bus: Bus) -> None:
    assert [event.message async for event in long_bus.each_event()] == list("0123456")
    assert (await long_bus.read_states())["mv-1"].notes == tuple("0123456")


async def test_where_commands_end_is_known_also_where_they_cannot_be_read(long_bus: Bus) -> None:
    assert await long_bus.read_commands() == ([], 8)
