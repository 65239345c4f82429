"""What a topic does not take is told before it is sent, to the byte, on ours and on Kafka."""

import asyncio

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import NoSuchPartitionError, RefusedError
from control.kafka.ports import NewTopic
from control.kafka.records.producer import (
    OutgoingRecord,
    ProducerOptions,
    RecordProducer,
    batch_bytes,
)
from control.kafka.records.reader import RecordReader, Start, StartKind
from control.messages.produce_progress import ProduceProgress
from control.messages.produce_session import ProduceJob, ProduceSession
from tests.contract.operations_rig import unique, variants
from tests.support.patience import WAIT_S
from tests.support.settle import until

MOST_BYTES = 5_000


@pytest.fixture
async def topic(admin: KafkaAdmin) -> str:
    name = unique("limited")
    configs = {"max.message.bytes": str(MOST_BYTES)}
    made = NewTopic(name=name, partitions=8, replication_factor=1, configs=configs)
    await admin.create_topic(made)
    return name


async def send(bootstrap: str, topic: str, value: str, **more: object) -> ProduceProgress:
    job = ProduceJob(topic=topic, value=value, **{"partition": 0, **more})  # type: ignore[arg-type]
    return await ProduceSession(bootstrap, job).run_to_end()


async def count(bootstrap: str, topic: str) -> int:
    async with RecordReader(bootstrap) as reader:
        keys = await reader.partitions(topic)
        found = await reader.browse(keys, Start(kind=StartKind.EARLIEST), limit=1_000)
    return len(found.records)


async def test_a_record_at_the_limit_is_taken_and_one_byte_more_is_not_sent(
    bootstrap: str, topic: str
) -> None:
    overhead = batch_bytes(OutgoingRecord(topic=topic, value=b"x" * 4_000)) - 4_000
    fits = "x" * (MOST_BYTES - overhead)
    assert (await send(bootstrap, topic, fits)).acked == 1
    told = await send(bootstrap, topic, fits + "x")
    assert (told.sent, told.failed) == (0, 1)
    (error,) = told.errors
    for words in (f"{MOST_BYTES + 1:,} bytes", f"{topic} takes at most {MOST_BYTES:,} "):
        assert words in error
    many = await send(bootstrap, topic, fits + "x{n}", count=7)
    assert many.errors_by_kind == {"larger than max.message.bytes": 7}
    assert await count(bootstrap, topic) == 1
    # The broker judges as we do.
    async with RecordProducer(bootstrap, ProducerOptions()) as producer:
        with pytest.raises(Exception, match="MESSAGE_TOO_LARGE"):
            await producer.send(
                OutgoingRecord(topic=topic, value=fits.encode() + b"x", partition=0)
            )


@pytest.mark.parametrize("compression", variants(["zstd", "gzip", "lz4", "snappy"]))
async def test_what_fits_once_compressed_is_sent(
    bootstrap: str, topic: str, compression: str
) -> None:
    options = ProducerOptions(compression=compression)
    assert (await send(bootstrap, topic, "x" * 60_000, options=options)).acked == 1


async def test_small_records_are_not_put_together_beyond_the_limit(
    bootstrap: str, topic: str
) -> None:
    done = await send(bootstrap, topic, "y" * 400, count=300)
    assert (done.acked, done.failed) == (300, 0)


async def test_a_header_counts(bootstrap: str, topic: str) -> None:
    told = await send(bootstrap, topic, "x", headers=(("h", b"z" * MOST_BYTES),))
    assert (told.sent, told.failed) == (0, 1)


@pytest.mark.parametrize("partition", variants([8, 77, -1]))
async def test_a_partition_that_is_not_there_is_told(
    bootstrap: str, topic: str, partition: int
) -> None:
    with pytest.raises(NoSuchPartitionError, match=rf"has no partition {partition} \(0–7\)"):
        await send(bootstrap, topic, "x", partition=partition)
    assert await count(bootstrap, topic) == 0


async def test_no_time_and_no_content_are_taken_as_kafka_takes_them(
    bootstrap: str, topic: str
) -> None:
    async with RecordProducer(bootstrap) as producer:
        empty = OutgoingRecord(topic=topic, key=None, value=None, partition=3, timestamp_ms=-1)
        landed = await producer.send(empty)
        await producer.send(OutgoingRecord(topic=topic, value=b"v", partition=3, timestamp_ms=5))
    assert landed.offset == 0
    async with RecordReader(bootstrap) as reader:
        keys = await reader.partitions(topic)
        found = await reader.browse(keys, Start(kind=StartKind.EARLIEST), limit=10)
    told = [(each.offset, each.key, each.value, each.timestamp_ms) for each in found.records]
    assert sorted(told) == [(0, None, None, -1), (1, None, b"v", 5)]


@pytest.mark.parametrize("is_idempotent", variants([False, True]))
async def test_a_send_does_not_bring_back_a_topic_that_is_deleted_meanwhile(
    bootstrap: str, topic: str, admin: KafkaAdmin, is_idempotent: bool
) -> None:
    settings = KafkaSettings(bootstrap=bootstrap, request_timeout_ms=3_000)
    options = ProducerOptions(is_idempotent=is_idempotent)
    job = ProduceJob(topic=topic, value="{n}", count=10_000_000, rate=100.0, options=options)
    session = ProduceSession(settings, job)
    running = asyncio.create_task(session.run_to_end())
    await until(lambda: session.progress().acked, "it sends")
    await admin.delete_topic(topic)
    with pytest.raises(RefusedError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        await asyncio.wait_for(running, WAIT_S)
    assert topic not in {found.name for found in await admin.topics()}
    assert session.progress().unanswered == 0


async def test_a_compacted_topic_says_that_it_wants_a_key(
    bootstrap: str, admin: KafkaAdmin
) -> None:
    made = NewTopic(name=unique("wants-a-key"), partitions=1, replication_factor=1,
                    configs={"cleanup.policy": "compact"})  # fmt: skip
    await admin.create_topic(made)
    async with RecordProducer(bootstrap) as producer:
        with pytest.raises(RefusedError, match="INVALID_RECORD") as refused:
            await producer.send(OutgoingRecord(topic=made.name, value=b"v"))
        assert "give the record a key" in refused.value.next_step
        await producer.send(OutgoingRecord(topic=made.name, key=b"k", value=b"v"))
