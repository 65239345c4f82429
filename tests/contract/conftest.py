"""One cluster of ours and one of Apache Kafka for all tests of this folder that spoil neither."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from tests.support import kafka_oracle, schema_registry
from tests.support.cluster import NOBODY_DIES, LocalCluster
from tests.support.kafka_oracle import KAFKA_TODAY, KafkaCluster
from tests.support.node_cluster import NodeCluster


@pytest.fixture(scope="package")
def our_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three brokers of ours; whoever kills one takes a cluster of their own."""
    with LocalCluster(tmp_path_factory.mktemp("ours"), overrides=NOBODY_DIES) as cluster:
        yield cluster
        NodeCluster.stop(cluster)  # at once: nobody needs what it holds


@pytest.fixture(scope="package")
def kafka_cluster(
    kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    """Three nodes of real Kafka."""
    assert kafka_libs.exists()
    with KafkaCluster(tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def kafka_today_libs() -> Path:
    """Jars of the newest Kafka."""
    try:
        return kafka_oracle.kafka_libs(KAFKA_TODAY)
    except kafka_oracle.OracleUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="package")
def registry_home() -> Path:
    """Folder of a real schema registry."""
    try:
        return schema_registry.registry_home()
    except kafka_oracle.OracleUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="package")
def kafka_today(
    kafka_today_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    """Three nodes of the newest Kafka, two log directories each: who uses it restores it."""
    assert kafka_today_libs.exists()
    directory = tmp_path_factory.mktemp("kafka-today")
    with KafkaCluster(directory, version=KAFKA_TODAY, log_dirs=2) as cluster:
        yield cluster


@pytest.fixture(
    params=[
        pytest.param("our_cluster", id="ours"),
        pytest.param("kafka_cluster", id="kafka", marks=pytest.mark.kafka_oracle),
    ]
)
def bootstrap(request: pytest.FixtureRequest) -> str:
    """Where a test runs: on ours, and on Kafka, which says what is right."""
    cluster: NodeCluster = request.getfixturevalue(request.param)
    return cluster.bootstrap


@pytest.fixture
async def admin(bootstrap: str) -> AsyncIterator[KafkaAdmin]:
    """An admin client of ``bootstrap``."""
    async with KafkaAdmin.to(bootstrap) as opened:
        yield opened
