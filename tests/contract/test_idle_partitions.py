"""Brokers are killed, or registered anew while they live: idle partitions are whole again."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from broker.protocol import codec
from tests.support.cases import case
from tests.support.cluster import LocalCluster
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

IDLE: Final = "idle"
BUSY: Final = "busy"
PARTITIONS: Final = 50
UNREGISTER_BROKER: Final = (64, 0)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three brokers, each with a replica of every partition."""
    with LocalCluster(tmp_path_factory.mktemp("idle")) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
        topics = [NewTopic(IDLE, PARTITIONS, 3), NewTopic(BUSY, 3, 3)]
        for created in admin.create_topics(topics).values():
            created.result(WAIT_S)
        wait_whole(running)
        yield running


def out_of_sync(cluster: LocalCluster) -> list[tuple[str, int, list[int]]]:
    """Partitions that lack a replica in sync, by the metadata of one broker."""
    topics: Any = cluster.metadata(cluster.ids[0]).topics
    return [
        (topic.name, partition.partition_index, list(partition.isr_nodes))
        for topic in topics
        for partition in topic.partitions
        if len(partition.isr_nodes) < len(partition.replica_nodes)
    ]


def wait_whole(cluster: LocalCluster) -> None:
    """Until every partition has all its replicas in sync."""
    cluster.wait_ready()

    def story() -> str:
        return f"{out_of_sync(cluster)}\n{cluster.story()}"

    wait_until(lambda: not out_of_sync(cluster), "all replicas are in sync", story=story)


def test_a_broker_that_was_unregistered_while_it_lives(cluster: LocalCluster) -> None:
    message = codec.build_request(*UNREGISTER_BROKER, broker_id=cluster.ids[1])
    assert cluster.ask(cluster.ids[0], *UNREGISTER_BROKER, message).error_code == 0
    wait_until(lambda: bool(out_of_sync(cluster)), "its replicas have left")
    wait_whole(cluster)


@pytest.mark.parametrize("is_busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("is_together", [True, False], ids=["together", "one-by-one"])
def test_brokers_that_were_killed_in_every_order(
    cluster: LocalCluster, is_busy: bool, is_together: bool
) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for order in permutations(cluster.ids):
        with case(order):
            for node_id in order:
                if is_busy:
                    producer.produce(BUSY, b"x" * 1000)
                    producer.poll(0)
                cluster.kill(node_id)
            for node_id in order:
                cluster.start_node(node_id)
                if not is_together and len(cluster.processes) > 1:
                    cluster.wait_ready()
            wait_whole(cluster)
    producer.purge()
