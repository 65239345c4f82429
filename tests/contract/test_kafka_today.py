"""The newest Kafka as our oracle: what its cluster allows, by its own tools."""

from typing import Final

import pytest

from broker.protocol import codec
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import KafkaCluster, run_tool
from tests.support.node_cluster import ROOT
from tests.support.wire import ask

pytestmark = pytest.mark.kafka_oracle

API_VERSIONS: Final = (18, 3)
NEWER_IN_KAFKA: Final = {18: ("ApiVersions", (0, 4), (0, 5)), 42: ("DeleteGroups", (0, 2), (0, 3))}
"""By key: name, versions of bundled brokers and of Kafka."""


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


def test_bundled_brokers_serve_the_versions_of_kafka_but_for_those_that_the_document_names(
    our_cluster: LocalCluster, kafka_today: KafkaCluster
) -> None:
    ours, theirs = _versions(our_cluster.bootstrap), _versions(kafka_today.bootstrap)
    differing = {key: (it, theirs.get(key)) for key, it in ours.items() if theirs.get(key) != it}
    assert differing == {key: (mine, newer) for key, (_, mine, newer) in NEWER_IN_KAFKA.items()}
    document = (ROOT / "docs" / "reference" / "compatibility.md").read_text()
    for name, (_, mine), (_, newer) in NEWER_IN_KAFKA.values():
        assert f"| {name} {newer} | " in document, f"{name}: {mine} here"


def _versions(bootstrap: str) -> dict[int, tuple[int, int]]:
    """Lowest and highest version of each API that the first broker serves."""
    request = codec.build_request(
        *API_VERSIONS, client_software_name="tests", client_software_version="1"
    )
    answer = ask(bootstrap.split(",")[0], *API_VERSIONS, request)
    return {int(it.api_key): (it.min_version, it.max_version) for it in answer.api_keys}


def _tool(cluster: KafkaCluster, command: str, *args: str) -> str:
    done = run_tool(
        f"org.apache.kafka.tools.{command}",
        *("--bootstrap-server", cluster.bootstrap, *args),
        version=cluster.version,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
