"""Brokers that join: they follow the metadata quorum, hold partitions, and never vote (KIP-595)."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.protocol import codec
from tests.contract.operations_rig import unique
from tests.support import wire
from tests.support.cluster import LocalCluster
from tests.support.kafka_eyes import KafkaEyes
from tests.support.kafka_oracle import KafkaCluster, run_tool
from tests.support.node_cluster import NodeCluster
from tests.support.paced_producer import PacedProducer, check_kept
from tests.support.patience import patience_s
from tests.support.ports import free_ports_in_a_row
from tests.support.settle import wait_until

pytestmark = pytest.mark.thorough

QUORUM_TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"
CLUSTER = (sys.executable, "-m", "partiscope", "cluster")
QUORUM, CLUSTER_API = (55, 2), (60, 2)
TIMEOUT_S = patience_s(30)
TAKES_OVER_S_MAX = 5.0


@contextmanager
def grown(cluster: NodeCluster) -> Iterator[None]:
    """With those that come late."""
    with cluster:
        for node_id in cluster.ids[-cluster.late :]:
            cluster.start_node(node_id)
        cluster.wait_ready()
        yield


@pytest.mark.kafka_oracle
@pytest.mark.parametrize("kind", [LocalCluster, KafkaCluster])
def test_the_quorum_is_told_alike(
    kafka_libs: Path, tmp_path: Path, kind: type[LocalCluster] | type[KafkaCluster]
) -> None:
    assert kafka_libs.exists()
    cluster = kind(tmp_path, brokers=3, late=1)
    with grown(cluster):
        words = ("--bootstrap-server", cluster.bootstrap, "describe", "--replication")

        def roles() -> dict[int, str]:
            said = run_tool(QUORUM_TOOL, *words).stdout
            found = re.findall(r"^(\d+)\s.*?(Leader|Follower|Observer)\s*$", said, re.MULTILINE)
            return {int(node_id): role for node_id, role in found}

        wait_until(lambda: roles().get(103) == "Observer", "103 is known", story=cluster.story)
        assert sorted(roles().values()) == ["Follower", "Leader", "Observer"]


@pytest.mark.timeout(180)
def test_what_has_joined_outlives_the_controller_and_itself(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, brokers=5, late=2)
    with grown(cluster):
        eyes, topic = KafkaEyes(cluster.bootstrap), unique("joined")
        eyes.create(topic, {0: (104, 105, 101), 1: (105, 104, 102)})
        with PacedProducer(cluster.bootstrap, topic, partitions=2, per_s=100) as producer:
            at_105 = f"127.0.0.1:{cluster.ports[105]}"
            controller = quorum_leader(at_105)
            assert controller in {101, 102, 103}
            cluster.kill(controller)
            wait_until(
                lambda: quorum_leader(at_105) in {101, 102, 103} - {controller},
                "105 has another controller",
                timeout_s=TAKES_OVER_S_MAX,
                story=cluster.story,
            )
            # Of a client that has met no controller before: librdkafka waits for the one it knows.
            KafkaEyes(cluster.bootstrap).create(unique("later"), {0: (104, 105)})
            cluster.restart(controller)
            cluster.kill(104)
            wait_until(lambda: 104 not in eyes.leaders(topic).values(), "105 leads both")
            cluster.restart(104)
            wait_until(lambda: eyes.is_in_sync(topic), "104 is in sync", story=cluster.story)
            assert cluster.kill(105, signal.SIGTERM) == 0
            cluster.restart(105)
            wait_until(lambda: eyes.is_in_sync(topic), "105 is in sync", story=cluster.story)
        check_kept(cluster.bootstrap, topic, producer)


@contextmanager
def cluster_of(data: Path, port: int, brokers: int) -> Iterator[str]:
    """``partiscope cluster`` as a user runs it; its addresses."""
    words = ("--data", str(data), "--port", str(port), "--brokers", str(brokers))
    running = subprocess.Popen(
        [*CLUSTER, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert running.stdout is not None
    ready = next((line for line in running.stdout if line.startswith("ready")), "")
    try:
        assert ready
        yield ready.removeprefix("ready ").strip()
    finally:
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=TIMEOUT_S)


def test_a_cluster_is_started_with_more_and_with_fewer(tmp_path: Path) -> None:
    port, topic = free_ports_in_a_row(2), unique("kept")
    with cluster_of(tmp_path, port, 1):
        pass
    with cluster_of(tmp_path, port, 2) as bootstrap:
        eyes = KafkaEyes(bootstrap)
        eyes.create(topic, {0: (102,)})
        wait_until(lambda: eyes.leaders(topic) == {0: 102}, "102 leads it")
    refused = subprocess.run(
        [*CLUSTER, "--data", str(tmp_path), "--port", str(port), "--brokers", "1"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert refused.returncode == 1, refused.stderr
    assert "1 replicas lie on 102" in refused.stderr
    assert "--brokers 2" in refused.stderr
    with cluster_of(tmp_path, port, 2) as bootstrap:
        KafkaEyes(bootstrap).delete(topic)
        folder = tmp_path / "broker-102"
        wait_until(lambda: not (folder / f"{topic}-0").exists(), "its files are on their way out")
    for brokers in (1, 2, 1):
        with cluster_of(tmp_path, port, brokers):
            assert registered(f"127.0.0.1:{port}") == {101, 102}.intersection(range(101 + brokers))


def quorum_leader(address: str) -> int:
    """Whom DescribeQuorum names, asked through this broker; -1 if nobody answers for it."""
    topic = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    answer = wire.ask(address, *QUORUM, codec.build_request(*QUORUM, topics=[topic]))
    return int(answer.topics[0].partitions[0].leader_id) if answer.topics else -1


def registered(address: str) -> set[int]:
    """Every broker that the cluster knows, also those that do not run."""
    fields = {"include_cluster_authorized_operations": False, "endpoint_type": 1}
    asked = codec.build_request(*CLUSTER_API, include_fenced_brokers=True, **fields)
    return {broker.broker_id for broker in wire.ask(address, *CLUSTER_API, asked).brokers}
