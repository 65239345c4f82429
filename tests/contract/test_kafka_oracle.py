"""The oracle itself: real Kafka starts and its tools answer."""

import pytest

from tests.support.kafka_oracle import KafkaCluster, run_tool

pytestmark = pytest.mark.kafka_oracle


def test_real_kafka_creates_and_describes_a_topic(kafka_cluster: KafkaCluster) -> None:
    bootstrap = ("--bootstrap-server", kafka_cluster.bootstrap)
    shape = ("--topic", "oracle", "--partitions", "2", "--replication-factor", "3")
    created = run_tool("org.apache.kafka.tools.TopicCommand", *bootstrap, "--create", *shape)
    assert "Created topic oracle." in created.stdout, created.stderr
    described = run_tool(
        "org.apache.kafka.tools.TopicCommand", *bootstrap, "--describe", "--topic", "oracle"
    )
    assert "PartitionCount: 2\tReplicationFactor: 3" in described.stdout, described.stderr
