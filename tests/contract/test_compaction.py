"""Compaction on running brokers: committed offsets stay, the topic that holds them stays small; the
same for what moves tell of their progress."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from control.move.commands import (
    ReassignCommand,
)
from control.move.decoding import decode_command
from control.move.events import (
    EVENTS_TOPIC,
    Event,
    EventKind,
    MoveProgress,
    Outcome,
)
from control.operations.bus.client import OperationsClient, wait_for
from control.operations.bus.topics import COMMANDS, Bus
from planner.proposal import PartitionChange
from tests.contract.operations_rig import ExecutorProcess
from tests.support.cluster import LocalCluster
from tests.support.patience import WAIT_S
from tests.support.settle import eventually, wait_until

pytestmark = pytest.mark.thorough

OFFSETS: Final = "__consumer_offsets-0"
SEGMENT_BYTES: Final = 20_000
COMMITS: Final = 1_500
PROGRESS: Final = 300
SET: Final = AlterConfigOpType.SET


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    overrides = {
        "offsets.topic.num.partitions": "1",
        "offsets.topic.segment.bytes": str(SEGMENT_BYTES),
        "log.cleaner.backoff.ms": "200",
        "log.segment.delete.delay.ms": "1000",
    }
    with LocalCluster(tmp_path, overrides=overrides) as running:
        yield running


def _consumer(cluster: LocalCluster, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )


def _commit(cluster: LocalCluster, group: str, count: int) -> None:
    """The offsets 1 … `count`, one after the other."""
    consumer = _consumer(cluster, group)
    for offset in range(1, count + 1):
        consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    consumer.close()


def _committed(cluster: LocalCluster, group: str) -> int:
    consumer = _consumer(cluster, group)
    (found,) = consumer.committed([TopicPartition("t", 0)], timeout=WAIT_S)
    consumer.close()
    return int(found.offset)


def _sizes(cluster: LocalCluster) -> dict[int, int]:
    """Bytes of the offsets topic on each broker."""
    return {
        node_id: sum(map(_size, (cluster.log_dir(node_id) / OFFSETS).glob("*.log")))
        for node_id in cluster.ids
    }


def _size(path: Path) -> int:
    """Nothing where the cleaner has taken it away meanwhile."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@pytest.mark.timeout(180)
def test_the_offsets_topic_stays_small_on_every_replica_and_forgets_nothing(
    cluster: LocalCluster,
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(WAIT_S)
    _commit(cluster, "rare", 1)
    _commit(cluster, "busy", COMMITS)
    wait_until(
        lambda: max(_sizes(cluster).values()) < 3 * SEGMENT_BYTES,
        "leader and followers have compacted",
        story=lambda: f"{_sizes(cluster)}\n{cluster.story()}",
    )
    for node_id in cluster.ids:
        checkpoint = cluster.log_dir(node_id) / "cleaner-offset-checkpoint"
        wait_until(lambda at=checkpoint: "__consumer_offsets 0 " in at.read_text(), "noted")  # type: ignore[misc]
    for node_id in cluster.ids:
        cluster.kill(node_id)
    for node_id in cluster.ids:
        cluster.start_node(node_id)
    cluster.wait_ready()
    assert (_committed(cluster, "rare"), _committed(cluster, "busy")) == (1, COMMITS)
    assert "Traceback" not in cluster.story(10_000)


def _told(n: int) -> Event:
    progress = MoveProgress(
        bytes_done=n, bytes_total=PROGRESS, partitions_done=0, partitions_total=1, wave=1, waves=1
    )
    return Event(
        operation_id="mv-1", kind=EventKind.PROGRESS, at_ms=n + 2, data=progress.document()
    )


@pytest.mark.timeout(180)
async def test_of_a_moves_progress_the_bus_keeps_what_is_new_and_forgets_no_other_event(
    cluster: LocalCluster,
) -> None:
    started = Event(
        operation_id="mv-1", kind=EventKind.STARTED, at_ms=1, data={"progress": _told(0).data}
    )
    notes = [Event(operation_id="mv-1", kind=EventKind.NOTE, at_ms=2, message=w) for w in "ab"]
    async with Bus(cluster.bootstrap) as bus:
        await bus.ensure_topics()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        small = ConfigEntry("segment.bytes", str(SEGMENT_BYTES), incremental_operation=SET)
        topic = ConfigResource(ConfigResource.Type.TOPIC, EVENTS_TOPIC, incremental_configs=[small])
        admin.incremental_alter_configs([topic])[topic].result(WAIT_S)
        for event in (started, notes[0], *map(_told, range(PROGRESS)), notes[1]):
            await bus.publish_event(event)

        async def is_compacted() -> bool:
            return len([event async for event in bus.each_event()]) <= PROGRESS / 2

        await eventually(is_compacted, True)
        state = (await bus.read_states())["mv-1"]
    assert state.notes == ("a", "b")
    assert state.started_ms == 1
    assert state.progress is not None
    assert state.progress.bytes_done == PROGRESS - 1


@pytest.mark.timeout(180)
async def test_the_plan_of_a_command_goes_with_its_end(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    changes = (
        PartitionChange(topic="none", partition=0, before=(101,), after=(102,), size_bytes=1),
    )
    command = ReassignCommand(
        operation_id="mv-1", bootstrap=cluster.bootstrap, changes=changes, submitted_ms=1
    )
    async with Bus(cluster.bootstrap) as bus:
        await bus.ensure_topics()
        await bus.publish_command(command)
        with ExecutorProcess(bus=cluster.bootstrap, log=tmp_path / "executor.err") as executor:
            executor.wait_until_said("ready")
            async with OperationsClient(cluster.bootstrap) as client:
                ended = await wait_for(client, "mv-1")
            assert ended.outcome is Outcome.REFUSED, "there is no such topic"

            async def newest() -> object:
                kept = [decode_command(record.value) async for record in bus.read_from(COMMANDS)]
                return kept[-1]

            await eventually(newest, replace(command, changes=()))
