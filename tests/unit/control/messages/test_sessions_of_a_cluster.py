"""A produce session against brokers that refuse, hold back or do not tell their limits."""

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

import pytest

from control.kafka.connection import apis
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import (
    KafkaPortError,
    NoSuchPartitionError,
    RefusedError,
    UnsendableLinesError,
)
from control.kafka.records.producer import OutgoingRecord
from control.messages.partitioners import KeyRule, partition_for
from control.messages.produce_progress import ERRORS_MAX
from control.messages.produce_session import ProduceJob, ProduceSession, RecordSource
from control.messages.topic_limits import KnownLimits, topic_limits
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking
from tests.unit.control.kafka.scripted_cluster import Asked, ScriptedCluster

PRODUCE: Final = 0
TOPIC: Final = "orders"


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={TOPIC: {0: (1,), 1: (1,), 2: (1,)}}) as found:
        found.on(PRODUCE, Acknowledging())
        found.on(apis.DESCRIBE_CONFIGS, most_bytes("1000"))
        yield found


class Acknowledging:
    """Answers with the next offsets, and with a code for some partitions."""

    def __init__(self, **codes: int) -> None:
        self._codes = {int(name.removeprefix("p")): code for name, code in codes.items()}
        self._ends: dict[int, int] = {}

    def __call__(self, asked: Asked) -> dict[str, Any]:
        responses = tuple(
            {
                "name": topic.name,
                "partition_responses": tuple(map(self._told, topic.partition_data)),
            }
            for topic in asked.message.topic_data
        )
        return {"responses": responses}

    def _told(self, it: Any) -> dict[str, Any]:
        code, first = self._codes.get(it.index, 0), self._ends.get(it.index, 0)
        self._ends[it.index] = first + int.from_bytes(bytes(it.records)[57:61], "big")
        return {"index": it.index, "error_code": code, "base_offset": -1 if code else first,
                "log_append_time": -1, "log_start_offset": 0}  # fmt: skip


def configs(values: dict[str, str | None], code: int = 0) -> dict[str, Any]:
    entries = tuple(
        {"name": name, "value": value, "read_only": False, "config_source": 1,
         "is_sensitive": False, "synonyms": ()}
        for name, value in values.items()
    )  # fmt: skip
    told = {"resource_type": 2, "resource_name": TOPIC, "configs": () if code else entries}
    return {"results": ({"error_code": code, "error_message": None, **told},)}


def most_bytes(value: str | None, code: int = 0) -> dict[str, Any]:
    return configs({"max.message.bytes": value}, code)


def session(cluster: ScriptedCluster, **job: Any) -> ProduceSession:
    return ProduceSession(cluster.settings(), ProduceJob(topic=TOPIC, **job))


async def test_every_record_is_acknowledged_once_where_its_key_belongs(
    cluster: ScriptedCluster,
) -> None:
    done = await session(cluster, keys="seq", rule=KeyRule.CRC32, count=30).run_to_end()
    wanted = [partition_for(KeyRule.CRC32, b"k-%d" % n, 3) for n in range(30)]
    assert done.is_done
    assert (done.sent, done.acked, done.failed, done.unanswered) == (30, 30, 0, 0)
    assert done.per_partition == {n: wanted.count(n) for n in range(3)}
    assert {n: last + 1 - first for n, (first, last) in done.offsets.items()} == done.per_partition
    assert done.latencies is not None
    assert done.latencies.p50_ms <= done.latencies.p99_ms <= done.latencies.max_ms
    assert sum(count for _, count in done.histogram_ms) == 30


def lines(*records: OutgoingRecord, is_file: bool = False) -> RecordSource:
    """Two at a time, as they would come."""

    async def read() -> AsyncIterator[Sequence[OutgoingRecord]]:
        for start in range(0, len(records), 2):
            yield records[start : start + 2]

    return RecordSource(read=read, is_file=is_file)


def record(value: bytes | None = b"v", **fields: Any) -> OutgoingRecord:
    return OutgoingRecord(topic=TOPIC, value=value, **{"key": b"k", **fields})


def source_session(cluster: ScriptedCluster, source: RecordSource, **job: Any) -> ProduceSession:
    return ProduceSession(cluster.settings(), ProduceJob(topic=TOPIC, **job), source=source)


