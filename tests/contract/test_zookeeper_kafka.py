"""Real Kafka 2.8 with ZooKeeper, spoken to through a broker that is not the controller."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from tests.support.kafka_oracle import ready_admin
from tests.support.kafka_zookeeper import ZooKeeperCluster
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


@pytest.mark.parametrize(("version", "magic"), [("0.9.0", 0), ("0.10.0", 1), ("2.8", 2)])
def test_a_topic_holds_the_record_format_that_it_is_set_to(
    cluster: ZooKeeperCluster, version: str, magic: int
) -> None:
    name = f"format-{magic}"
    admin = ready_admin(**{"bootstrap.servers": cluster.bootstrap})
    topic = NewTopic(name, 1, 3, config={"message.format.version": version})
    admin.create_topics([topic])[name].result(30)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(name, b"value", key=b"key")
    assert producer.flush(30) == 0
    (log,) = cluster.log_dir(101).glob(f"{name}-0/*.log")
    wait_until(lambda: log.stat().st_size > MAGIC_AT, "the follower has it")
    assert log.read_bytes()[MAGIC_AT] == magic
