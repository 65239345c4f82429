"""Produce, ListOffsets and their kin from frame to frame, over real replicas."""

import asyncio
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from broker.coordinator.producer_ids import ProducerIdAllocator
from broker.handlers.k00_produce import handle_produce
from broker.handlers.k01_fetch import handle_fetch
from broker.handlers.k02_list_offsets import handle_list_offsets
from broker.handlers.k21_delete_records import handle_delete_records
from broker.handlers.k22_init_producer_id import handle_init_producer_id
from broker.handlers.k23_offset_for_leader_epoch import handle_offset_for_leader_epoch
from broker.handlers.k35_describe_log_dirs import handle_describe_log_dirs
from broker.handlers.services import Request
from broker.metadata.image import topic_resource
from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from tests.support.settle import until
from tests.unit.broker.replication.rig import INFO, Rig, records, values


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """Two nodes; node 1 leads t-0."""
    made = Rig(tmp_path, nodes=2)
    made.create(1, 2)
    yield made
    await made.close()


def request(api_key: int, version: int, **fields: Any) -> Request:
    """What a connection makes of a client's frame."""
    message = codec.build_request(api_key, version, **fields)
    frame = memoryview(codec.encode_request(message, correlation_id=3, client_id="c"))[4:]
    return Request(codec.decode_header(frame), frame, INFO)


class Slot:
    """Keeps the response."""

    def __init__(self) -> None:
        self.held_bytes = 0
        self.done: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

    def complete(self, parts: Any) -> None:
        joined = b"".join(p if isinstance(p, bytes | bytearray) else p.read() for p in parts)
        self.done.set_result(joined)

    def hold(self, size_bytes: int) -> None:
        self.held_bytes += size_bytes

    def when_gone(self, callback: Callable[[], None]) -> None:
        """Nobody goes here."""

    def throttle(self, time_ms: int) -> None:
        raise AssertionError(f"there are no quotas: {time_ms} ms")

    def no_response(self) -> None:
        self.done.set_result(None)

    def close_connection(self, reason: str) -> None:
        self.done.set_exception(ConnectionError(reason))


def produce_request(version: int, payload: bytes | None, *, acks: int = -1, topic: Any) -> Request:
    name = {"topic_id": topic} if version >= 13 else {"name": topic}
    return request(
        0,
        version,
        acks=acks,
        timeout=2000,
        topic_data=[{**name, "partition_data": [{"index": 0, "records": payload}]}],
    )


async def produce(
    rig: Rig, payload: bytes | None, *, node: int = 1, version: int = 9, acks: int = -1, **o: Any
) -> Any:
    """The answer for t-0, None when there is none."""
    slot = Slot()
    asked = produce_request(version, payload, acks=acks, topic=o.get("topic", "t"))
    handle_produce(asked, rig.nodes[node].services, slot)
    frame = await slot.done
    if frame is None:
        return None
    _, message = codec.decode_response(0, version, frame[4:])
    return message.responses[0].partition_responses[0]


@pytest.mark.parametrize("version", range(3, 14))
async def test_produce_in_every_version(rig: Rig, version: int) -> None:
    topic = rig.image.topics["t"].topic_id if version >= 13 else "t"
    answer = await produce(rig, records("a", "b"), version=version, topic=topic)
    assert (int(answer.error_code), answer.base_offset) == (0, 0)
    assert values(rig.nodes[2].partition()) == ["a", "b"]


@pytest.mark.parametrize("acks", [0, 1])
async def test_produce_without_waiting(rig: Rig, acks: int) -> None:
    rig.cut = {frozenset({1, 2})}
    answer = await produce(rig, records("a"), acks=acks)
    assert (answer is None) is (acks == 0)
    assert values(rig.nodes[1].partition()) == ["a"]
    rig.cut = set()


async def test_produce_with_append_time(rig: Rig) -> None:
    rig.configure(topic_resource("t"), message_timestamp_type="LogAppendTime")
    answer = await produce(rig, records("a"))
    assert answer.log_append_time is not None