UNSENDABLE: Final = (
    (record(b"x" * 2_000), "max.message.bytes"),
    (record(b"v", headers=(("h", b"x" * 2_000),)), "max.message.bytes"),
    (record(partition=3), "has no partition 3"),
    (record(partition=-1), "has no partition -1"),
    (record(key=None), "without a key"),
    (record(None, key=None), "without a key"),
    (record(timestamp_ms=1 << 62), "message.timestamp.after.max.ms"),
    (record(timestamp_ms=5), "message.timestamp.before.max.ms"),
)


@pytest.mark.parametrize(("bad", "why"), UNSENDABLE)
async def test_a_file_is_judged_whole_before_its_first_record_is_sent(
    cluster: ScriptedCluster, bad: OutgoingRecord, why: str
) -> None:
    limits = {"max.message.bytes": "1000", "cleanup.policy": "compact,delete",
              "message.timestamp.after.max.ms": "3600000",
              "message.timestamp.before.max.ms": "86400000"}  # fmt: skip
    cluster.on(apis.DESCRIBE_CONFIGS, configs({**limits}))
    good = record(timestamp_ms=time.time_ns() // 1_000_000)
    wrong = source_session(cluster, lines(good, good, good, bad, good, bad, is_file=True))
    with pytest.raises(UnsendableLinesError) as refused:
        await wrong.run_to_end()
    assert lacking(str(refused.value), "line 4", why, "line 6", why, "nothing was sent") == []
    assert cluster.requests(PRODUCE) == []
    assert wrong.progress().sent == 0
    right = await source_session(cluster, lines(good, good, good, is_file=True)).run_to_end()
    assert (right.acked, right.total) == (3, 3)


async def test_lines_of_a_form_are_judged_like_those_of_a_file(cluster: ScriptedCluster) -> None:
    records = [(b"k", b"v"), (b"k", b"x" * 2_000), (b"k", None), *[(b"k", b"y" * 2_000)] * 7]
    with pytest.raises(UnsendableLinesError) as refused:
        await session(cluster, records=tuple(records), partition=2).run_to_end()
    assert lacking(str(refused.value), "line 2", "line 4", "5 more lines", "nothing") == []
    assert cluster.requests(PRODUCE) == []


async def test_lines_that_are_written_while_a_file_is_sent_are_left_out(
    cluster: ScriptedCluster,
) -> None:
    there = [record()] * 3

    async def growing() -> AsyncIterator[Sequence[OutgoingRecord]]:
        yield tuple(there)
        there.append(record(b"x" * 2_000))

    source = RecordSource(read=growing, is_file=True)
    done = await source_session(cluster, source, keys="zipf:9").run_to_end()
    assert (done.acked, done.failed) == (3, 0)


async def test_lines_of_a_pipe_fail_for_themselves_alone_and_count_once(
    cluster: ScriptedCluster,
) -> None:
    cluster.on(PRODUCE, Acknowledging(p1=29))
    large = record(b"x" * 2_000)
    pipe = lines(record(partition=0), large, record(partition=1), large, *[large] * 5)
    running = source_session(cluster, pipe)
    done = await running.run_to_end()
    assert (done.total, done.sent, done.acked, done.failed) == (9, 2, 1, 8)
    assert len(done.errors) == ERRORS_MAX
    assert "line 2" in done.errors[0]
    assert sum(done.errors_by_kind.values()) == 8
    assert done.per_partition == {0: 1}
    with pytest.raises(UnsendableLinesError) as refused:
        await source_session(cluster, lines(record(), record(partition=9))).run_to_end()
    assert lacking(str(refused.value), "line 2", "no partition 9", "above it were sent") == []


async def test_no_content_and_no_time_are_sent_as_such(cluster: ScriptedCluster) -> None:
    empty = record(None, key=None, timestamp_ms=-1, partition=0)
    assert (await source_session(cluster, lines(empty)).run_to_end()).acked == 1
    (asked,) = cluster.requests(PRODUCE)
    batch = bytes(asked.message.topic_data[0].partition_data[0].records)
    assert struct.unpack(">qq", batch[27:43]) == (-1, -1)
    assert batch[61:] == bytes((12, 0, 0, 0, 1, 1, 0))  # null key and value are lengths of -1


async def test_one_partition_that_refuses_is_counted_and_the_others_go_on(
    cluster: ScriptedCluster,
) -> None:
    cluster.on(PRODUCE, Acknowledging(p1=29))
    done = await session(cluster, keys="seq", rule=KeyRule.CRC32, count=30).run_to_end()
    lost = [partition_for(KeyRule.CRC32, b"k-%d" % n, 3) for n in range(30)].count(1)
    assert (done.acked, done.failed, done.unanswered) == (30 - lost, lost, 0)
    assert done.errors_by_kind == {"TOPIC_AUTHORIZATION_FAILED": lost}
    assert 1 not in done.per_partition


@pytest.mark.parametrize("partition", [-1, 3, 2**31])
async def test_a_partition_that_there_is_not_is_refused_before_anything_is_sent(
    cluster: ScriptedCluster, partition: int
) -> None:
    with pytest.raises(NoSuchPartitionError, match=str(partition)):
        await session(cluster, partition=partition).run_to_end()
    assert cluster.requests(PRODUCE) == []
    with pytest.raises(RefusedError, match="nowhere"):
        await ProduceSession(cluster.settings(), ProduceJob(topic="nowhere")).run_to_end()


async def test_a_stream_that_ends_with_an_error_leaves_what_was_sent_acknowledged(
    cluster: ScriptedCluster,
) -> None:
    async def broken() -> AsyncIterator[Sequence[OutgoingRecord]]:
        yield [OutgoingRecord(topic=TOPIC, value=b"v", partition=n) for n in range(3)]
        raise OSError("the pipe is gone")

    running = source_session(cluster, RecordSource(read=broken))
    with pytest.raises(OSError, match="the pipe is gone"):
        await running.run_to_end()
    told = running.progress()
    assert (told.sent, told.acked, told.unanswered, told.total) == (3, 3, 0, 3)


async def test_a_session_that_is_stopped_has_an_answer_for_all_that_it_sent(
    cluster: ScriptedCluster,
) -> None:
    running = session(cluster, count=1_000_000, rate=10_000.0)
    async for told in running.run():
        if told.acked:
            running.stop()
    assert told.is_done
    assert 0 < told.acked == told.sent < 1_000_000
    assert told.unanswered == 0
    assert told.is_stopped
    whole = session(cluster, count=2)
    done = await whole.run_to_end()
    whole.stop()
    assert not done.is_stopped


async def test_a_file_that_is_stopped_while_it_is_judged_sends_nothing(
    cluster: ScriptedCluster,
) -> None:
    read: list[int] = []

    async def endless() -> AsyncIterator[Sequence[OutgoingRecord]]:
        while True:
            read.append(1)
            yield [record()] * 10
            if len(read) == 5:
                running.stop()

    running = source_session(cluster, RecordSource(read=endless, is_file=True))
    async with asyncio.timeout(WAIT_S):
        done = await running.run_to_end()
    assert (done.sent, done.is_stopped) == (0, True)
    assert cluster.requests(PRODUCE) == []


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (most_bytes("1000"), 1000),
        (most_bytes(None), None),
        (most_bytes(""), None),
        (most_bytes("many"), None),
        (most_bytes("1", code=29), None),
        ({"results": ()}, None),
    ],
)
async def test_a_limit_that_is_not_told_is_unknown_and_not_zero(
    cluster: ScriptedCluster, answer: dict[str, Any], wanted: int | None
) -> None:
    """A right may lack that sending does not need."""
    cluster.on(apis.DESCRIBE_CONFIGS, answer)
    limits = await topic_limits(cluster.settings(), TOPIC)
    assert (limits.partitions, limits.most_bytes) == (3, wanted)
    limits.check(OutgoingRecord(topic=TOPIC, value=b"v"), "none")


async def test_limits_are_asked_once_while_they_are_fresh(cluster: ScriptedCluster) -> None:
    settings: KafkaSettings = cluster.settings()
    known = KnownLimits(settings)
    assert await known.of(TOPIC) == await known.of(TOPIC)
    assert len(cluster.requests(apis.DESCRIBE_CONFIGS)) == 1
    with pytest.raises(KafkaPortError, match="nowhere"):
        await known.of("nowhere")
