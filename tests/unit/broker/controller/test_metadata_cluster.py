"""Quorum, controller and registration of three nodes on real sockets and files."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from broker.controller.controller_channel import ControllerChannel
from broker.controller.errors import ControllerUnavailableError
from broker.coordinator.producer_ids import ProducerIdAllocator
from broker.metadata.image import MetadataImage
from broker.protocol import codec
from broker.raft import wire
from broker.raft.messages import VoteRequest
from broker.raft.snapshot_files import Snapshot
from broker.server.peers import PeerClient
from tests.support.loop_disk import nothing_forced_on_the_loop
from tests.support.metadata_plane import MetadataNode, node_config
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports
from tests.support.settle import TIMEOUT_S, until

INVALID_REGISTRATION = 119


class MetadataCluster:
    """Nodes 101, 102, …, of which some may be dead."""

    def __init__(self, directory: Path, count: int) -> None:
        ports = free_ports(2 * count)
        ids = range(101, 101 + count)
        by_id = {id_: (ports[i], ports[count + i]) for i, id_ in enumerate(ids)}
        self.configs = {id_: node_config(directory, node_id=id_, ports=by_id) for id_ in ids}
        self.nodes: dict[int, MetadataNode] = {}

    async def start(self, node_id: int) -> None:
        self.nodes[node_id] = MetadataNode(self.configs[node_id])
        await self.nodes[node_id].start()

    async def start_all(self) -> None:
        for node_id in self.configs:
            await self.start(node_id)
        await asyncio.gather(*(n.plane.lifecycle.wait_unfenced() for n in self.nodes.values()))

    async def kill(self, node_id: int) -> None:
        await self.nodes.pop(node_id).kill()

    async def stop_all(self) -> None:
        for node in self.nodes.values():
            await node.stop()

    @property
    def controller_id(self) -> int:
        (active,) = [id_ for id_, node in self.nodes.items() if node.plane.active.is_active]
        return active

    def follower(self) -> MetadataNode:
        return next(n for id_, n in self.nodes.items() if id_ != self.controller_id)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[MetadataCluster]:
    running = MetadataCluster(tmp_path, 3)
    with nothing_forced_on_the_loop() as forced:
        await running.start_all()
        yield running
        await running.stop_all()
    assert "quorum-state.tmp" in forced


async def ask(node: MetadataNode, api_key: int, version: int, **fields: object) -> Any:
    """A client's request to a node, over its client listener."""
    listener = node.config.listeners.among_brokers
    client = PeerClient(host=listener.host, port=listener.port, client_id="test")
    try:
        message = codec.build_request(api_key, version, **fields)
        return await client.send(api_key, version, message)
    finally:
        await client.close()


def image_of(node: MetadataNode) -> MetadataImage:
    """What the node knows."""
    return node.plane.metadata.image


async def create(node: MetadataNode, name: str, partitions: int = 3, factor: int = 3) -> Any:
    topic = {"name": name, "num_partitions": partitions, "replication_factor": factor}
    answer = await ask(node, 19, 7, topics=[topic], timeout=5_000)
    return answer.topics[0]


async def test_topic_made_through_a_follower_is_known_there_at_once(
    cluster: MetadataCluster,
) -> None:
    node = cluster.follower()
    created = await create(node, "t")
    assert created.error_code == 0
    assert created.num_partitions == 3
    assert {c.name for c in created.configs} >= {"retention.ms", "cleanup.policy"}
    topic = node.plane.metadata.image.topics["t"]
    assert topic.topic_id == created.topic_id
    again = await create(node, "t")
    assert (again.error_code, again.error_message) == (36, "Topic 't' already exists.")


