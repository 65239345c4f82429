"""A produce session against brokers that refuse, hold back or do not tell their limits."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

import pytest

from control.kafka.connection import apis
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError, NoSuchPartitionError, RefusedError
from control.kafka.records.producer import OutgoingRecord
from control.messages.partitioners import KeyRule, partition_for
from control.messages.produce_session import ERRORS_MAX, ProduceJob, ProduceSession
from control.messages.topic_limits import KnownLimits, topic_limits
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


def most_bytes(value: str | None, code: int = 0) -> dict[str, Any]:
    entry = {"name": "max.message.bytes", "value": value, "read_only": False, "config_source": 1,
             "is_sensitive": False, "synonyms": ()}  # fmt: skip
    told = {"resource_type": 2, "resource_name": TOPIC, "configs": () if code else (entry,)}
    return {"results": ({"error_code": code, "error_message": None, **told},)}


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


async def test_records_that_are_too_large_fail_for_themselves_alone(
    cluster: ScriptedCluster,
) -> None:
    records = [(b"k", b"v"), (b"k", b"x" * 2_000), (b"k", None), *[(b"k", b"y" * 2_000)] * 7]
    done = await session(cluster, records=tuple(records), partition=2).run_to_end()
    assert (done.total, done.sent, done.acked, done.failed) == (10, 2, 2, 8)
    assert len(done.errors) == ERRORS_MAX
    assert "line 2" in done.errors[0]
    assert sum(done.errors_by_kind.values()) == 8
    assert done.per_partition == {2: 2}


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

    running = ProduceSession(cluster.settings(), ProduceJob(topic=TOPIC), stream=broken())
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
