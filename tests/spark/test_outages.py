"""Brokers that die, are unregistered, hang or all stop: what the store and ``status`` say then."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.snapshot import (
    OperatorSnapshot,
    broker_page,
    build_snapshot,
    group_page,
    partition_page,
)
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.cluster import LocalCluster
from tests.support.metrics_job import MetricsJob
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(600)]
LONELY: Final = "lonely"
"""A topic of two partitions on 104 alone."""
GROUP: Final = "billing"
NAMED_S_MAX: Final = 5.0
DEAD_S_MAX: Final = 7.0
RECORDS: Final = 500


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster", brokers=4, late=1) as running:
        running.start_node(104)
        running.wait_ready()
        yield running


@pytest.fixture
def job(cluster: LocalCluster, tmp_path: Path) -> Iterator[MetricsJob]:
    made = MetricsJob(bootstrap=cluster.bootstrap, base_dir=tmp_path / "job")
    made.start()
    made.wait_ready()
    yield made
    made.close()


@pytest.fixture
def feed(cluster: LocalCluster, job: MetricsJob) -> Iterator[SnapshotFeed]:
    """As the screens watch the store and, while its figures are old, the brokers."""
    made = SnapshotFeed(AggregatesReader(job.store), bootstrap=cluster.bootstrap)
    made.start()
    yield made
    made.stop()


def look(job: MetricsJob) -> OperatorSnapshot:
    now = AggregatesReader(job.store).now()
    assert now is not None
    return build_snapshot(now.tables, version=1, now_ms=time.time_ns() // 1_000_000)


def is_calm(job: MetricsJob) -> bool:
    """All is told as soon as it is known."""
    return not kinds(look(job)) & {"stale", "cluster-silent", "job-behind", "job-slow"}


def status(job: MetricsJob) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "partiscope", "status", "--json", "--store", job.store],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def kinds(snapshot: OperatorSnapshot) -> set[str]:
    return {finding.kind for finding in snapshot.findings}


def lonely(snapshot: OperatorSnapshot) -> list[tuple[str, int]]:
    """Status and end offset of each of its partitions."""
    rows = partition_page(snapshot, topic=LONELY).rows
    return [(str(row.status.text), int(row.high_watermark.value or 0)) for row in rows]


def make_lonely(cluster: LocalCluster) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    new = NewTopic(LONELY, replica_assignment=[[104], [104]], num_partitions=2)
    admin.create_topics([new])[LONELY].result(WAIT_S)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for partition in (0, 1):
        for number in range(RECORDS):
            producer.produce(LONELY, b"%d" % number, partition=partition)
    assert producer.flush(WAIT_S) == 0
    return admin


def commit(cluster: LocalCluster, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition(LONELY, 0, offset)], asynchronous=False)
    consumer.close()


def unregister(cluster: LocalCluster, broker: int) -> None:
    async def ask() -> None:
        async with KafkaAdmin.to(cluster.bootstrap) as admin:
            await admin.unregister_broker(broker)

    asyncio.run(ask())


def test_partitions_stay_when_their_only_broker_goes(
    cluster: LocalCluster, job: MetricsJob
) -> None:
    admin = make_lonely(cluster)
    commit(cluster, 100)
    whole = [("ok", RECORDS)] * 2
    wait_until(lambda: lonely(look(job)) == whole, "all is seen", story=job.words)
    time.sleep(6.0)
    assert [row.status.text for row in group_page(look(job)).rows] == ["OK"]

    cluster.kill(104)
    offline = [("offline", RECORDS)] * 2
    wait_until(lambda: lonely(look(job)) == offline, "they are offline", story=job.words)
    _assert_no_verdict(job)
    unregister(cluster, 104)
    wait_until(
        lambda: "104" not in {row.key for row in broker_page(look(job)).rows},
        "104 is not registered",
        story=job.words,
    )
    for _ in range(20):
        assert lonely(look(job)) == offline
        time.sleep(0.5)
    exit_status, told = status(job)
    assert exit_status == 5
    assert any(it["title"] == "2 partitions offline" for it in told["findings"])
    _assert_no_verdict(job)

    admin.delete_topics([LONELY])[LONELY].result(WAIT_S)
    wait_until(lambda: lonely(look(job)) == [], "deleted ones go", story=job.words)
    assert "offline" not in kinds(look(job))


def _assert_no_verdict(job: MetricsJob) -> None:
    (row,) = group_page(look(job)).rows
    assert (row.status.text, row.rests_on.text) == ("not-known", "0 of 1 partition")
    assert row.status_unknown_because.text == f"{LONELY}-0: its partition is offline"
    assert row.lag_time.text == "n/a"


@pytest.mark.parametrize("is_controller", [False, True])
def test_a_broker_that_hangs_is_named_and_holds_up_no_other(
    cluster: LocalCluster, job: MetricsJob, feed: SnapshotFeed, *, is_controller: bool
) -> None:
    wait_until(lambda: is_calm(job), "all is calm", timeout_s=120)
    time.sleep(5.0)
    controller = int(look(job).headline.controller.value or 0)
    victim = controller if is_controller else min({101, 102, 103} - {controller})
    others = [it for it in cluster.ids if it != victim]
    cluster.processes[victim].send_signal(signal.SIGSTOP)
    began_s = time.monotonic()
    try:
        named_s, oldest = _watch_hung(feed, victim, others, began_s)
    finally:
        cluster.processes[victim].send_signal(signal.SIGCONT)
    print(f"named after {named_s:.1f} s; the others were at most {oldest} ms old")
    assert named_s <= NAMED_S_MAX
    assert oldest < 1_000 * (DEAD_S_MAX + (2.5 if is_controller else 0.0))
    wait_until(lambda: not kinds(look(job)) & {"stale", "broker-fenced"}, "it is back")


def _watch_hung(
    feed: SnapshotFeed, victim: int, others: Sequence[int], began_s: float
) -> tuple[float, int]:
    """When it was named, and how old figures of the others were at most in 15 s."""
    named_s, oldest = float("inf"), 0
    while (now_s := time.monotonic() - began_s) < 15.0:
        snapshot = feed.current
        rows = {row.key: row for row in broker_page(snapshot).rows}
        waited_ms = time.time_ns() // 1_000_000 - snapshot.built_ms
        ages = [int(rows[str(it)].age.value or 0) + waited_ms for it in others]
        words = {it: rows[str(it)].status.text for it in (victim, *others)}
        print(f"{now_s:5.1f} {ages} {words} {sorted(kinds(snapshot))}")
        if words[victim] != "alive" and now_s < named_s:
            named_s = now_s
        assert all(words[it] == "alive" for it in others)
        oldest = max(oldest, *ages)
        time.sleep(0.25)
    return named_s, oldest


def test_a_cluster_that_stops_is_critical_within_seconds(
    cluster: LocalCluster, job: MetricsJob
) -> None:
    wait_until(lambda: is_calm(job), "all is calm", timeout_s=120)
    for process in cluster.processes.values():
        process.send_signal(signal.SIGSTOP)
    began_s = time.monotonic()
    wait_until(lambda: "cluster-silent" in kinds(look(job)), "it is said", timeout_s=30)
    assert time.monotonic() - began_s <= DEAD_S_MAX
    exit_status, told = status(job)
    assert (exit_status, told["stale"]) == (5, True)
    assert {it["status"] for it in told["brokers"]} <= {"silent", "fenced"}
    assert told["in_bytes_per_s"] is None
    for process in cluster.processes.values():
        process.send_signal(signal.SIGCONT)
    wait_until(lambda: "cluster-silent" not in kinds(look(job)), "it is back", story=job.words)