async def test_killed_controller_and_leader_is_replaced_and_nothing_is_forgotten(
    cluster: MetadataCluster,
) -> None:
    await create(cluster.follower(), "t", partitions=6)
    killed = cluster.controller_id
    await cluster.kill(killed)
    survivors = [node.plane for node in cluster.nodes.values()]

    def has_moved() -> bool:
        partitions = survivors[0].metadata.image.topics["t"].partitions.values()
        return all(p.leader not in (killed, -1) and killed not in p.isr for p in partitions)

    await until(has_moved)
    assert (await create(cluster.follower(), "u")).error_code == 0
    await cluster.start(killed)
    back = cluster.nodes[killed].plane
    await asyncio.wait_for(back.lifecycle.wait_unfenced(), timeout=TIMEOUT_S)
    assert set(back.metadata.image.topics) == {"t", "u"}


async def test_broker_that_stops_hands_its_partitions_over_first(cluster: MetadataCluster) -> None:
    await create(cluster.follower(), "t", partitions=6)
    leaving = cluster.follower()
    others = [node for node in cluster.nodes.values() if node is not leaving]
    assert await leaving.plane.lifecycle.controlled_shutdown(3_000)
    await until(lambda: others[0].plane.metadata.image.brokers[leaving.config.node_id].fenced)
    partitions = others[0].plane.metadata.image.topics["t"].partitions.values()
    assert all(p.leader != leaving.config.node_id for p in partitions)


@pytest.mark.parametrize(
    ("broker_id", "listeners"),
    [
        (900, []),
        (900, [{"name": "PLAINTEXT", "host": "", "port": 1, "security_protocol": 0}]),
        (-1, [{"name": "PLAINTEXT", "host": "h", "port": 1, "security_protocol": 0}]),
    ],
)
async def test_a_registration_that_names_no_address_is_refused_and_ends_nobody(
    cluster: MetadataCluster, broker_id: int, listeners: list[dict[str, object]]
) -> None:
    plane = cluster.follower().plane
    before = set(plane.metadata.image.brokers)
    message = codec.build_request(
        62,
        4,
        broker_id=broker_id,
        cluster_id="test-cluster",
        incarnation_id=uuid4(),
        listeners=listeners,
        features=[],
        rack=None,
    )
    answer = await plane.controller.submit(62, 4, message)
    assert int(answer.error_code) == INVALID_REGISTRATION
    assert (await create(cluster.follower(), "afterwards")).error_code == 0
    for node in cluster.nodes.values():
        metadata = node.plane.metadata
        await until(lambda: "afterwards" in metadata.image.topics)  # noqa: B023  # awaited here
        assert set(node.plane.metadata.image.brokers) == before


@pytest.mark.parametrize("pre_vote", [True, False])
async def test_a_strangers_vote_in_the_last_epoch_ends_no_elections(
    cluster: MetadataCluster, pre_vote: bool
) -> None:
    for node in cluster.nodes.values():
        for candidate_id in cluster.nodes.keys() - {node.config.node_id}:
            request = VoteRequest(
                candidate_id=candidate_id,
                epoch=2**31 - 1,
                last_epoch=2**31 - 2,
                last_offset=2**62,
                pre_vote=pre_vote,
            )
            message = wire.to_request(request, cluster_id="test-cluster")
            endpoint = node.config.listeners.controller
            assert endpoint is not None
            client = PeerClient(host=endpoint.host, port=endpoint.port, client_id="stranger")
            await client.send(52, 2, message)
            await client.close()
    await cluster.kill(cluster.controller_id)
    await until(lambda: any(node.plane.active.is_active for node in cluster.nodes.values()))
    assert (await create(cluster.follower(), "afterwards")).error_code == 0


async def test_second_process_with_a_live_id_waits(cluster: MetadataCluster) -> None:
    node = cluster.follower()
    epoch = node.plane.metadata.broker_epoch
    plane = node.plane
    message = codec.build_request(
        62,
        4,
        broker_id=node.config.node_id,
        cluster_id=node.config.cluster_id,
        incarnation_id=uuid4(),
        listeners=[{"name": "PLAINTEXT", "host": "h", "port": 1, "security_protocol": 0}],
        features=[],
        rack=None,
    )
    answer = await plane.controller.submit(62, 4, message)
    assert answer.error_code == 101
    assert plane.metadata.broker_epoch == epoch


