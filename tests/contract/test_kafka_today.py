"""The newest Kafka as our oracle: what its cluster allows, by its own tools."""

import pytest

from tests.support.kafka_oracle import KafkaCluster, run_tool

pytestmark = pytest.mark.kafka_oracle


def test_groups_of_every_kind_are_allowed(kafka_today: KafkaCluster) -> None:
    said = _tool(kafka_today, "FeatureCommand", "describe")
    levels = {
        line.split()[1]: int(line.split("FinalizedVersionLevel:")[1].split()[0])
        for line in said.splitlines()
        if ".version" in line and "metadata" not in line
    }
    assert levels["group.version"] >= 1
    assert levels["share.version"] >= 1
    assert levels["streams.version"] >= 1


def test_each_node_has_two_log_directories(kafka_today: KafkaCluster) -> None:
    said = _tool(kafka_today, "LogDirsCommand", "--describe")
    assert all(
        f'"{directory}"' in said
        for node in kafka_today.ids
        for directory in kafka_today.directories(node)
    )


def _tool(cluster: KafkaCluster, command: str, *args: str) -> str:
    done = run_tool(
        f"org.apache.kafka.tools.{command}",
        *("--bootstrap-server", cluster.bootstrap, *args),
        version=cluster.version,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