async def test_produce_refusals(rig: Rig) -> None:
    good = records("a")
    damaged = good[:-1] + bytes((good[-1] ^ 1,))
    big = records("x" * 2_000_000)
    for payload, code in ((None, 87), (b"", 87), (damaged, 2), (big, 10), (good + good, 87)):
        assert int((await produce(rig, payload)).error_code) == code
    assert int((await produce(rig, good, acks=3)).error_code) == 21
    assert int((await produce(rig, good, topic="nope")).error_code) == 3
    assert int((await produce(rig, good, topic="__consumer_offsets")).error_code) == 17
    unknown = await produce(rig, good, version=13, topic=UUID(int=4))
    assert int(unknown.error_code) == 100
    assert values(rig.nodes[1].partition()) == []


async def test_a_failure_without_acks_closes_the_connection(rig: Rig) -> None:
    with pytest.raises(ConnectionError, match="acks=0 failed with not_leader_or_follower"):
        await produce(rig, records("a"), node=2, acks=0)


async def test_keyless_records_do_not_fit_a_compacted_topic(rig: Rig) -> None:
    rig.configure(topic_resource("t"), cleanup_policy="compact")
    assert int((await produce(rig, records("a"))).error_code) == 87
    now_ms = 1_700_000_000_000
    keyed = build_batch([NewRecord(key=b"k", value=b"v", timestamp=now_ms, headers=())])
    assert int((await produce(rig, keyed)).error_code) == 0


async def test_the_wrong_broker_names_the_right_one(rig: Rig) -> None:
    slot = Slot()
    asked = produce_request(10, records("a"), topic="t")
    handle_produce(asked, rig.nodes[2].services, slot)
    frame = await slot.done
    assert frame is not None
    _, message = codec.decode_response(0, 10, frame[4:])
    answer = message.responses[0].partition_responses[0]
    assert int(answer.error_code) == 6
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 0)
    assert [(n.node_id, n.host, n.port) for n in message.node_endpoints] == [(1, "rig", 1)]


@pytest.mark.parametrize("version", range(4, 19))
async def test_fetch_in_every_version(rig: Rig, version: int) -> None:
    payload = records("a", "b")
    await rig.nodes[1].replicas.append_and_wait("t", 0, payload)
    topic_id = rig.image.topics["t"].topic_id
    name = {"topic_id": topic_id} if version >= 13 else {"topic": "t"}
    position = {"partition": 0, "fetch_offset": 1, "partition_max_bytes": 10_000}
    slot = Slot()
    asked = request(
        1,
        version,
        max_wait=100,
        min_bytes=1,
        max_bytes=10_000,
        isolation_level=1,
        topics=[{**name, "partitions": [position]}],
        forgotten_topics_data=[],
    )
    handle_fetch(asked, rig.nodes[1].services, slot)
    frame = await slot.done
    assert frame is not None
    _, message = codec.decode_response(1, version, frame[4:])
    answer = message.responses[0].partitions[0]
    assert (int(answer.error_code), answer.high_watermark, answer.last_stable_offset) == (0, 2, 2)
    assert bytes(answer.records)[61:] == payload[61:], "the batch comes whole, as it was"


async def list_offsets(
    rig: Rig, timestamp: int, *, version: int = 11, node: int = 1, isolation_level: int = 0
) -> Any:
    """The answer for t-0."""
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
    asked = request(
        2,
        version,
        replica_id=-1,
        isolation_level=isolation_level,
        timeout=1000,
        topics=[{"name": "t", "partitions": [partition]}],
    )
    answer = await handle_list_offsets(asked, rig.nodes[node].services)
    message = answer.build(2, version)
    return message.topics[0].partitions[0]