async def test_blocks_of_producer_ids_never_overlap(cluster: MetadataCluster) -> None:
    allocators = [
        ProducerIdAllocator(
            node_id=node_id,
            broker_epoch=lambda plane=node.plane: plane.metadata.broker_epoch,  # type: ignore[misc]
            controller=node.plane.controller,
        )
        for node_id, node in cluster.nodes.items()
        for _ in range(3)
    ]
    ids = await asyncio.gather(*(allocator.next_id() for allocator in allocators))
    assert sorted(ids) == [1_000 * n for n in range(9)]


async def test_internal_topic_is_made_once_whoever_asks(cluster: MetadataCluster) -> None:
    planes = [node.plane for node in cluster.nodes.values()]
    name = "__consumer_offsets"
    await asyncio.gather(*(plane.controller.ensure_internal_topic(name) for plane in planes))
    for plane in planes:
        topic = plane.metadata.image.topics[name]
        assert len(topic.partitions) == 50
        assert all(len(p.replicas) == 3 for p in topic.partitions.values())


async def test_quorum_and_moves_are_described_by_any_node(cluster: MetadataCluster) -> None:
    node = cluster.follower()
    quorum = await ask(node, 55, 2, topics=[])
    (partition,) = quorum.topics[0].partitions
    assert partition.leader_id == cluster.controller_id
    assert [v.replica_id for v in partition.current_voters] == [101, 102, 103]
    assert all(v.last_fetch_timestamp > 0 for v in partition.current_voters)
    await create(node, "t", partitions=1, factor=1)
    (old,) = node.plane.metadata.image.topics["t"].partitions[0].replicas
    new = next(id_ for id_ in cluster.nodes if id_ != old)
    wanted = [{"name": "t", "partitions": [{"partition_index": 0, "replicas": [new]}]}]
    await ask(node, 45, 0, timeout=5_000, topics=wanted)
    listed = await ask(node, 46, 0, timeout=5_000, topics=None)
    (moving,) = listed.topics[0].partitions
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == (
        (new, old),
        (new,),
        (old,),
    )


async def test_configs_are_altered_and_described(cluster: MetadataCluster) -> None:
    node = cluster.follower()
    await create(node, "t")
    change = {"name": "retention.ms", "config_operation": 0, "value": "12345"}
    resource = {"resource_type": 2, "resource_name": "t"}
    altered = await ask(node, 44, 1, resources=[{**resource, "configs": [change]}])
    assert altered.responses[0].error_code == 0
    described = await ask(
        node,
        32,
        4,
        resources=[{**resource, "configuration_keys": None}],
        include_synonyms=True,
        include_documentation=True,
    )
    configs = {c.name: c for c in described.results[0].configs}
    assert configs["retention.ms"].value == "12345"
    assert configs["retention.ms"].config_source == 1
    assert configs["segment.bytes"].documentation
    own = {"resource_type": 4, "resource_name": str(node.config.node_id)}
    broker = await ask(node, 32, 4, resources=[{**own, "configuration_keys": ["num.partitions"]}])
    assert [c.name for c in broker.results[0].configs] == ["num.partitions"]
    foreign = {"resource_type": 4, "resource_name": "999", "configuration_keys": None}
    refused = await ask(node, 32, 4, resources=[foreign])
    assert refused.results[0].error_code == 42
    odd = {"name": "retention.ms", "config_operation": 9, "value": "1"}
    altered = await ask(node, 44, 1, resources=[{**resource, "configs": [change, odd]}])
    assert altered.responses[0].error_code == 42, "nothing of it is done in silence"


async def test_an_election_of_no_known_type_is_refused(cluster: MetadataCluster) -> None:
    answer = await ask(cluster.follower(), 43, 2, election_type=9, topic_partitions=None)
    assert answer.error_code == 42


