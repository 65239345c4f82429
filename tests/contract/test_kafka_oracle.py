"""The oracle itself: real Kafka starts and its tools answer, and only in `make test-all`."""

from pathlib import Path

import pytest

from tests.support.kafka_oracle import KafkaCluster, OracleUnavailableError, run_tool

TOPICS = "org.apache.kafka.tools.TopicCommand"


@pytest.fixture
def through_another(kafka_libs: Path) -> Path:
    return kafka_libs


def test_a_test_of_every_change_cannot_start_kafka(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="mark it kafka_oracle"):
        run_tool(TOPICS, "--version")
    with pytest.raises(AssertionError, match="mark it kafka_oracle"):
        KafkaCluster(tmp_path).start()


@pytest.mark.parametrize(
    "suite",
    [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("thorough", "soak")],
)
def test_a_test_of_another_suite_may_use_its_tools(
    request: pytest.FixtureRequest, suite: str
) -> None:
    assert request.node.get_closest_marker(suite) is not None
    try:
        assert run_tool(TOPICS, "--version").returncode == 0
    except OracleUnavailableError as error:
        pytest.skip(str(error))


def test_who_uses_a_fixture_of_kafka_is_thorough(
    request: pytest.FixtureRequest, through_another: Path
) -> None:
    assert {"kafka_oracle", "thorough"} <= {it.name for it in request.node.iter_markers()}


@pytest.mark.kafka_oracle
def test_real_kafka_creates_and_describes_a_topic(kafka_cluster: KafkaCluster) -> None:
    bootstrap = ("--bootstrap-server", kafka_cluster.bootstrap)
    shape = ("--topic", "oracle", "--partitions", "2", "--replication-factor", "3")
    created = run_tool(TOPICS, *bootstrap, "--create", *shape)
    assert "Created topic oracle." in created.stdout, created.stderr
    described = run_tool(TOPICS, *bootstrap, "--describe", "--topic", "oracle")
    assert "PartitionCount: 2\tReplicationFactor: 3" in described.stdout, described.stderr
