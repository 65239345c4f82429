"""A streams group that restores its stores: its restore lag on the newest Kafka."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from control.kafka.admin.group_details import StreamsDetails, read_streams_details
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.admin.streams_topology import Subtopology
from control.kafka.ports import NewTopic, OffsetSpec
from control.model.ids import TopicPartition
from control.views.group_facts import streams_facts
from tests.contract.operations_rig import unique
from tests.contract.test_groups_of_every_type import TOOLS, counting
from tests.support.kafka_oracle import KAFKA_TODAY, KafkaCluster, run_tool
from tests.support.settle import eventually

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.soak, pytest.mark.timeout(240)]

RECORDS: Final = 40_000
SLOW_BYTES_PER_S: Final = 100_000
OFTEN: Final = {
    "group.streams.min.task.offset.interval.ms": "500",
    "group.streams.task.offset.interval.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
}
"""How often members tell how far they have restored; Kafka's default is once a minute."""


@pytest.fixture
def cluster(kafka_today_libs: Path, tmp_path: Path) -> Iterator[KafkaCluster]:
    assert kafka_today_libs.exists()
    folder = tmp_path / "cluster"
    with KafkaCluster(folder, brokers=1, version=KAFKA_TODAY, overrides=OFTEN) as cluster:
        yield cluster


@pytest.fixture
async def admin(cluster: KafkaCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin.to(cluster.bootstrap) as opened:
        yield opened


async def _tool(cluster: KafkaCluster, tool: str, *words: str) -> str:
    done = await asyncio.to_thread(
        run_tool, tool, "--bootstrap-server", cluster.bootstrap, *words, version=KAFKA_TODAY
    )
    assert done.returncode == 0, done
    return done.stdout


async def _quota(cluster: KafkaCluster, change: str) -> None:
    """Of all clients: what they may read."""
    words = ("--alter", "--entity-type", "clients", "--entity-default", *change.split())
    await _tool(cluster, f"{TOOLS}.ConfigCommand", *words)


async def _counts(admin: KafkaAdmin, group: str) -> tuple[StreamsDetails, Subtopology]:
    """All that is told, and the subtopology with the store."""
    found = await read_streams_details(admin, group)
    assert found.topology is not None
    (counts,) = (it for it in found.topology.subtopologies if it.changelogs)
    return found, counts


async def _restore_lag(admin: KafkaAdmin, group: str) -> int | None:
    return (await _counts(admin, group))[1].restore_lag


def _fill(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 20})
    for number in range(RECORDS):
        producer.produce(topic, str(number))
        producer.poll(0)
    assert producer.flush(60) == 0


async def test_a_restarted_application_without_its_state_tells_its_restore_lag(
    cluster: KafkaCluster, admin: KafkaAdmin, tmp_path: Path
) -> None:
    topic, group, state = unique("words"), unique("counter"), tmp_path / "state"
    await admin.create_topic(NewTopic(name=topic, partitions=1, replication_factor=1))
    await asyncio.to_thread(_fill, cluster.bootstrap, topic)

    with counting(cluster, group, topic, state):
        await eventually(lambda: _is_there(admin, group), True)
        await eventually(lambda: _is_read(admin, group), True, timeout_s=90)
        (changelog,) = (await _counts(admin, group))[1].changelogs
        key = TopicPartition(changelog, 0)
        end = (await admin.offsets.list_offsets([key], OffsetSpec.LATEST))[key].offset
        assert end >= RECORDS
        await eventually(lambda: _restore_lag(admin, group), None)
    shutil.rmtree(state)
    await _quota(cluster, f"--add-config consumer_byte_rate={SLOW_BYTES_PER_S}")
    with counting(cluster, group, topic, state):
        seen = await _falling_lags(admin, group, count=4)
        print(f"restore lags of {end:,} records: {seen}")
        assert seen == sorted(seen, reverse=True)
        assert end >= seen[0]
        found, counts = await _counts(admin, group)
        assert (counts.active, counts.standby, counts.warm_up) == (1, 0, 0)
        assert f"{changelog} (restore lag " in streams_facts(found)[-1].text
        described = ("--describe", "--group", group, "--members", "--verbose")
        told = await _tool(cluster, f"{TOOLS}.streams.StreamsGroupCommand", *described)
        print(told)
        await _quota(cluster, "--delete-config consumer_byte_rate")
        await eventually(lambda: _restore_lag(admin, group), None)
        found, _ = await _counts(admin, group)
        assert f"{changelog} (no member tells a restore)" in streams_facts(found)[-1].text


async def _falling_lags(admin: KafkaAdmin, group: str, *, count: int) -> list[int]:
    """The first so many restore lags above 0 that differ."""
    seen: list[int] = []
    deadline_s = time.monotonic() + 90
    while len(seen) < count:
        assert time.monotonic() < deadline_s, f"only {seen}"
        lag = await _restore_lag(admin, group)
        if lag and lag not in seen[-1:]:
            seen.append(lag)
        await asyncio.sleep(0.1)
    return seen


async def _is_there(admin: KafkaAdmin, group: str) -> bool:
    return group in {it.group_id for it in await admin.groups.list_groups()}


async def _is_read(admin: KafkaAdmin, group: str) -> bool:
    lags = (await read_streams_details(admin, group)).lags.values()
    return len(lags) == 2 and not any(it.lag or it.unread for it in lags)
