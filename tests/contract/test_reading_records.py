"""Readers on a cluster of ours and on Kafka: odd batches, lost leaders, deleted records, sizes."""

import asyncio
import signal
import struct
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic as ClientTopic

from broker.protocol.records import NewRecord, build_batch, compute_crc
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.errors import RefusedError
from control.kafka.ports import NewTopic
from control.kafka.records.following import Followed, Notice, TopicFollower
from control.kafka.records.producer import OutgoingRecord, RecordProducer
from control.kafka.records.reader import RecordReader, Start, StartKind
from control.kafka.records.record import FetchedRecord, Gap, Transaction
from control.model.ids import TopicPartition
from tests.contract.operations_rig import unique
from tests.contract.test_record_bytes import Route
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.kafka_oracle import KafkaCluster, ready_admin
from tests.support.node_cluster import NodeCluster
from tests.support.patience import WAIT_S, patience_s
from tests.support.settle import eventually, until
from tests.support.wire import wait_everywhere

EARLIEST = Start(kind=StartKind.EARLIEST)


async def topic_of(admin: KafkaAdmin, partitions: int, factor: int, **configs: str) -> str:
    name = unique("read")
    dotted = {key.replace("_", "."): value for key, value in configs.items()}
    topic = NewTopic(name=name, partitions=partitions, replication_factor=factor, configs=dotted)
    await admin.create_topic(topic)
    return name


async def send(bootstrap: str, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
    async with RecordProducer(bootstrap) as producer:
        for value in values:
            await producer.send(OutgoingRecord(topic=topic, partition=partition, value=value))


def spoilt_gzip(count: int) -> bytes:
    """A batch of gzip whose payload is no gzip, with a checksum that is right."""
    batch = bytearray(build_batch([NewRecord(value=b"lost", timestamp=7)] * count, codec=1))
    batch[61:] = b"\xab" * (len(batch) - 61)
    struct.pack_into(">I", batch, 17, compute_crc(bytes(batch)))
    return bytes(batch)


def append_to_segments(cluster: NodeCluster, topic: str, data: bytes) -> None:
    """Into the files of a stopped cluster: the only way past a broker that reads every record."""
    for directory in cluster.base_dir.rglob(f"{topic}-0"):
        with (directory / f"{0:020d}.log").open("ab") as log:
            log.write(data)


@pytest.mark.thorough
async def test_a_batch_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, brokers=1) as cluster:
        await check_spoilt_segment(cluster)


@pytest.mark.soak
@pytest.mark.kafka_oracle
@pytest.mark.usefixtures("kafka_libs")
async def test_a_batch_that_cannot_be_opened_is_named_on_kafka(tmp_path: Path) -> None:
    with KafkaCluster(tmp_path, brokers=1) as cluster:
        await check_spoilt_segment(cluster)


async def check_spoilt_segment(cluster: NodeCluster) -> None:
    async with KafkaAdmin.to(cluster.bootstrap) as admin:
        topic = await topic_of(admin, 1, 1)
        await send(cluster.bootstrap, topic, [b"before"])
    await asyncio.to_thread(cluster.kill, 101, signal.SIGTERM)
    spoilt = bytearray(spoilt_gzip(3))
    struct.pack_into(">q", spoilt, 0, 1)
    struct.pack_into(">i", spoilt, 12, 0)
    append_to_segments(cluster, topic, bytes(spoilt))
    await asyncio.to_thread(cluster.restart, 101)
    await send(cluster.bootstrap, topic, [b"after"])
    await check_spoilt(cluster.bootstrap, topic)
    refused = await Route(cluster.bootstrap, cluster.base_dir / "store", topic).get(2)
    assert refused.status_code == 502
    assert b"gzip data" in bytes(refused.body)


async def check_spoilt(bootstrap: str, topic: str) -> None:
    async with RecordReader(bootstrap) as reader:
        keys = await reader.partitions(topic)
        for start in (EARLIEST, Start(kind=StartKind.LAST, value=10)):
            found = await reader.browse(keys, start, limit=10)
            assert [record.value for record in found.records] == [b"before", b"after"]
            (gap,) = found.skipped.gaps
            assert (gap.first_offset, gap.last_offset, gap.count) == (1, 3, 3)
            assert "gzip data" in gap.reason
    async with TopicFollower(bootstrap, topic) as follower:
        await follower.begin(EARLIEST)
        items = await taken(follower, lambda seen: len(records_in(seen)) == 2)
    assert [type(item) for item in items] == [FetchedRecord, Gap, FetchedRecord]


