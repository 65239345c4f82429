"""Topics, configs, groups, producing and browsing through the operator core, on ours and Kafka."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from confluent_kafka import Message, Producer
from kio.schema.errors import ErrorCode

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import RefusedError, UnreachableError, UnsendableLinesError
from control.kafka.ports import ConfigResource, ConfigScope, NewTopic, OffsetSpec
from control.kafka.records.producer import OutgoingRecord, ProducerOptions, RecordProducer
from control.kafka.records.reader import RecordReader, Start, StartKind
from control.messages.lines import records_of
from control.messages.partitioners import KeyRule, partition_for
from control.messages.produce_session import ProduceJob, ProduceSession
from control.model.ids import TopicPartition
from control.model.watched_cluster import WatchedCluster
from control.operations.reassignment.cluster_probes import read_fetch_backoffs
from control.operations.reassignment.planning import Planning
from planner.proposal import PartitionChange, Proposal
from tests.contract.operations_rig import unique
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports
from tests.support.settle import eventually

PARTITIONS = 7
LIBRDKAFKA_NAMES = {
    KeyRule.MURMUR2: "murmur2_random",
    KeyRule.CRC32: "consistent_random",
    KeyRule.FNV1A: "fnv1a_random",
}


@pytest.fixture
async def topic(admin: KafkaAdmin) -> str:
    name = unique("topic")
    await admin.create_topic(NewTopic(name=name, partitions=PARTITIONS, replication_factor=2))
    keys = [TopicPartition(name, partition) for partition in range(PARTITIONS)]

    async def has_leaders() -> bool:
        """Each of which has heard that it is one."""
        try:
            await admin.offsets.list_offsets(keys, OffsetSpec.LATEST)
        except RefusedError:
            return False
        return True

    await eventually(has_leaders, True)
    return name


def _at(bootstrap: str, *, is_read_only: bool = False) -> WatchedCluster:
    return WatchedCluster(bootstrap=bootstrap, is_read_only=is_read_only)


async def test_a_question_under_way_when_its_client_is_closed_opens_nothing(bootstrap: str) -> None:
    admin = KafkaAdmin.to(bootstrap)
    asking = asyncio.create_task(admin.describe_cluster())
    await asyncio.sleep(0)
    await admin.close()
    with pytest.raises(UnreachableError, match="closed"):
        await asking
    with pytest.raises(UnreachableError, match="closed"):
        await admin.describe_cluster()


async def test_dynamic_configs_of_a_broker_go_to_that_broker(admin: KafkaAdmin) -> None:
    rate = "leader.replication.throttled.rate"
    resource = ConfigResource(scope=ConfigScope.BROKER, name="102")

    async def shown(broker: str) -> str | None:
        asked = ConfigResource(scope=ConfigScope.BROKER, name=broker)
        found = [c for c in await admin.describe_configs(asked) if c.name == rate]
        return next((c.value for c in found if not c.is_default), None)

    await admin.alter_configs(resource, {rate: "123456"})
    await eventually(lambda: shown("102"), "123456")
    assert await shown("101") is None
    await admin.alter_configs(resource, {rate: None})
    await eventually(lambda: shown("102"), None)


async def test_the_cluster_tells_which_brokers_it_knows(admin: KafkaAdmin) -> None:
    live = {broker.id for broker in (await admin.describe_cluster()).brokers}
    told = await admin.registered_brokers()
    assert told is not None
    assert told >= live


async def test_pre_flight_tells_how_long_brokers_say_that_followers_wait(
    admin: KafkaAdmin, topic: str, request: pytest.FixtureRequest
) -> None:
    """A second on Kafka; bundled brokers begin with less."""
    is_ours = request.node.callspec.params["bootstrap"] == "our_cluster"
    wait_ms, words = (20, "may wait 20.0 ms") if is_ours else (1000, "may wait 1.0 s")
    (told,) = await admin.topics([topic])
    before = told.partitions[0].replicas
    (other,) = {101, 102, 103} - set(before)
    move = PartitionChange(
        topic=topic, partition=0, before=before, after=(before[0], other), size_bytes=0
    )
    assert await read_fetch_backoffs(admin, [move]) == {before[0]: wait_ms, other: wait_ms}
    away = replace(move, after=(before[0], 999))
    assert await read_fetch_backoffs(admin, [away]) == {before[0]: wait_ms}
    preview = await Planning(admin).preview(Proposal(name="one", changes=(move,)))
    (reason,) = [check.reason for check in preview.checks if check.name == "producers"]
    assert words in reason


async def test_of_many_topics_those_are_told_that_exist(
    admin: KafkaAdmin, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.kafka.admin.kafka_admin.TOGETHER_MAX", 1)
    other, unknown = unique("other"), unique("unknown")
    await admin.create_topic(NewTopic(name=other, partitions=1, replication_factor=1))
    told = await admin.topics([topic, unknown, other], leaves_out_unknown=True)
    assert [one.name for one in told] == [other, topic]
    topics = [ConfigResource(scope=ConfigScope.TOPIC, name=n) for n in (topic, unknown, other)]
    broker = ConfigResource(scope=ConfigScope.BROKER, name="102")
    wanted = ("retention.ms", "leader.replication.throttled.rate")

    async def described() -> dict[str, str | None]:
        found = await admin.describe_many_configs([*topics, broker], wanted)
        assert found.keys() == {topics[0], topics[2], broker}
        return {
            r.name: e.value for r, entries in found.items() for e in entries if not e.is_default
        }

    await admin.alter_many_configs({one: {"retention.ms": "1234"} for one in topics[::2]})
    await eventually(described, {topic: "1234", other: "1234"})


async def test_produced_records_are_read_back_with_their_batches(
    admin: KafkaAdmin, topic: str
) -> None:
    settings = admin.wire.settings
    job = ProduceJob(
        topic=topic,
        keys="k-{n}",
        value='{"count": {n}}',
        rule=KeyRule.CRC32,
        headers=(("trace", b"\x00\xff"),),
        count=200,
        options=ProducerOptions(compression="zstd"),
    )
    done = await ProduceSession(settings, job).run_to_end()
    assert (done.acked, done.failed) == (200, 0)
    assert done.latencies is not None
    assert 0 < done.latencies.p50_ms <= done.latencies.p95_ms <= done.latencies.p99_ms
    keys = [b"k-%d" % n for n in range(200)]
    expected = Counter(partition_for(KeyRule.CRC32, key, PARTITIONS) for key in keys)
    assert done.per_partition == dict(expected)
    async with RecordReader(settings) as reader:
        partitions = await reader.partitions(topic)
        whole = await reader.browse(partitions, Start(kind=StartKind.EARLIEST), limit=1000)
    found = whole.records
    assert sorted((r.key, r.value) for r in found) == sorted(
        (key, b'{"count": %d}' % n) for n, key in enumerate(keys)
    )
    assert all(r.crc_is_valid and r.codec_name == "zstd" for r in found)
    assert {r.headers for r in found} == {(("trace", b"\x00\xff"),)}


async def test_lines_of_a_file_are_sent_where_the_topic_takes_all_of_them(
    admin: KafkaAdmin, topic: str
) -> None:
    lines = [b"a\tfirst", b"x" * (2 << 20), b"no key", b"b\t"]
    job = ProduceJob(topic=topic, rule=KeyRule.MURMUR2, records=records_of(lines))
    with pytest.raises(UnsendableLinesError, match="line 2: "):
        await ProduceSession(admin.wire.settings, job).run_to_end()
    job = replace(job, records=records_of([*lines[:1], *lines[2:]]))
    done = await ProduceSession(admin.wire.settings, job).run_to_end()
    assert (done.total, done.acked, done.failed) == (3, 3, 0)
    async with RecordReader(admin.wire.settings) as reader:
        partitions = await reader.partitions(topic)
        found = await reader.browse(partitions, Start(kind=StartKind.EARLIEST), limit=100)
    records = {(record.key, record.value) for record in found.records}
    assert records >= {(b"a", b"first"), (None, b"no key"), (b"b", b"")}


async def test_browse_by_offset_time_and_end(admin: KafkaAdmin, topic: str) -> None:
    settings = admin.wire.settings
    key = TopicPartition(topic, 3)
    async with RecordProducer(settings) as producer:
        for n in range(20):
            record = OutgoingRecord(
                topic=topic,
                partition=3,
                key=b"k",
                value=None if n == 7 else b"v%d" % n,
                timestamp_ms=1000 + n,
            )
            delivery = await producer.send(record)
            assert (delivery.partition, delivery.offset) == (3, n)
    async with RecordReader(settings) as reader:

        async def offsets(kind: StartKind, value: int, limit: int = 100) -> list[int]:
            found = await reader.browse([key], Start(kind=kind, value=value), limit=limit)
            return [record.offset for record in found.records]

        assert await offsets(StartKind.OFFSET, 15) == [15, 16, 17, 18, 19]
        assert await offsets(StartKind.TIMESTAMP, 1018) == [18, 19]
        assert await offsets(StartKind.LAST, 2) == [18, 19]
        assert await offsets(StartKind.LATEST, 0) == []
        assert await offsets(StartKind.EARLIEST, 0, limit=3) == [0, 1, 2]
        at_seven = Start(kind=StartKind.OFFSET, value=7)
        (tombstone,) = (await reader.browse([key], at_seven, limit=1)).records
        assert tombstone.value is None


async def test_following_sees_what_comes(admin: KafkaAdmin, topic: str) -> None:
    settings = admin.wire.settings
    async with RecordReader(settings) as reader:
        partitions = await reader.partitions(topic)
        positions = await reader.positions(partitions, Start(kind=StartKind.LATEST))
        job = ProduceJob(topic=topic, keys="seq", value="later", count=30)
        sending = asyncio.create_task(ProduceSession(settings, job).run_to_end())
        seen = []
        async for record in reader.follow(positions):
            seen.append(record.key)
            if len(seen) == 30:
                break
        await sending
    assert sorted(seen, key=str) == sorted((b"k-%d" % n for n in range(30)), key=str)


@pytest.mark.parametrize("rule", list(KeyRule))
async def test_key_rules_are_those_of_librdkafka(
    bootstrap: str, admin: KafkaAdmin, topic: str, rule: KeyRule
) -> None:
    assert admin is not None
    keys = [b"User123", b"User456", b"User789", b"", b"\x80\xff", *(b"%x" % n for n in range(300))]
    landed: dict[bytes, set[int]] = {key: set() for key in keys}
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": LIBRDKAFKA_NAMES[rule],
            "linger.ms": 5,
            # Without keys librdkafka otherwise stays on one partition for 10 ms at a time.
            "sticky.partitioning.linger.ms": 0,
        }
    )
    for key in keys:
        for _ in range(20 if key == b"" else 1):
            producer.produce(
                topic,
                key=key,
                value=b"",
                on_delivery=_noting(landed[key]),
            )
    await asyncio.to_thread(producer.flush, WAIT_S)
    for key in keys:
        hit = partition_for(rule, key, PARTITIONS)
        if hit is None:
            assert len(landed[key]) > 1, key
        else:
            assert landed[key] == {hit}, key


async def test_the_producers_own_rule_is_murmur2(admin: KafkaAdmin, topic: str) -> None:
    job = ProduceJob(topic=topic, keys="key-{n}", rule=None, count=100)
    done = await ProduceSession(admin.wire.settings, job).run_to_end()
    keys = [b"key-%d" % n for n in range(100)]
    expected = Counter(partition_for(KeyRule.MURMUR2, key, PARTITIONS) for key in keys)
    assert done.per_partition == dict(expected)


async def test_offsets_move_up_when_records_are_deleted(admin: KafkaAdmin, topic: str) -> None:
    job = ProduceJob(topic=topic, partition=0, count=10)
    await ProduceSession(admin.wire.settings, job).run_to_end()
    key = TopicPartition(topic, 0)
    assert await admin.offsets.delete_records({key: 4}) == {key: 4}
    first = await admin.offsets.list_offsets([key], OffsetSpec.EARLIEST)
    assert first[key].offset == 4
    with pytest.raises(RefusedError):
        await admin.offsets.list_offsets([TopicPartition(topic, 99)])


async def test_bytes_of_replicas_add_up(admin: KafkaAdmin, topic: str) -> None:
    job = ProduceJob(topic=topic, partition=1, value="{pad:5000}", count=20)
    await ProduceSession(admin.wire.settings, job).run_to_end()
    key = TopicPartition(topic, 1)

    async def replicas_with_data() -> int:
        log_dirs = await admin.log_dirs(partitions=[key])
        sizes = [r.size_bytes for log_dir in log_dirs for r in log_dir.replicas]
        return sum(size > 100_000 for size in sizes)

    await eventually(replicas_with_data, 2)


async def test_nobody_there_says_what_to_do() -> None:
    (port,) = free_ports(1)
    settings = KafkaSettings(bootstrap=f"127.0.0.1:{port}", attempts_max=2)
    async with KafkaAdmin.to(settings) as admin:
        with pytest.raises(UnreachableError) as error:
            await admin.describe_cluster()
    assert str(port) in error.value.title
    assert "doctor" in error.value.next_step
    with pytest.raises(UnreachableError):
        async with RecordProducer(settings):
            pass


def _noting(partitions: set[int]) -> Callable[[object, Message], None]:
    def note(error: object, message: Message) -> None:
        assert error is None
        partition = message.partition()
        assert partition is not None
        partitions.add(partition)

    return note


async def _factors(admin: KafkaAdmin, topic: str) -> list[int] | None:
    """Replicas of each partition; None for an unknown topic.

    A change is committed before every broker has replayed it, and any may be asked.
    """
    try:
        (metadata,) = await admin.topics([topic])
    except RefusedError as refused:
        if refused.code is not ErrorCode.unknown_topic_or_partition:
            raise
        return None
    return [len(partition.replicas) for partition in metadata.partitions]


async def _configs(admin: KafkaAdmin, topic: str, names: Iterable[str]) -> dict[str, str | None]:
    entries = await admin.describe_configs(ConfigResource(scope=ConfigScope.TOPIC, name=topic))
    return {entry.name: entry.value for entry in entries if entry.name in names}
