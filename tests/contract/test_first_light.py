"""Three brokers from three properties files serve an unchanged client and survive a kill."""

import signal
import threading
import time
import uuid
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.cluster import LocalCluster
from tests.support.patience import WAIT_S, patience_s
from tests.support.settle import wait_until

FAILOVER_S_MAX = patience_s(5.0)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def topic(cluster: LocalCluster) -> str:
    return create(cluster)


def create(cluster: LocalCluster) -> str:
    """A topic of 3 partitions on 3 brokers that refuses acks=all with fewer than two."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    new = NewTopic(name, 3, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([new])[name].result(WAIT_S)
    return name


def produce_all(cluster: LocalCluster, topic: str, values: list[bytes]) -> dict[bytes | None, Any]:
    """Value -> (partition, offset) of everything acknowledged with acks=all."""
    acked: dict[bytes | None, Any] = {}
    errors: list[KafkaError] = []

    def report(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            errors.append(error)
        else:
            acked[message.value()] = (message.partition(), message.offset())

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value=value, key=value, on_delivery=report)
    assert producer.flush(WAIT_S) == 0
    assert not errors
    return acked


def consume_all(cluster: LocalCluster, topic: str, partitions: int = 3) -> dict[bytes | None, Any]:
    """Value -> (partition, offset) of everything in the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": f"g-{uuid.uuid4().hex[:8]}",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    seen: dict[bytes | None, Any] = {}
    ended: set[int | None] = set()
    deadline = time.monotonic() + WAIT_S
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"only {len(seen)} records came"
        message = consumer.poll(0.5)
        if message is None:
            continue
        error = message.error()
        if error is None:
            seen[message.value()] = (message.partition(), message.offset())
        elif error.code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
    consumer.close()
    return seen


def test_create_produce_consume(our_cluster: LocalCluster) -> None:
    topic = create(our_cluster)
    values = [f"value-{number}".encode() for number in range(1000)]
    acked = produce_all(our_cluster, topic, values)
    assert acked.keys() == set(values)
    assert consume_all(our_cluster, topic) == acked


def test_every_replica_is_in_sync(our_cluster: LocalCluster) -> None:
    found = our_cluster.wait_for_topic(101, create(our_cluster))
    assert len(found.partitions) == 3
    for partition in found.partitions:
        assert sorted(partition.replica_nodes) == [101, 102, 103]
        assert sorted(partition.isr_nodes) == [101, 102, 103]
    assert sorted(p.leader_id for p in found.partitions) == [101, 102, 103]


class SteadyProducer:
    """Produces numbered records with acks=all in a thread until it is told to stop."""

    def __init__(self, cluster: LocalCluster, topic: str) -> None:
        self.acked: dict[bytes | None, Any] = {}
        self.ack_times: dict[int | None, list[float]] = {0: [], 1: [], 2: []}
        self.errors: list[str] = []
        self._topic = topic
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
                "topic.metadata.refresh.interval.ms": 500,
            }
        )
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "SteadyProducer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            value = str(number).encode()
            self._producer.produce(
                self._topic, value=value, partition=number % 3, on_delivery=self._report
            )
            number += 1
            self._producer.poll(0.002)
        self._producer.flush(WAIT_S)

    def _report(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
            return
        self.acked[message.value()] = (message.partition(), message.offset())
        self.ack_times[message.partition()].append(time.monotonic())

    def wait_acknowledged(self, more: int) -> None:
        """Until every partition has so many more acknowledgements than now."""
        goals = {partition: len(times) + more for partition, times in self.ack_times.items()}
        wait_until(
            lambda: all(len(self.ack_times[p]) >= goal for p, goal in goals.items()),
            f"{more} more acknowledgements on every partition",
        )

    def longest_silence_s(self, since: float) -> float:
        """The longest time that any partition went without an acknowledgement."""
        return max(
            after - before
            for times in self.ack_times.values()
            for before, after in pairwise([since, *(t for t in times if t > since)])
        )


def is_in_no_isr(cluster: LocalCluster, topic: str, node_id: int) -> bool:
    """Whether everybody else knows that the node is not in sync anywhere."""
    return all(
        node_id not in partition.isr_nodes
        for other in cluster.processes
        for partition in cluster.wait_for_topic(other, topic).partitions
    )


@pytest.mark.thorough
@pytest.mark.parametrize("node_id", [101, 102, 103])
def test_kill_9_loses_nothing_acknowledged(cluster: LocalCluster, topic: str, node_id: int) -> None:
    with SteadyProducer(cluster, topic) as producer:
        producer.wait_acknowledged(100)
        killed_at = time.monotonic()
        cluster.kill(node_id, signal.SIGKILL)
        wait_until(lambda: is_in_no_isr(cluster, topic, node_id), "it left every ISR")
        producer.wait_acknowledged(100)
    silence_s = producer.longest_silence_s(killed_at)
    cluster.restart(node_id)
    assert not producer.errors
    assert silence_s < FAILOVER_S_MAX, cluster.story()
    seen = consume_all(cluster, topic)
    missing = {v: where for v, where in producer.acked.items() if seen.get(v) != where}
    assert not missing


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_all_at_once_and_back(cluster: LocalCluster, topic: str, number: signal.Signals) -> None:
    values = [f"value-{number}".encode() for number in range(500)]
    acked = produce_all(cluster, topic, values)
    for process in cluster.processes.values():
        process.send_signal(number)
    for node_id in cluster.ids:
        cluster.kill(node_id, number)
    for node_id in cluster.ids:
        cluster.start_node(node_id)
    cluster.wait_ready()
    # A new leader serves up to the high watermark that it knew, until its followers have fetched.
    wait_until(lambda: consume_all(cluster, topic) == acked, "everything acknowledged is served")
    more = produce_all(cluster, topic, [b"after"])
    assert consume_all(cluster, topic) == {**acked, **more}


@pytest.mark.thorough
def test_sigterm_ends_within_5_s_with_status_0(tmp_path: Path) -> None:
    with LocalCluster(tmp_path) as cluster:
        for node_id in cluster.ids:
            started = time.monotonic()
            assert cluster.kill(node_id, signal.SIGTERM) == 0, cluster.story()
            assert time.monotonic() - started < patience_s(5.0)