async def taken(
    follower: TopicFollower,
    enough: Callable[[list[Followed]], bool],
    timeout_s: float = 60.0,
    seen: list[Followed] | None = None,
) -> list[Followed]:
    """What it gives until that is enough, put into ``seen`` as it comes."""
    items = [] if seen is None else seen

    async def take() -> None:
        async for item in follower.items():
            items.append(item)
            if enough(items):
                return

    try:
        await asyncio.wait_for(take(), patience_s(timeout_s))
    except TimeoutError:
        pytest.fail(f"only these came: {items[-20:]}")
    return items


def records_in(items: list[Followed]) -> list[bytes]:
    return [item.value or b"" for item in items if isinstance(item, FetchedRecord)]


def notices_in(items: list[Followed]) -> list[Notice]:
    return [item for item in items if isinstance(item, Notice)]


@pytest.mark.thorough
async def test_following_survives_its_leader(tmp_path: Path) -> None:
    with LocalCluster(tmp_path) as cluster:
        await check_lost_leader(cluster)


@pytest.mark.thorough
async def test_what_cannot_be_read_to_the_end_is_named_and_makes_the_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader is lost while a topic is read to its end, and is away when it is read again."""
    monkeypatch.setattr("control.kafka.records.browsing.STALLED_S", 2.0)
    with LocalCluster(tmp_path / "cluster") as cluster:
        async with KafkaAdmin.to(cluster.bootstrap) as admin:
            topic = await topic_of(admin, 3, 1)
            keys = [TopicPartition(topic, number) for number in range(3)]
            leaders = await admin.offsets.leaders(keys)
        for number in range(3):
            await send(cluster.bootstrap, topic, [b"value %d" % number], number)
        lost = keys[1]
        async with TopicFollower(cluster.bootstrap, topic) as follower:
            await follower.begin(EARLIEST)
            await asyncio.to_thread(cluster.kill, leaders[lost])
            items = [item async for item in follower.backlog(is_all=True)]
        assert sorted(records_in(items)) == [b"value 0", b"value 2"]
        (notice,) = [item for item in items if isinstance(item, Notice)]
        assert notice.text.startswith(f"{topic} partition 1 not read")
        assert notice.is_trouble

        cli = CommandLine(bootstrap=cluster.bootstrap, bus=cluster.bootstrap, folder=tmp_path)
        words = ("tail", topic, "--offset", "earliest", "--exit-at-end", "--format", r"%s\n")
        said = await asyncio.to_thread(cli.run, *words, status=1)
        assert [f"value {number}" in said for number in range(3)] == [True, False, True]
        assert f"{topic} partition 1 not read" in said
        assert f"{topic} was not read" in said
        assert f"`partiscope topics describe {topic}`" in said
        # What was asked for was read whole.
        await asyncio.to_thread(cli.run, *words, "--partition", "0")


@pytest.mark.soak
@pytest.mark.kafka_oracle
@pytest.mark.usefixtures("kafka_libs")
async def test_following_survives_its_leader_on_kafka(tmp_path: Path) -> None:
    with KafkaCluster(tmp_path) as cluster:
        await check_lost_leader(cluster)


async def check_lost_leader(cluster: NodeCluster) -> None:
    async with KafkaAdmin.to(cluster.bootstrap) as admin:
        topic = await topic_of(admin, 1, 2)
        (leader,) = (await admin.offsets.leaders([TopicPartition(topic, 0)])).values()
        await send(cluster.bootstrap, topic, [b"one"])
        seen: list[Followed] = []
        async with TopicFollower(cluster.bootstrap, topic) as follower:
            await follower.begin(EARLIEST)
            following = asyncio.create_task(
                taken(follower, lambda items: b"three" in records_in(items), 120, seen)
            )
            await until(lambda: records_in(seen) == [b"one"], "it follows")
            await asyncio.to_thread(cluster.kill, leader)
            await until(lambda: notices_in(seen), "it waits for a leader")
            for value in (b"two", b"three"):
                await send(cluster.bootstrap, topic, [value])
            items = await following
    assert records_in(items) == [b"one", b"two", b"three"]
    notices = notices_in(items)
    assert "waiting" in notices[0].text
    assert "read again" in notices[-1].text


async def sent_to_new(bootstrap: str, topic: str) -> bool:
    """A producer may meet a broker that does not know the partition yet."""
    try:
        await send(bootstrap, topic, [b"to the new one"], partition=1)
    except RefusedError:
        return False
    return True


async def test_new_partitions_are_followed(
    bootstrap: str, admin: KafkaAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.kafka.records.following.REFRESH_S", 0.2)
    topic = await topic_of(admin, 1, 1)
    async with TopicFollower(bootstrap, topic) as follower:
        await follower.begin(Start(kind=StartKind.LATEST))
        await admin.create_partitions(topic, 2)
        await eventually(lambda: sent_to_new(bootstrap, topic), True)
        items = await taken(follower, lambda seen: bool(records_in(seen)))
    (notice,) = (item.text for item in items if isinstance(item, Notice))
    assert notice.startswith(f"{topic}-1 is new")
    assert records_in(items) == [b"to the new one"]


async def test_records_that_are_deleted_first_are_counted(
    bootstrap: str, admin: KafkaAdmin
) -> None:
    topic = await topic_of(admin, 1, 1)
    key = TopicPartition(topic, 0)
    async with TopicFollower(bootstrap, topic) as follower:
        await follower.begin(Start(kind=StartKind.LATEST))
        await send(bootstrap, topic, [b"%d" % n for n in range(10)])
        await admin.offsets.delete_records({key: 7})
        items = await taken(follower, lambda seen: b"9" in records_in(seen))
    assert records_in(items) == [b"7", b"8", b"9"]
    (gap,) = [item for item in items if isinstance(item, Gap)]
    assert (gap.first_offset, gap.last_offset, gap.count) == (0, 6, 7)
    assert "deleted" in gap.reason


async def test_a_topic_made_anew_is_followed_from_its_start(
    bootstrap: str, admin: KafkaAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.kafka.records.following.REFRESH_S", 0.2)
    topic = await topic_of(admin, 2, 1)
    await send(bootstrap, topic, [b"old"] * 5)
    async with TopicFollower(bootstrap, topic) as follower:
        await follower.begin(EARLIEST)
        await taken(follower, lambda seen: len(records_in(seen)) == 5)
        await admin.delete_topic(topic)
        await asyncio.to_thread(wait_everywhere, bootstrap, topic, lambda it: it is None, "is gone")
        await admin.create_topic(NewTopic(name=topic, partitions=1, replication_factor=1))
        await send(bootstrap, topic, [b"new"])
        items = await taken(follower, lambda seen: b"new" in records_in(seen))
    words = [item.text for item in items if isinstance(item, Notice)]
    assert any("created anew" in each for each in words)


@pytest.mark.thorough
async def test_large_records_are_read_whole_when_asked(bootstrap: str, admin: KafkaAdmin) -> None:
    topic = await topic_of(admin, 2, 1, max_message_bytes=str(16 << 20))
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 16 << 20})
    for partition in (0, 1):
        producer.produce(topic, b"x" * (12 << 20), partition=partition)
        producer.produce(topic, b"small", partition=partition)
    assert producer.flush(WAIT_S) == 0
    async with RecordReader(bootstrap) as reader:
        keys = await reader.partitions(topic)
        found = await reader.browse(keys, Start(kind=StartKind.LAST, value=10), limit=10)
        sizes = sorted(record.value_bytes for record in found.records)
        assert sizes == [5, 5, 12 << 20, 12 << 20]
        assert all(len(record.value or b"") <= 64 << 10 for record in found.records)
    async with TopicFollower(bootstrap, topic) as follower:
        await follower.begin(EARLIEST)
        items = await taken(follower, lambda seen: len(records_in(seen)) == 4)
    assert len(records_in(items)) == 4


@pytest.mark.kafka_oracle
async def test_records_of_transactions_say_what_became_of_them(
    kafka_cluster: KafkaCluster,
) -> None:
    topic = unique("txn")
    admin = ready_admin(**{"bootstrap.servers": kafka_cluster.bootstrap})
    admin.create_topics([ClientTopic(topic, 1, 1)])[topic].result(WAIT_S)
    producers = {}
    for name in ("aborts", "commits", "open"):
        config = {"bootstrap.servers": kafka_cluster.bootstrap, "transactional.id": unique(name)}
        producers[name] = Producer(config)
        producers[name].init_transactions(WAIT_S)
    for name, producer in producers.items():
        producer.begin_transaction()
        producer.produce(topic, name.encode(), partition=0)
        producer.flush(WAIT_S)
        if name == "aborts":
            producer.abort_transaction(WAIT_S)
        elif name == "commits":
            producer.commit_transaction(WAIT_S)
    async with RecordReader(kafka_cluster.bootstrap) as reader:
        keys = await reader.partitions(topic)

        async def read(start: Start, limit: int) -> list[tuple[bytes | None, Transaction | None]]:
            found = await reader.browse(keys, start, limit=limit)
            return [(record.value, record.transaction) for record in found.records]

        # A producer hears of its end before the marker is written.
        for start in (EARLIEST, Start(kind=StartKind.LAST, value=3)):
            wanted = [
                (b"aborts", Transaction.ABORTED),
                (b"commits", Transaction.COMMITTED),
                (b"open", Transaction.OPEN),
            ]
            await eventually(partial(read, start, 10), wanted)
        # A marker is no record: the last one is the one before it.
        producers["open"].commit_transaction(WAIT_S)
        last = Start(kind=StartKind.LAST, value=1)
        await eventually(partial(read, last, 1), [(b"open", Transaction.COMMITTED)])