async def test_without_a_majority_requests_end_with_a_clear_refusal(
    cluster: MetadataCluster,
) -> None:
    survivor = cluster.follower()
    for node_id in [id_ for id_, node in cluster.nodes.items() if node is not survivor]:
        await cluster.kill(node_id)
    message = codec.build_request(19, 7, topics=[{"name": "t"}], timeout=1_000)
    with pytest.raises(ControllerUnavailableError, match="no active controller"):
        await survivor.plane.controller.submit(19, 7, message, timeout_ms=500)


async def test_one_node_is_a_quorum_and_remembers_across_restarts(tmp_path: Path) -> None:
    alone = MetadataCluster(tmp_path, 1)
    await alone.start_all()
    await create(alone.nodes[101], "t", factor=1)
    await alone.kill(101)
    await alone.start(101)
    await asyncio.wait_for(alone.nodes[101].plane.lifecycle.wait_unfenced(), timeout=TIMEOUT_S)
    assert set(alone.nodes[101].plane.metadata.image.topics) == {"t"}
    await alone.stop_all()


async def test_restart_begins_with_the_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.controller.snapshot_generator.RECORDS_BETWEEN_MIN", 50)
    alone = MetadataCluster(tmp_path, 1)
    await alone.start_all()
    await create(alone.nodes[101], "t", partitions=100, factor=1)
    files = alone.nodes[101].plane.quorum.log.snapshots
    await until(lambda: len(files.ids()) == 1)
    (snapshot,) = files.ids()
    await create(alone.nodes[101], "later", factor=1)
    before = {name: t.topic_id for name, t in image_of(alone.nodes[101]).topics.items()}
    await alone.kill(101)
    node = alone.nodes[101] = MetadataNode(alone.configs[101])
    restored = node.plane.metadata.image
    assert restored.offset == snapshot.end_offset - 1
    assert set(restored.topics) == {"t"}
    await node.start()
    await asyncio.wait_for(node.plane.lifecycle.wait_unfenced(), timeout=TIMEOUT_S)
    assert {name: t.topic_id for name, t in image_of(node).topics.items()} == before
    await alone.stop_all()


async def test_node_that_was_away_for_long_gets_the_snapshot_from_the_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_prepare = threading.Event()
    prepare = ControllerChannel.prepare_snapshot

    def prepare_late(self: ControllerChannel, snapshot: Snapshot) -> Callable[[], None]:
        assert may_prepare.wait(TIMEOUT_S)
        return prepare(self, snapshot)

    monkeypatch.setattr(ControllerChannel, "prepare_snapshot", prepare_late)
    monkeypatch.setattr("broker.controller.snapshot_generator.RECORDS_BETWEEN_MIN", 30)
    cluster = MetadataCluster(tmp_path, 3)
    with nothing_forced_on_the_loop() as forced:
        await cluster.start_all()
        away = cluster.follower().config.node_id
        await cluster.kill(away)
        active = cluster.nodes[cluster.controller_id]
        before = image_of(active).offset

        def have_snapshots(count: int) -> bool:
            return all(
                len(node.plane.quorum.log.snapshots.ids()) == count
                for node in cluster.nodes.values()
            )

        # Each topic has more records than the snapshot before it, so each leads to the next one.
        for n in range(2):
            await create(active, f"t{n}", partitions=60 * 2**n, factor=1)
            await until(lambda count=n + 1: have_snapshots(count))  # type: ignore[misc]
        await until(lambda: active.plane.quorum.log.start_offset > before + 1)
        await cluster.start(away)
        returned = cluster.nodes[away].plane
        await until(lambda: returned.quorum._installer.is_busy)
        # What is committed while the snapshot is taken in comes after it.
        await create(active, "meanwhile", factor=1)
        await until(lambda: returned.quorum.log.end_offset > image_of(active).offset)
        assert image_of(cluster.nodes[away]).topics == {}
        may_prepare.set()
        await until(lambda: set(image_of(cluster.nodes[away]).topics) == {"t0", "t1", "meanwhile"})
        assert returned.quorum.log.start_offset > before + 1
        await asyncio.wait_for(returned.lifecycle.wait_unfenced(), timeout=WAIT_S)
        await cluster.stop_all()
    assert any(name.endswith(".checkpoint.part") for name in forced)