async def test_list_offsets(rig: Rig) -> None:
    start_ms = 1_700_000_000_000
    for n in range(3):
        batch = build_batch(
            [NewRecord(key=None, value=b"v", timestamp=start_ms + n * 10, headers=())]
        )
        await rig.nodes[1].replicas.append_and_wait("t", 0, batch)
    await rig.nodes[1].replicas.delete_records("t", 0, 1, timeout_ms=2000)
    expected = {
        -1: (-1, 3),
        -2: (-1, 1),
        -3: (start_ms + 20, 2),
        -4: (-1, 1),
        -5: (-1, -1),
        -6: (-1, -1),
        start_ms + 5: (start_ms + 10, 1),
        start_ms + 11: (start_ms + 20, 2),
        start_ms + 21: (-1, -1),
    }
    for timestamp, found in expected.items():
        answer = await list_offsets(rig, timestamp)
        assert (int(answer.error_code), answer.timestamp, answer.offset) == (0, *found)
    assert int((await list_offsets(rig, -3, version=6)).error_code) == 35
    assert int((await list_offsets(rig, -7)).error_code) == 35
    assert int((await list_offsets(rig, -1, node=2)).error_code) == 6


async def test_latest_is_not_told_before_the_new_leader_knows_it(rig: Rig) -> None:
    await rig.nodes[1].append("a")
    rig.cut = {frozenset({1, 2})}
    rig.change(leader=2)
    assert int((await list_offsets(rig, -1, node=2)).error_code) == 78
    assert int((await list_offsets(rig, -1, node=2, version=4)).error_code) == 5
    assert int((await list_offsets(rig, -2, node=2)).error_code) == 0
    rig.cut = set()


async def test_latest_of_read_committed_is_the_last_stable_offset(rig: Rig) -> None:
    await rig.nodes[1].append("a", "b")
    rig.nodes[1].partition().log.producers.state.note_transaction(7, starts=1, marker=-1)
    found = {level: (await list_offsets(rig, -1, isolation_level=level)).offset for level in (0, 1)}
    assert found == {0: 2, 1: 1}
    assert (await list_offsets(rig, 1, isolation_level=1)).offset == 0


async def test_consumers_are_told_no_time_of_what_is_not_committed(rig: Rig) -> None:
    await rig.nodes[1].append("committed")
    rig.cut = {frozenset({1, 2})}
    await rig.nodes[1].append("not yet", acks=1)
    for timestamp in (-3, int(time.time() * 1000) + 60_000):
        answer = await list_offsets(rig, timestamp)
        assert (int(answer.error_code), answer.timestamp, answer.offset) == (0, -1, -1)
    assert (await list_offsets(rig, -1)).offset == 1


async def test_offset_for_leader_epoch(rig: Rig) -> None:
    await rig.nodes[1].append("a", "b")
    rig.change(leader=1)
    await rig.nodes[1].append("c")

    async def ask(epoch: int, current: int = -1, node: int = 1) -> tuple[int, int, int]:
        asked = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
        answer = await handle_offset_for_leader_epoch(
            request(23, 4, topics=[{"topic": "t", "partitions": [asked]}]),
            rig.nodes[node].services,
        )
        found = answer.build(23, 4).topics[0].partitions[0]
        return int(found.error_code), found.leader_epoch, found.end_offset

    assert await ask(0) == (0, 0, 2)
    assert await ask(1) == (0, 1, 3)
    assert await ask(9) == (0, -1, -1)
    assert await ask(0, current=0) == (74, -1, -1)
    assert await ask(0, current=5) == (75, -1, -1)
    assert await ask(0, node=2) == (6, -1, -1)


async def test_delete_records(rig: Rig) -> None:
    await rig.nodes[1].append("a", "b", "c")

    async def ask(topic: str, offset: int) -> tuple[int, int]:
        partitions = [{"partition_index": 0, "offset": offset}]
        asked = request(21, 2, timeout=2000, topics=[{"name": topic, "partitions": partitions}])
        asked.decode()
        message = await handle_delete_records(asked, rig.nodes[1].services)
        answer = message.topics[0].partitions[0]
        return int(answer.error_code), answer.low_watermark

    assert await ask("t", 2) == (0, 2)
    assert await ask("t", 9) == (1, -1)
    assert await ask("nope", 1) == (3, -1)
    assert await ask("t", -1) == (0, 3)
    assert await ask("__consumer_offsets", -1) == (17, -1)
    log = rig.nodes[1].partition().log
    log.config = replace(log.config, cleanup_policy=frozenset({"compact"}))
    assert await ask("t", -1) == (44, -1)


