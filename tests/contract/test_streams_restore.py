"""A streams group that restores its stores: its restore lag on the newest Kafka, beside what the
application itself and the ends of its changelog tell."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Partition

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.admin.streams_topology import Subtopology
from control.kafka.ports import NewTopic
from control.kafka.records.group_details import StreamsDetails, read_streams_details
from control.views.group_facts import streams_facts
from tests.contract.operations_rig import unique
from tests.contract.test_groups_of_every_type import TOOLS, counting
from tests.support.kafka_oracle import KAFKA_TODAY, KafkaCluster, run_tool
from tests.support.patience import WAIT_S
from tests.support.settle import eventually

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.soak, pytest.mark.timeout(240)]

RECORDS: Final = 40_000
PARTITIONS: Final = 2
REST_MS: Final = 200
"""After each 500 restored records: both partitions take sixteen seconds."""
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


@dataclass(frozen=True, kw_only=True)
class Counter:
    """A group that counts the records of a topic."""

    admin: KafkaAdmin
    group: str
    topic: str

    async def found(self) -> tuple[StreamsDetails, Subtopology]:
        """All that is told, and the subtopology with the store."""
        details = await read_streams_details(self.admin, self.group)
        assert details.topology is not None
        (counts,) = (it for it in details.topology.subtopologies if it.changelogs)
        return details, counts

    async def restore_lag(self) -> int | None:
        details, counts = await self.found()
        return details.restore_lags[counts.id]

    async def is_there(self) -> bool:
        return self.group in {it.group_id for it in await self.admin.groups.list_groups()}

    async def has_read_all(self) -> bool:
        lags = (await read_streams_details(self.admin, self.group)).lags.values()
        return len(lags) == 2 and not any(it.lag or it.unread for it in lags)

    async def words(self) -> str:
        return streams_facts((await self.found())[0])[-1].text


@pytest.fixture
async def counter(cluster: KafkaCluster, admin: KafkaAdmin) -> Counter:
    """Its topic is filled; nobody has read it."""
    counter = Counter(admin=admin, group=unique("counter"), topic=unique("words"))
    new = NewTopic(name=counter.topic, partitions=PARTITIONS, replication_factor=1)
    await admin.create_topic(new)
    await asyncio.to_thread(_fill, cluster.bootstrap, counter.topic)
    return counter


def _fill(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 20})
    for number in range(RECORDS):
        producer.produce(topic, str(number))
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0


def _ends(bootstrap: str, topic: str) -> dict[int, int]:
    """Log end offsets, as a client of its own reads them."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends", "log_level": 0})
    try:
        keys = [Partition(topic, it) for it in range(PARTITIONS)]
        return {key.partition: consumer.get_watermark_offsets(key)[1] for key in keys}
    finally:
        consumer.close()


def _restored(told: Path) -> dict[int, set[int]]:
    """By partition of the changelog: every offset up to which the application had restored it."""
    found: dict[int, set[int]] = {it: {0} for it in range(PARTITIONS)}
    lines = told.read_text().split("\n")[:-1]
    for _, _, partition, offset in (it.split() for it in lines if it.startswith("restored ")):
        found[int(partition)].add(int(offset))
    return found


async def _first_run(cluster: KafkaCluster, counter: Counter) -> dict[int, int]:
    """Until all is counted; the ends of the changelog."""
    await eventually(counter.is_there, True)
    await eventually(counter.has_read_all, True, timeout_s=90)
    (changelog,) = (await counter.found())[1].changelogs
    ends = await asyncio.to_thread(_ends, cluster.bootstrap, changelog)
    assert sum(ends.values()) == RECORDS, "a record of the changelog for each that was counted"
    return ends


async def test_a_restarted_application_without_its_state_tells_its_restore_lag(
    cluster: KafkaCluster, counter: Counter, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    with counting(cluster, counter.group, counter.topic, state):
        ends = await _first_run(cluster, counter)
        await eventually(counter.restore_lag, None)
    shutil.rmtree(state)
    with counting(cluster, counter.group, counter.topic, state, rest_ms=REST_MS) as told:
        seen: list[int] = []
        deadline_s = time.monotonic() + WAIT_S
        while not seen or seen[-1] > RECORDS // 10:
            assert time.monotonic() < deadline_s, f"only {seen}"
            await asyncio.sleep(0.1)
            details, counts = await counter.found()
            if not seen and len(counts.restoring) < PARTITIONS:
                continue
            restored = _restored(told)
            assert all(it.offset in restored[it.partition] for it in counts.restoring)
            lag = details.restore_lags[counts.id]
            assert lag == sum(ends[it.partition] - it.offset for it in counts.restoring)
            assert f"(restore lag {lag:,}, told by " in streams_facts(details)[-1].text
            seen.append(lag)
        print(f"restore lags of {RECORDS:,} records: {seen}")
        assert seen == sorted(seen, reverse=True)
        assert seen[0] > RECORDS // 2
        assert len(set(seen)) >= 4
        await eventually(counter.restore_lag, None)
        assert "-changelog (no task tells" in await counter.words()
        assert await counter.has_read_all()


async def test_standby_tasks_of_another_member_tell_theirs_until_it_is_0(
    cluster: KafkaCluster, counter: Counter, tmp_path: Path
) -> None:
    """Of a standby task Kafka tells the offset of the last record as the end: one less than it is.
    A standby task that has had nothing to load tells no end."""
    named = ("--alter", "--entity-type", "groups", "--entity-name", counter.group)
    words = ("--bootstrap-server", cluster.bootstrap, *named)
    changed = ("--add-config", "streams.num.standby.replicas=1")
    done = await asyncio.to_thread(
        run_tool, f"{TOOLS}.ConfigCommand", *words, *changed, version=KAFKA_TODAY
    )
    assert done.returncode == 0, done
    group, topic = counter.group, counter.topic
    with counting(cluster, group, topic, tmp_path / "first"):
        ends = await _first_run(cluster, counter)
        with counting(cluster, group, topic, tmp_path / "second", rest_ms=REST_MS) as told:
            seen: list[int] = []
            deadline_s = time.monotonic() + WAIT_S
            while True:
                assert time.monotonic() < deadline_s, f"only {seen}"
                await asyncio.sleep(0.1)
                details, counts = await counter.found()
                if (lag := details.restore_lags[counts.id]) is None:
                    continue
                restored = _restored(told)
                offsets = [(it.partition, it.offset) for it in counts.restoring]
                assert all(it in restored[of] or it == ends[of] for of, it in offsets)
                behind = sum(ends[of] - it for of, it in offsets)
                assert behind - counts.standby <= lag <= behind
                seen.append(lag)
                if lag == 0 < max(seen) and len(counts.restoring) == PARTITIONS:
                    break
            print(f"restore lags of {RECORDS:,} records: {seen}")
            assert "(restore lag 0, told by 2" in await counter.words()
            assert {it.end for it in counts.restoring} & {None}, "the first member had loaded all"
            assert (counts.active, counts.standby, counts.warm_up) == (2, 2, 0)
