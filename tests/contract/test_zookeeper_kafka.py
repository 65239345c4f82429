"""Real Kafka 2.8 with ZooKeeper, spoken to through a broker that is not the controller."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic as WantedTopic
from control.kafka.records.reader import RecordReader, Start, StartKind
from control.model.ids import TopicPartition
from tests.contract.operations_site import Site, site_of
from tests.support.command_line import CommandLine
from tests.support.kafka_oracle import ready_admin
from tests.support.kafka_zookeeper import ZooKeeperCluster
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.soak, pytest.mark.timeout(300)]

MAGIC_AT = 16
"""The byte of a batch, and of an older message set's entry, that names its record format."""


@pytest.fixture(scope="module")
def cluster(
    zookeeper_kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ZooKeeperCluster]:
    assert zookeeper_kafka_libs.exists()
    with ZooKeeperCluster(tmp_path_factory.mktemp("zookeeper")) as started:
        yield started


@pytest.fixture(scope="module")
def site(zookeeper_kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Commands know one broker, which is not the controller."""
    assert zookeeper_kafka_libs.exists()
    folder = tmp_path_factory.mktemp("site")
    with site_of("kafka", folder, kafka=ZooKeeperCluster) as site:
        assert isinstance(site.cluster, ZooKeeperCluster)
        yield replace(site, cli=replace(site.cli, bootstrap=site.cluster.bystander()))


def test_plans_run_and_go_back_through_a_broker_that_is_not_the_controller(site: Site) -> None:
    cli, eyes = site.cli, site.eyes
    topic = site.topic("orders", {0: (101, 102), 1: (101, 102)}, partition_bytes=1 << 20)
    made = cli.json("plan", "--topics", topic)
    assert made["alternatives"], made
    plan = site.plan_by_hand(topic, {0: (103, 102), 1: (102, 103)})
    cli.run("reassign", plan, "--throttle", "none", "--spread", "none", "--yes")
    site.check_settled(topic, {0: (103, 102), 1: (102, 103)})
    (move,) = cli.moves()
    cli.run("moves", "rollback", move["id"], "--yes")
    site.check_settled(topic, {0: (101, 102), 1: (101, 102)})
    assert eyes.reassigning() == ""


async def test_topics_are_made_grown_elected_and_deleted_there_as_well(site: Site) -> None:
    cluster = site.cluster
    assert isinstance(cluster, ZooKeeperCluster)
    async with KafkaAdmin.to(cluster.bystander()) as admin:
        made = WantedTopic(name="made", assignment={0: (101, 102), 1: (102, 101)})
        await admin.create_topic(made)
    async with KafkaAdmin.to(cluster.bystander()) as admin:
        await admin.create_partitions("made", 3)
    cluster.kill(101)
    eyes = site.eyes
    wait_until(lambda: eyes.leaders("made")[0] == 102, "another leads")
    cluster.restart(101)
    wait_until(lambda: eyes.is_in_sync("made"), "all are in sync")
    async with KafkaAdmin.to(cluster.bystander()) as admin:
        assert await admin.elect_leaders([TopicPartition("made", 0)]) == {}
        assert eyes.leaders("made")[0] == 101
    async with KafkaAdmin.to(cluster.bystander()) as admin:
        await admin.delete_topic("made")
        assert "made" not in {topic.name for topic in await admin.topics()}


async def test_requests_follow_the_controller_to_another_broker(site: Site) -> None:
    """The one that was asked until now is killed: the next that is elected is found."""
    cluster = site.cluster
    assert isinstance(cluster, ZooKeeperCluster)
    async with KafkaAdmin.to(cluster.bootstrap) as admin:
        controller = cluster.controller_id()
        alive = next(node for node in cluster.processes if node != controller)
        await admin.create_topic(WantedTopic(name="before", assignment={0: (alive,)}))
        cluster.kill(controller)
        try:
            wait_until(
                lambda: cluster.controller_id() in cluster.processes,
                "another controller",
                timeout_s=60,
            )
            assert await admin.list_reassignments() == ()
            await admin.create_topic(WantedTopic(name="after", partitions=1, replication_factor=1))
            await admin.create_partitions("after", 2)
            # Others may have been led by the one that is killed: those cannot be elected.
            assert await admin.elect_leaders([TopicPartition("after", 0)]) == {}
            await admin.delete_topic("after")
        finally:
            cluster.restart(controller)


@pytest.mark.parametrize(("version", "magic"), [("0.9.0", 0), ("0.10.0", 1), ("2.8", 2)])
def test_a_topic_holds_the_record_format_that_it_is_set_to(
    cluster: ZooKeeperCluster, version: str, magic: int
) -> None:
    name = f"format-{magic}"
    admin = ready_admin(**{"bootstrap.servers": cluster.bootstrap})
    topic = NewTopic(name, 1, 3, config={"message.format.version": version})
    admin.create_topics([topic])[name].result(WAIT_S)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(name, b"value", key=b"key")
    assert producer.flush(WAIT_S) == 0
    (log,) = cluster.log_dir(101).glob(f"{name}-0/*.log")
    wait_until(lambda: log.stat().st_size > MAGIC_AT, "the follower has it")
    assert log.read_bytes()[MAGIC_AT] == magic


def topic_of_format(cluster: ZooKeeperCluster, version: str, codec: str) -> str:
    """Ten records in sets of five, as a broker of that version would have stored them."""
    name = f"read-{version}-{codec}"
    admin = ready_admin(**{"bootstrap.servers": cluster.bootstrap})
    topic = NewTopic(name, 1, 1, config={"message.format.version": version})
    admin.create_topics([topic])[name].result(WAIT_S)
    config = {"bootstrap.servers": cluster.bootstrap, "compression.type": codec, "linger.ms": 500}
    producer = Producer(config)
    for first in (0, 5):
        for number in range(first, first + 5):
            producer.produce(name, b"value %d " % number + b"x" * 200, key=b"%d" % number)
        assert producer.flush(WAIT_S) == 0
    return name


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize(("version", "magic"), [("0.9.0", 0), ("0.10.0", 1)])
async def test_records_of_older_formats_are_browsed_and_tailed(
    cluster: ZooKeeperCluster, tmp_path: Path, version: str, magic: int, codec: str
) -> None:
    began_ms = time.time_ns() // 1_000_000
    topic = topic_of_format(cluster, version, codec)
    async with RecordReader(cluster.bootstrap) as reader:
        keys = await reader.partitions(topic)
        for start, offsets in (
            (Start(kind=StartKind.EARLIEST), range(10)),
            (Start(kind=StartKind.OFFSET, value=7), range(7, 10)),
            (Start(kind=StartKind.LAST, value=7), range(3, 10)),
        ):
            found = await reader.browse(keys, start, limit=20)
            assert [record.offset for record in found.records] == list(offsets)
            assert not found.skipped.gaps
            for record in found.records:
                value = b"value %d " % record.offset + b"x" * 200
                assert (record.key, record.value) == (b"%d" % record.offset, value)
                assert (record.batch.magic, record.codec_name) == (magic, codec)
                assert record.crc_is_valid
                has_time = began_ms <= record.timestamp_ms <= began_ms + 120_000
                assert has_time if magic else record.timestamp_ms == -1

    cli = CommandLine(bootstrap=cluster.bootstrap, bus=cluster.bootstrap, folder=tmp_path)
    ends = ("--offset", "-7", "--exit-at-end")
    documents: list[dict[str, Any]] = [
        json.loads(line) for line in cli.run("tail", topic, *ends, "--json").splitlines()
    ]
    assert [document["offset"] for document in documents] == list(range(3, 10))
    assert {(each["magic"], each["codec"]) for each in documents} == {(magic, codec)}
    assert documents[0]["value"] == "value 3 " + "x" * 200
    lines = cli.run("tail", topic, "--offset", "earliest", "--count", "10").splitlines()
    assert [f"{topic}-0 @ {number}  " in line for number, line in enumerate(lines)] == [True] * 10
    assert all(line.startswith("–  ") is not bool(magic) for line in lines)
    # Kafka has no times to search for in format 0; that is told, not taken for an empty topic.
    words = ("tail", topic, "--since", "1h", "--exit-at-end")
    since = cli.run(*words, status=0 if magic else 1)
    assert since.count("value") == (10 if magic else 0)
    assert ("UNSUPPORTED_FOR_MESSAGE_FORMAT" in since) is not bool(magic)
    assert ("start from an offset" in since) is not bool(magic)
