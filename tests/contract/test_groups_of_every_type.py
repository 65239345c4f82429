"""Groups of every type on the newest Kafka: what the collector tells of each is what Kafka's own
tools tell."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.ports import NewTopic
from control.kafka.records.group_details import StreamsDetails, TopicLag, read_streams_details
from control.model.ids import TopicPartition
from control.views.group_facts import streams_facts
from tests.contract.operations_rig import unique
from tests.support.collecting import Collected, becomes, collecting
from tests.support.kafka_oracle import QUICK_START, KafkaCluster, run_tool, streams_libs
from tests.support.node_cluster import ROOT
from tests.support.patience import WAIT_S
from tests.support.settle import eventually

pytestmark = pytest.mark.kafka_oracle

TOOLS = "org.apache.kafka.tools"
RECORDS = 30
READ = 10


@pytest.fixture
async def collected(kafka_today: KafkaCluster) -> AsyncIterator[Collected]:
    async with collecting(KafkaSettings(bootstrap=kafka_today.bootstrap)) as (_, found):
        yield found


@pytest.fixture
async def topic(kafka_today: KafkaCluster) -> str:
    """Thirty records in one partition."""
    name = unique("read")
    async with KafkaAdmin.to(kafka_today.bootstrap) as admin:
        await admin.create_topic(NewTopic(name=name, partitions=1, replication_factor=1))
    records = "".join(f"{number}\n" for number in range(RECORDS))
    await _tool(kafka_today, "ConsoleProducer", "--topic", name, stdin=records)
    return name


async def _tool(cluster: KafkaCluster, command: str, *args: str, stdin: str | None = None) -> str:
    words = ("--bootstrap-server", cluster.bootstrap, *args)
    done = await asyncio.to_thread(
        run_tool, f"{TOOLS}.{command}", *words, stdin=stdin, version=cluster.version
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def _row_of(cluster: KafkaCluster, command: str, group: str, topic: str) -> list[str]:
    told = await _tool(cluster, f"consumer.group.{command}", "--describe", "--group", group)
    (row,) = [line.split() for line in told.splitlines() if topic in line.split()]
    return row


def _offset_of(collected: Collected, group: str, key: TopicPartition) -> int | None:
    told = collected.commits.get((group, key))
    return None if told is None else told.committed_offset


def _lags(collected: Collected, group: str) -> dict[TopicPartition, int]:
    return {
        key: (collected.leaders[key].high_watermark or 0) - told.committed_offset
        for (name, key), told in collected.commits.items()
        if name == group
    }


async def test_a_share_group_tells_its_start_and_its_lag(
    kafka_today: KafkaCluster, topic: str, collected: Collected
) -> None:
    group, key = unique("sharers"), TopicPartition(topic, 0)
    named = ("--alter", "--entity-type", "groups", "--entity-name", group)
    earliest = ("--add-config", "share.auto.offset.reset=earliest")
    await _tool(kafka_today, "ConfigCommand", *named, *earliest)
    read = ("--topic", topic, "--group", group, "--max-messages", str(READ))
    await _tool(kafka_today, "consumer.ConsoleShareConsumer", *read, "--timeout-ms", "20000")
    row = await _row_of(kafka_today, "ShareGroupCommand", group, topic)
    start, lag = int(row[3]), int(row[4])
    await becomes(lambda: _offset_of(collected, group, key), start)
    await becomes(lambda: collected.commits[group, key].told_lag, lag)
    found = collected.groups[group]
    assert 0 < lag <= RECORDS - start, "what is delivered beyond the start is no lag"
    assert found.group_type == "share"
    await becomes(lambda: collected.groups[group].state, "Empty")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_group_of_consumers_tells_its_type_and_epoch(
    kafka_today: KafkaCluster, topic: str, collected: Collected, protocol: str
) -> None:
    group, key = unique(protocol), TopicPartition(topic, 0)
    read = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages", str(READ))
    properties = ("--command-property", f"group.protocol={protocol}")
    slow = ("--command-property", f"max.poll.records={READ}")
    await _tool(kafka_today, "consumer.ConsoleConsumer", *read, *properties, *slow)
    row = await _row_of(kafka_today, "ConsumerGroupCommand", group, topic)
    await becomes(lambda: _offset_of(collected, group, key), int(row[3]))
    assert RECORDS - int(row[3]) == int(row[5])
    await becomes(lambda: collected.groups[group].state, "Empty")
    assert collected.groups[group].group_type == protocol


@contextmanager
def counting(
    cluster: KafkaCluster, group: str, topic: str, folder: Path, *, rest_ms: int = 0
) -> Iterator[Path]:
    """An application of Kafka Streams that counts the records of a topic.

    :returns: the file in which it tells how far it has restored.
    """
    app = str(ROOT / "tests" / "support" / "StreamsCounter.java")
    words = (cluster.bootstrap, group, topic, "streams", str(folder), str(rest_ms))
    java = ("java", *QUICK_START, "-cp", f"{streams_libs()}/*", app, *words)
    folder.mkdir(exist_ok=True)
    told = folder / "restored.txt"
    with told.open("w") as file:
        process = subprocess.Popen(java, stdout=file, stderr=subprocess.DEVNULL)
        try:
            yield told
        finally:
            process.terminate()
            process.wait(WAIT_S)


async def _streams_lags(cluster: KafkaCluster, group: str) -> dict[TopicPartition, int]:
    told = await _tool(cluster, "streams.StreamsGroupCommand", "--describe", "--group", group)
    rows = [line.split() for line in told.splitlines() if line.startswith(group)]
    return {TopicPartition(row[1], int(row[2])): int(row[3]) for row in rows}


async def _streams_details(cluster: KafkaCluster, group: str) -> StreamsDetails:
    async with KafkaAdmin.to(cluster.bootstrap) as admin:
        return await read_streams_details(admin, group)


async def _missing(cluster: KafkaCluster, group: str) -> tuple[str, ...]:
    return (await _streams_details(cluster, group)).missing


async def test_a_streams_group_tells_what_its_tasks_read_and_no_changelog(
    kafka_today: KafkaCluster, topic: str, collected: Collected, tmp_path: Path
) -> None:
    """Takes twenty seconds: an application of Streams starts, joins, works and leaves."""
    group, key = unique("counter"), TopicPartition(topic, 0)
    with counting(kafka_today, group, topic, tmp_path):
        await becomes(lambda: _offset_of(collected, group, key), RECORDS)
        await becomes(lambda: collected.groups[group].members, 1)
        found = collected.groups[group]
        assert (found.group_type, found.state) == ("streams", "Stable")
        assert found.group_epoch == found.assignment_epoch
        read = {of for name, of in collected.commits if name == group}
        assert {of.topic.endswith("-repartition") for of in read - {key}} == {True}
        await eventually(lambda: _streams_lags(kafka_today, group), dict.fromkeys(read, 0))
        await becomes(lambda: _lags(collected, group), dict.fromkeys(read, 0))
        assert collected.commits[group, key].member_id is not None
        topology = (await _streams_details(kafka_today, group)).topology
        assert topology is not None
        reads, counts = topology.subtopologies
        assert (reads.sources, reads.active, reads.changelogs) == ((topic,), 1, ())
        assert counts.repartitions == reads.sinks == tuple(of.topic for of in read - {key})
        assert (counts.active, counts.standby, counts.warm_up) == (1, 0, 0)
        assert [of.endswith("-changelog") for of in counts.changelogs] == [True]
        assert counts.restoring == (), "a task that runs has restored its store, and tells nothing"
    await _tool(kafka_today, "ConsoleProducer", "--topic", topic, stdin="1\n2\n3\n")
    await becomes(lambda: collected.leaders[key].high_watermark, RECORDS + 3)
    await becomes(lambda: collected.groups[group].members, 0)
    assert collected.commits[group, key].committed_offset == RECORDS
    assert await _streams_lags(kafka_today, group) == {}, "without members Kafka's tool tells none"
    without = await _streams_details(kafka_today, group)
    assert without.lags[topic] == TopicLag(partitions=1, lag=3, unread=0)
    assert without.missing == ()
    async with KafkaAdmin.to(kafka_today.bootstrap) as admin:
        await admin.delete_topic(topic)
    await eventually(lambda: _missing(kafka_today, group), (topic,))
    (head, *_) = streams_facts(await _streams_details(kafka_today, group))
    assert f"not ready: {topic} missing" in head.text