@pytest.mark.parametrize("version", range(1, 6))
async def test_describe_log_dirs(rig: Rig, version: int) -> None:
    await rig.nodes[1].append("a")
    node = rig.nodes[1]
    answer = await handle_describe_log_dirs(request(35, version, topics=None), node.services)
    (result,) = answer.build(35, version).results
    assert result.log_dir == node.logs.directory
    (partition,) = result.topics[0].partitions
    assert partition.partition_size == node.partition().log.size_bytes > 0
    assert not partition.is_future_key
    if version >= 4:
        assert result.total_bytes > result.usable_bytes > 0
    some = [{"topic": "nope", "partitions": [0]}]
    answer = await handle_describe_log_dirs(request(35, version, topics=some), node.services)
    assert answer.build(35, version).results[0].topics == ()


class Blocks:
    """A controller that hands out blocks of two ids."""

    def __init__(self) -> None:
        self.next = 0
        self.is_reachable = True

    async def submit(self, api_key: int, api_version: int, message: Any) -> Any:
        await asyncio.sleep(0)
        if not self.is_reachable:
            raise ConnectionError("no controller")
        self.next += 2
        return codec.build_response(
            67, 0, error_code=0, producer_id_start=self.next - 2, producer_id_len=2
        )


@pytest.mark.parametrize("version", range(6))
async def test_init_producer_id(rig: Rig, version: int) -> None:
    blocks = Blocks()
    services = rig.nodes[1].services
    services.producer_ids = ProducerIdAllocator(
        node_id=1, broker_epoch=lambda: 5, controller=blocks
    )

    async def ask(**fields: Any) -> tuple[int, int, int]:
        asked = request(22, version, **fields)
        message = await handle_init_producer_id(asked, services)
        return int(message.error_code), message.producer_id, message.producer_epoch

    idempotent: dict[str, Any] = {"transactional_id": None, "transaction_timeout": 60_000}
    answers = await asyncio.gather(*(ask(**idempotent) for _ in range(5)))
    assert sorted(answers) == [(0, n, 0) for n in range(5)]
    assert (await ask(**idempotent))[1] == 5
    blocks.is_reachable = False
    assert (await ask(**idempotent))[0] == 14


MANY = 400


@pytest.mark.parametrize("api_key", [0, 1])
async def test_what_a_request_holds_while_it_waits_is_counted(rig: Rig, api_key: int) -> None:
    """A client that pipelines such requests is then not heard further (`ResponseSlot.hold`)."""
    rig.create(1, 9, topic="many", partitions=MANY)  # replica 9 does not fetch
    await until(lambda: len(list(rig.nodes[1].replicas.partitions())) == MANY + 1)
    if api_key == 1:
        positions = [
            {"partition": n, "fetch_offset": 0, "partition_max_bytes": 1} for n in range(MANY)
        ]
        topics = [{"topic": "many", "partitions": positions}]
        asked = request(1, 11, max_wait=100_000, min_bytes=1, topics=topics)
        handle: Any = handle_fetch
    else:
        written = [{"index": n, "records": records("x")} for n in range(MANY)]
        topics = [{"name": "many", "partition_data": written}]
        asked = request(0, 9, acks=-1, timeout=100_000, topic_data=topics)
        handle = handle_produce
    handle(asked, rig.nodes[1].services, Slot())  # first appends open files and make indexes
    slots = Slot(), Slot(), Slot()
    traced = [_traced(partial(handle, asked, rig.nodes[1].services, slot)) for slot in slots]
    taken_bytes, slot = min(traced), slots[0]  # what others allocate meanwhile counts as well
    assert not slot.done.done()
    assert MANY * 200 < taken_bytes < slot.held_bytes


def _traced(work: Callable[[], object]) -> int:
    """Bytes that it allocates and keeps."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    work()
    taken_bytes = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken_bytes
