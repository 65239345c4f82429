"""Records that are sent: what an acknowledgement says, and what a refusal is told as."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from kio.schema.errors import ErrorCode

from control.kafka.errors import RefusedError, UnreachableError
from control.kafka.records.producer import (
    COMPRESSIONS,
    OutgoingRecord,
    ProducerOptions,
    RecordProducer,
    batch_bytes,
)
from tests.support.patience import patience_s
from tests.unit.control.kafka.scripted_cluster import Asked, Closed, ScriptedCluster

PRODUCE: Final = 0
TOPIC: Final = "orders"
SHORT_MS: Final = round(patience_s(300))
"""For what is not answered in time; longer than a slow machine needs to answer the rest."""


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={TOPIC: {0: (1,), 1: (1,)}}) as found:
        found.on(PRODUCE, acknowledged)
        yield found


def acknowledged(asked: Asked, *, code: int = 0) -> dict[str, Any]:
    """Offset 70 + partition."""
    responses = tuple(
        {
            "name": topic.name,
            "partition_responses": tuple(
                {"index": it.index, "error_code": code, "base_offset": 70 + it.index if not code
                 else -1, "log_append_time": -1, "log_start_offset": 0}
                for it in topic.partition_data
            ),
        }
        for topic in asked.message.topic_data
    )  # fmt: skip
    return {"responses": responses}


def record(**fields: Any) -> OutgoingRecord:
    return OutgoingRecord(**{"topic": TOPIC, "key": b"k", "value": b"v", "partition": 1, **fields})


@pytest.mark.parametrize("at_ms", [0, 1, 1_700_000_000_000, 2**62])
async def test_a_delivery_tells_where_and_when(cluster: ScriptedCluster, at_ms: int) -> None:
    """The first millisecond of 1970 is a time as any other; -1 is none."""
    async with RecordProducer(cluster.settings()) as producer:
        landed = await producer.send(record(timestamp_ms=at_ms))
    assert (landed.topic, landed.partition, landed.offset) == (TOPIC, 1, 71)
    assert landed.timestamp_ms == at_ms


async def test_nobody_tells_an_offset_without_acknowledgements(cluster: ScriptedCluster) -> None:
    options = ProducerOptions(acks="0")
    async with RecordProducer(cluster.settings(), options) as producer:
        landed = await producer.send(record())
    assert (landed.partition, landed.offset, landed.timestamp_ms) == (1, -1, -1)


@pytest.mark.parametrize("code", [2, 10, 17, 18, 29, 87])
async def test_a_refusal_is_told_by_its_code(cluster: ScriptedCluster, code: int) -> None:
    cluster.on(PRODUCE, lambda asked: acknowledged(asked, code=code))
    async with RecordProducer(cluster.settings(request_timeout_ms=SHORT_MS)) as producer:
        with pytest.raises((RefusedError, UnreachableError)) as told:
            await producer.send(record())
    if isinstance(told.value, RefusedError):
        assert told.value.code is ErrorCode(code)
    else:
        assert code == 2  # CORRUPT_MESSAGE is tried again until time is up


async def test_what_no_topic_takes_is_refused_before_it_is_sent(cluster: ScriptedCluster) -> None:
    async with RecordProducer(cluster.settings()) as producer:
        with pytest.raises(RefusedError):
            await producer.send(record(partition=9))
        with pytest.raises(RefusedError) as large:
            await producer.send(record(value=b"x" * (2 << 20)))
    assert large.value.code is ErrorCode.message_too_large
    assert cluster.requests(PRODUCE) == []


async def test_a_connection_that_ends_is_told_with_the_address(cluster: ScriptedCluster) -> None:
    cluster.on(PRODUCE, Closed)
    async with RecordProducer(cluster.settings(request_timeout_ms=SHORT_MS)) as producer:
        with pytest.raises(UnreachableError, match=cluster.address(1)):
            await producer.send(record())


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_the_size_of_a_batch_is_that_of_the_bytes_that_are_sent(compression: str) -> None:
    small = batch_bytes(record(), compression)
    headers = batch_bytes(record(headers=(("trace", b"x" * 100), ("none", None))), compression)
    assert 61 < small < 200
    assert headers > small
    assert batch_bytes(record(value=None), "none") == batch_bytes(record(value=b""), "none")
    if compression != "none":
        assert batch_bytes(record(value=b"x" * 50_000), compression) < 50_000
