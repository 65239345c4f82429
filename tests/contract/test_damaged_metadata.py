"""Bits of metadata logs are flipped while the nodes are down: nobody makes up another history."""

import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support import wire
from tests.support.cases import case
from tests.support.cluster import LocalCluster
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

SEEDS: Final = range(4)


def metadata_log(cluster: LocalCluster, node_id: int) -> Path:
    """The first segment of a node's metadata log."""
    return min((cluster.log_dir(node_id) / "__cluster_metadata-0").glob("*.log"))


def create(cluster: LocalCluster, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    topics = [NewTopic(name, 3, cluster.brokers) for name in names]
    for created in admin.create_topics(topics).values():
        created.result(WAIT_S)
    for name in names:
        wire.wait_for_topic(cluster.bootstrap, name, 3)


def stop(cluster: LocalCluster, number: int) -> None:
    for node_id in cluster.ids:
        cluster.kill(node_id, number)


def spoil(cluster: LocalCluster, node_id: int, dice: random.Random) -> None:
    path = metadata_log(cluster, node_id)
    content = bytearray(path.read_bytes())
    content[dice.randrange(len(content) * 2 // 3)] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """Three voters with a few topics."""
    with LocalCluster(tmp_path) as running:
        create(running, *(f"t{number}" for number in range(5)))
        yield running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_voters_fetch_again_what_their_disks_lost(cluster: LocalCluster, number: int) -> None:
    for seed in SEEDS:
        dice = random.Random(seed)
        victims = dice.sample(cluster.ids, dice.choice((1, 2)))
        stop(cluster, number)
        with case(seed, victims):
            for node_id in victims:
                spoil(cluster, node_id, dice)
            for node_id in cluster.ids:
                cluster.start_node(node_id)
            cluster.wait_ready()
            create(cluster, f"new-{number}-{seed}")
            names = {topic.name for topic in cluster.metadata(victims[0]).topics}
            assert {f"t{each}" for each in range(5)} <= names
            for node_id in victims:
                note = cluster.log_dir(node_id) / "__cluster_metadata-0" / "lost-records"
                wait_until(lambda path=note: not path.exists(), "it has all again")  # type: ignore[misc]
    stop(cluster, signal.SIGTERM)
    logs = [metadata_log(cluster, node_id).read_bytes() for node_id in cluster.ids]
    shortest = min(map(len, logs))
    assert len({content[:shortest] for content in logs}) == 1


def test_a_voter_alone_does_not_start_and_names_the_place(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, brokers=1) as alone:
        create(alone, "t")
        stop(alone, signal.SIGTERM)
        path = metadata_log(alone, alone.ids[0])
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        alone.start_node(alone.ids[0])
        process = alone.processes.pop(alone.ids[0])
        assert process.wait(WAIT_S) == 1
        story = alone.story()
        assert str(path) in story
        assert "position" in story
        assert "Traceback" not in story
        assert path.read_bytes() == content
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        alone.restart(alone.ids[0])
        assert wire.topic_at(alone.bootstrap, "t") is not None
