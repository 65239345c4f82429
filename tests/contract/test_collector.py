"""The collector on real Kafka: every figure is what Kafka's own tools say at the same moment."""

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    Producer,
    TopicPartition,
)
from confluent_kafka.cimpl import NewTopic

from control.kafka.connection.settings import KafkaSettings
from control.model import ids
from tests.support.collecting import Collected, becomes, collecting
from tests.support.commits import commit
from tests.support.installation import Installation
from tests.support.kafka_oracle import KAFKA_VERSION, KafkaCluster, ready_admin, run_tool
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.timeout(240)]

TOPICS = {"even": (6, 3), "uneven": (5, 2), "single": (2, 1), "idle": (3, 3)}
RECORDS = 40
APART_MS = 10_000
HOUR_MS = 3_600_000
GROUPS = ("done", "behind", "at-zero", "one-stuck", "below-start")


@dataclass(frozen=True)
class Scene:
    """A cluster that stands still, with a member in one group."""

    cluster: KafkaCluster
    member: Consumer
    first_ms: int
    """When the first record of each partition says that it was written."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("kafka_cluster", id=KAFKA_VERSION),
        pytest.param("3.9.0", marks=pytest.mark.soak),
    ],
)
def watched(
    request: pytest.FixtureRequest, kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    """The folder's cluster, and an older one."""
    assert kafka_libs.exists()
    if request.param == "kafka_cluster":
        yield request.getfixturevalue(request.param)
        return
    with KafkaCluster(tmp_path_factory.mktemp("old"), version=request.param) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def scene(watched: KafkaCluster) -> Iterator[Scene]:
    """Topics with records, and groups: done, behind, at zero, one stuck partition, with a member,
    committed below the log start, never committed."""
    admin = ready_admin(**{"bootstrap.servers": watched.bootstrap})
    created = admin.create_topics([NewTopic(n, p, r) for n, (p, r) in TOPICS.items()])
    for future in created.values():
        future.result(WAIT_S)
    producer = Producer({"bootstrap.servers": watched.bootstrap})
    first_ms = time.time_ns() // 1_000_000 - HOUR_MS
    for name, (partitions, _) in TOPICS.items():
        for index in range(0 if name == "idle" else RECORDS * partitions):
            at_ms = first_ms + index // partitions * APART_MS
            value = f"value {index}" * (index % 7)
            producer.produce(name, value, partition=index % partitions, timestamp=at_ms)
    assert producer.flush(WAIT_S) == 0
    commit(admin, "done", {("even", p): RECORDS for p in range(6)})
    commit(admin, "behind", {("even", p): 7 * p for p in range(6)})
    commit(admin, "at-zero", {("uneven", p): 0 for p in range(5)})
    commit(admin, "one-stuck", {("even", p): 3 if p == 4 else RECORDS for p in range(6)})
    commit(admin, "below-start", {("single", 0): 2, ("single", 1): 30})
    deleted = admin.delete_records([TopicPartition("single", 0, 11)])
    for future in deleted.values():
        future.result(WAIT_S)
    member = Consumer(
        {
            "bootstrap.servers": watched.bootstrap,
            "group.id": "with-member",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    member.subscribe(["uneven"])
    read = 0
    while read < 50:
        read += len(member.consume(50 - read, timeout=1.0))
    member.commit(asynchronous=False)
    yield Scene(watched, member, first_ms)
    member.close()
    for future in admin.delete_topics(list(TOPICS)).values():
        future.result(WAIT_S)


def _tool(name: str, scene: Scene, *args: str) -> str:
    flags = ("--bootstrap-server", scene.cluster.bootstrap, *args)
    done = run_tool(name, *flags, version=scene.cluster.version)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _groups_tool(scene: Scene) -> dict[tuple[str, ids.TopicPartition], tuple[int, int, int]]:
    """kafka-consumer-groups: (current offset, end, lag) by group and partition; -1 for ``-``."""
    name = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    found = {}
    for line in _tool(name, scene, "--describe", "--all-groups").splitlines():
        words = line.split()
        if len(words) >= 6 and words[2].isdigit() and words[4].isdigit() and words[1] in TOPICS:
            key = ids.TopicPartition(words[1], int(words[2]))
            committed, end, lag = (-1 if word == "-" else int(word) for word in words[3:6])
            found[words[0], key] = (committed, end, lag)
    return found


def _topics_tool(scene: Scene) -> dict[ids.TopicPartition, tuple[int, list[int], list[int]]]:
    """kafka-topics: (leader, replicas, ISR)."""
    told = _tool("org.apache.kafka.tools.TopicCommand", scene, "--describe")
    pattern = r"Topic: (\S+)\tPartition: (\d+)\tLeader: (\d+)\tReplicas: ([\d,]+)\tIsr: ([\d,]+)"
    return {
        ids.TopicPartition(topic, int(number)): (int(leader), _ids(replicas), _ids(isr))
        for topic, number, leader, replicas, isr in re.findall(pattern, told)
        if topic in TOPICS
    }


def _ids(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def _sizes_tool(scene: Scene) -> dict[tuple[ids.TopicPartition, int], int]:
    """kafka-log-dirs: bytes of every replica."""
    told = _tool("org.apache.kafka.tools.LogDirsCommand", scene, "--describe")
    document = json.loads(next(line for line in told.splitlines() if line.startswith("{")))
    found = {}
    for broker in document["brokers"]:
        for held in (each for log_dir in broker["logDirs"] for each in log_dir["partitions"]):
            topic, _, number = held["partition"].rpartition("-")
            if topic in TOPICS:
                found[ids.TopicPartition(topic, int(number)), broker["broker"]] = held["size"]
    return found


def _is_aged_right(collected: Collected, number: int, first_ms: int) -> bool:
    """Whether two close points tell when the record was written at which "behind" stands."""
    offset = 7 * number
    told = collected.leaders[ids.TopicPartition("even", number)].log_points or ()
    points = list(zip(told[::2], told[1::2], strict=True))
    written_ms = first_ms + offset * APART_MS
    return any(
        low[0] <= offset < high[0]
        and low[1] <= written_ms <= high[1] + APART_MS
        and (low[0] == offset or high[1] - low[1] <= HOUR_MS // 100)
        for low, high in itertools.pairwise(points)
    )


async def test_every_figure_is_what_kafkas_tools_say(scene: Scene) -> None:
    groups, topics, sizes = await asyncio.to_thread(
        lambda: (_groups_tool(scene), _topics_tool(scene), _sizes_tool(scene))
    )
    assert {name for name, _ in groups} >= {*GROUPS, "with-member"}
    async with collecting(KafkaSettings(bootstrap=scene.cluster.bootstrap)) as (_, collected):

        def lags() -> dict[tuple[str, ids.TopicPartition], tuple[int, int, int]]:
            ends = {key: row.high_watermark or 0 for key, row in collected.leaders.items()}
            return {
                (group, key): (
                    committed,
                    ends[key],
                    ends[key] - committed if committed >= 0 else -1,
                )
                for (group, key), row in collected.commits.items()
                for committed in (row.committed_offset,)
                if key.topic in TOPICS and key in ends
            }

        await becomes(lags, groups)
        await becomes(
            lambda: {
                key: (row.leader, list(row.replicas), list(row.isr))
                for key, row in collected.leaders.items()
                if key.topic in TOPICS
            },
            topics,
        )
        await becomes(
            lambda: {
                name: row.size_bytes
                for name, row in collected.replicas.items()
                if name[0].topic in TOPICS
            },
            sizes,
        )
        starts = {key: row.log_start_offset for key, row in collected.leaders.items()}
        assert starts[ids.TopicPartition("single", 0)] == 11
        assert starts[ids.TopicPartition("single", 1)] == 0
        await becomes(lambda: {row.min_isr for row in collected.leaders.values()}, {1})
        week_ms = 7 * 86_400_000
        kept = {row.retention_ms for key, row in collected.leaders.items() if key.topic in TOPICS}
        assert kept == {week_ms}
        # "behind" lags by an hour: its age is right within a hundredth, by Describe alone.
        await becomes(
            lambda: [n for n in range(6) if not _is_aged_right(collected, n, scene.first_ms)], []
        )
        assert {row.segments for row in collected.replicas.values()} == {None}, "n/a, not guessed"
        owned = [row for name, row in collected.commits.items() if name[0] == "with-member"]
        assert all(row.member_id for row in owned)
        assert collected.groups["with-member"].members == 1
        assert collected.groups["with-member"].state == "Stable"
        assert collected.groups["done"].state == "Empty"
        assert sum(row.is_controller for row in collected.brokers.values()) == 1
        await becomes(lambda: collected.disks, scene.cluster.ids)


def test_up_watches_it_and_leaves_nothing_behind(scene: Scene, tmp_path: Path) -> None:
    """``partiscope up --bootstrap``: the bus is ours, the figures are the watched cluster's."""
    before = _tool("org.apache.kafka.tools.TopicCommand", scene, "--list")
    flags = ("--bootstrap", scene.cluster.bootstrap)
    with Installation(tmp_path / "up", flags=flags) as installation:
        installation.wait_ready()
        groups = _groups_tool(scene)
        ours = {group for group, _ in groups}
        status: dict[str, Any] = {}

        def shows_all() -> bool:
            status.update(installation.status()[0])
            lags = {row["group"]: row["lag"] for row in status["groups"]}
            wanted = dict.fromkeys(ours, 0)
            for (group, _), (_, _, lag) in groups.items():
                wanted[group] += max(lag, 0)  # without a commit there is no lag
            return {name: lags.get(name) for name in ours} == wanted

        wait_until(shows_all, "lags as kafka-consumer-groups tells", story=lambda: str(status))
        assert [row["broker"] for row in status["brokers"]] == list(scene.cluster.ids)
        assert status["collector"]["missing_rights"] == []
        assert {row["broker"] for row in status["collector"]["brokers"]} == set(scene.cluster.ids)
        topics = subprocess.run(
            [sys.executable, "-m", "partiscope", "topics", "list", "--json"],
            env={**os.environ, "PARTISCOPE_DATA": str(installation.data)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert {row["topic"] for row in json.loads(topics.stdout)["topics"]} >= TOPICS.keys()
    assert _tool("org.apache.kafka.tools.TopicCommand", scene, "--list") == before


async def test_a_right_to_everything_has_no_gaps(scene: Scene) -> None:
    async with collecting(KafkaSettings(bootstrap=scene.cluster.bootstrap)) as (collector, _):
        await becomes(lambda: collector.report().denied_operations, {})
        report = collector.report()
        assert report.missing_rights == ()
        assert not report.is_partial
        assert len(report.brokers) == 3
        assert all(broker.requests_per_s > 0 for broker in report.brokers)


async def test_lag_is_never_negative_while_records_and_commits_race(scene: Scene) -> None:
    """A consumer that commits the very end at once, while the collector reads as fast as it may."""
    bootstrap = scene.cluster.bootstrap
    new_protocol = scene.cluster.version >= "4"
    stopped = asyncio.Event()

    def race() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "racer",
                "group.protocol": "consumer" if new_protocol else "classic",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["idle"])
        while not stopped.is_set():
            producer.produce("idle", b"x", partition=0)
            producer.flush(WAIT_S)
            if consumer.poll(0.05) is not None:
                consumer.commit(asynchronous=False)
        consumer.close()

    settings = KafkaSettings(bootstrap=bootstrap)
    racing = asyncio.create_task(asyncio.to_thread(race))
    try:
        async with collecting(settings, interval_ms=100) as (collector, collected):
            name = ("racer", ids.TopicPartition("idle", 0))
            await becomes(lambda: name in collected.commits, True)
            seen = collector.rounds
            first = collected.commits[name].committed_offset
            await becomes(lambda: collector.rounds > seen + 60, True)
            assert collected.commits[name].committed_offset > first
            # Other tests' groups on this cluster may have committed beyond an end.
            below = [line for line in collected.lags_below_zero if line.startswith("racer ")]
            assert not below
            await becomes(lambda: collected.groups["racer"].members, 1)
            await becomes(lambda: collected.commits[name].member_id is not None, True)
    finally:
        stopped.set()
        await racing
