"""The newest Kafka as our oracle: what its cluster allows, by its own tools."""

from typing import Final

import pytest

from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import KafkaCluster, run_tool
from tests.support.node_cluster import ROOT
from tests.support.wire import ask, metadata, topic_at, wait_for_topic

pytestmark = pytest.mark.kafka_oracle

API_VERSIONS: Final = (18, 3)
NEWER_IN_KAFKA: Final = {
    18: ("ApiVersions", (0, 4), (0, 5)),
    27: ("WriteTxnMarkers", (1, 1), (1, 2)),
    28: ("TxnOffsetCommit", (0, 5), (0, 6)),
    42: ("DeleteGroups", (0, 2), (0, 3)),
}
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


def test_offsets_are_listed_in_version_11_as_kafka_lists_them(
    our_cluster: LocalCluster, kafka_today: KafkaCluster
) -> None:
    ours, theirs = (_listed(cluster.bootstrap) for cluster in (our_cluster, kafka_today))
    assert ours == theirs
    assert ours[-1] == (0, 1), "one record was written"


def _listed(bootstrap: str) -> dict[int, tuple[int, int]]:
    """Error and offset for each timestamp with a meaning of its own, and some without."""
    topic = {"name": "listed", "num_partitions": 1, "replication_factor": 1}
    first = bootstrap.split(",")[0]
    ask(first, 19, 5, codec.build_request(19, 5, topics=[topic], timeout=30_000))
    wait_for_topic(bootstrap, "listed", 1)
    found = topic_at(first, "listed")
    brokers = {it.node_id: f"{it.host}:{it.port}" for it in metadata(first).brokers}
    leader = brokers[found.partitions[0].leader_id]
    batch = build_batch([NewRecord(value=b"v", timestamp=1_700_000_000_000)])
    data = [{"name": "listed", "partition_data": [{"index": 0, "records": batch}]}]
    ask(leader, 0, 9, codec.build_request(0, 9, acks=-1, timeout=30_000, topic_data=data))
    listed = {}
    for timestamp in (*range(-9, 1), 1_700_000_000_000, 1_700_000_000_001):
        partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
        fields = {"replica_id": -1, "isolation_level": 0, "timeout": 30_000}
        topics = [{"name": "listed", "partitions": [partition]}]
        answer = ask(leader, 2, 11, codec.build_request(2, 11, topics=topics, **fields))
        row = answer.topics[0].partitions[0]
        listed[timestamp] = (int(row.error_code), row.offset)
    return listed


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
