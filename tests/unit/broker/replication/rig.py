"""Several nodes' replicas in one process: real logs, real codecs, real handlers; only sockets and
the controller are replaced (a channel that calls the other node, and an image set by the test).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID

from broker.clock import Clock, SystemClock
from broker.config.broker_config import BrokerConfig
from broker.handlers.k01_fetch import handle_fetch
from broker.handlers.services import NodeServices, Request
from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.log_validator import AppendInfo
from broker.metadata.image import (
    BrokerImage,
    ConfigResource,
    ImageDelta,
    MetadataImage,
    PartitionImage,
    TopicImage,
    broker_resource,
    topic_resource,
)
from broker.metadata.metadata_service import MetadataService
from broker.metadata.records import BrokerEndpoint
from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch, iter_batch_headers, iter_records
from broker.protocol.request_context import RequestContext
from broker.replication.partition.partition import Partition
from broker.replication.ports import AlterPartitionPort
from broker.replication.replica_manager import ReplicaManager

CLUSTER_ID = "replication-rig"


def records(*values: str, **batch: Any) -> bytes:
    """A batch of these values."""
    now_ms = SystemClock().wall_ms()
    new = [NewRecord(key=None, value=v.encode(), timestamp=now_ms, headers=()) for v in values]
    return build_batch(new, **batch)


def values(partition: Partition) -> list[str]:
    """Every record of a replica's log."""
    raw = partition.log.read_bytes(
        partition.log.log_start_offset, max_bytes=2**30, max_offset=partition.log.log_end_offset
    )
    found = []
    for header, position in iter_batch_headers(raw):
        batch = raw[position : position + header.size_bytes]
        found += [(record.value or b"").decode() for record in iter_records(batch)]
    return found


class Configs:
    """Configs straight from the image."""

    def __init__(self, metadata: MetadataService, node_id: int) -> None:
        self._metadata = metadata
        self._node_id = node_id

    def topic(self, topic: str) -> Mapping[str, str]:
        return self._metadata.image.config(topic_resource(topic))

    def broker(self) -> Mapping[str, str]:
        return self._metadata.image.config(broker_resource(self._node_id))


class Slot:
    """Collects one response."""

    def __init__(self, on_response: Callable[[bytes], None]) -> None:
        self._on_response = on_response

    def complete(self, parts: Sequence[Any]) -> None:
        frame = b"".join(
            part if isinstance(part, bytes | bytearray | memoryview) else part.read()
            for part in parts
        )
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        self._on_response(frame[4:])

    def hold(self, size_bytes: int) -> None:
        assert size_bytes >= 0

    def when_gone(self, callback: Callable[[], None]) -> None:
        """Nobody goes in the rig."""

    def throttle(self, time_ms: int) -> None:
        raise AssertionError(f"there are no quotas: {time_ms} ms")

    def no_response(self) -> None:
        raise AssertionError("a fetch is always answered")

    def close_connection(self, reason: str) -> None:
        raise AssertionError(f"a fetch is always answered: {reason}")


class Channel:
    """One node's way to another; a message takes a turn of the loop."""

    def __init__(self, rig: "Rig", source: int, target: int) -> None:
        self._rig = rig
        self._link = (source, target)
        self._is_closed = False

    async def submit(
        self,
        build: Callable[[int], Sequence[bytes | memoryview]],
        on_response: Callable[[Any], None],
        *,
        timeout_s: float = 5.0,
    ) -> None:
        await asyncio.sleep(0)
        if self._rig.is_cut(self._link):
            raise ConnectionError("the link is cut")
        frame = b"".join(build(1))
        self._rig.requests += 1
        self._rig.request_bytes += len(frame)
        loop = asyncio.get_running_loop()

        def respond(payload: bytes) -> None:
            self._rig.response_bytes += len(payload)
            outcome: Any = memoryview(payload)
            if self._rig.is_cut(self._link):
                outcome = ConnectionError("the link was cut")
            if self._rig.held is None:
                loop.call_soon(arrive, outcome)
            else:
                self._rig.held.append(lambda: arrive(outcome))

        def arrive(outcome: Any) -> None:
            if not self._is_closed:  # Whoever was killed meanwhile hears nothing.
                on_response(outcome)

        loop.call_soon(self._deliver, frame[4:], respond)

    def _deliver(self, frame: bytes, respond: Callable[[bytes], None]) -> None:
        node = self._rig.nodes.get(self._link[1])
        if node is None:
            return
        request = Request(codec.decode_header(frame), memoryview(frame), INFO)
        handle_fetch(request, node.services, Slot(respond))

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.sleep(0)


INFO = RequestContext(listener_name="PLAINTEXT", client_host="rig")


@dataclass(slots=True)
class Node:
    """One broker of the rig."""

    logs: LogManager
    metadata: MetadataService
    replicas: ReplicaManager
    services: NodeServices

    def partition(self, topic: str = "t", partition: int = 0) -> Partition:
        """A replica that must be here."""
        found = self.replicas.partition(topic, partition)
        assert found is not None
        return found

    async def append(self, *new: str, acks: int = -1, timeout_ms: int = 30_000) -> AppendInfo:
        """Append to t-0 here."""
        return await self.replicas.append_and_wait(
            "t", 0, records(*new), acks=acks, timeout_ms=timeout_ms
        )


class Rig:
    """Nodes 1..n and a controller that accepts every valid ISR."""

    clock: Clock = SystemClock()

    def __init__(self, directory: Path, *, nodes: int = 3, **properties: str) -> None:
        self._directory = directory
        self._properties = properties
        self.image = MetadataImage(cluster_id=CLUSTER_ID, offset=0)
        self.nodes: dict[int, Node] = {}
        self.cut: set[frozenset[int]] = set()
        self.held: list[Callable[[], None]] | None = None
        self.requests = self.request_bytes = self.response_bytes = 0
        self.isr_answer = self.isr_requests = 0
        self.isr_request_partitions: list[int] = []
        brokers = {n: _broker(n) for n in range(1, nodes + 1)}
        self.image = replace(self.image, brokers=MappingProxyType(brokers))
        for node_id in brokers:
            self.start_node(node_id)

    def is_cut(self, link: tuple[int, int]) -> bool:
        """Whether two nodes cannot talk, or one of them is down."""
        return frozenset(link) in self.cut or not set(link) <= self.nodes.keys()

    def hold(self) -> None:
        """Answers stay on the wire from now on."""
        self.held = self.held or []

    def release(self) -> None:
        """They arrive, in their order, and so do later ones."""
        arriving, self.held = self.held or [], None
        for arrive in arriving:
            arrive()

    def start_node(self, node_id: int) -> None:
        """Open a node over its directory."""
        directory = self._directory / str(node_id)
        directory.mkdir(exist_ok=True)
        config = BrokerConfig.from_properties(
            {
                "node.id": str(node_id),
                "cluster.id": CLUSTER_ID,
                "listeners": f"PLAINTEXT://127.0.0.1:{node_id},CONTROLLER://127.0.0.1:1{node_id}",
                "controller.quorum.voters": f"{node_id}@127.0.0.1:1{node_id}",
                "log.dirs": str(directory),
                "replica.fetch.backoff.ms": "40",
                **{name.replace("_", "."): value for name, value in self._properties.items()},
            }
        )
        clock = self.clock
        logs = LogManager.open(
            str(directory),
            node_id=node_id,
            cluster_id=CLUSTER_ID,
            clock=clock,
            defaults=LogConfig(),
        )
        metadata = MetadataService(node_id=node_id, cluster_id=CLUSTER_ID)
        replicas = ReplicaManager(
            config=config,
            clock=clock,
            logs=logs,
            metadata=metadata,
            configs=Configs(metadata, node_id),
            controller=self.controller(node_id),
            connect=lambda to: Channel(self, node_id, to.port),
        )
        absent: dict[str, Any] = dict.fromkeys(
            ("controller", "groups", "producer_ids", "transactions")
        )
        services = NodeServices(
            config=config, clock=clock, metadata=metadata, replicas=replicas, logs=logs, **absent
        )
        metadata.publish(SimpleNamespace(image=self.image, changed=ImageDelta()))  # type: ignore[arg-type]
        self.nodes[node_id] = Node(logs, metadata, replicas, services)
        replicas.start()

    def controller(self, node_id: int) -> AlterPartitionPort:
        """A node's way to the controller."""
        return Controller(self, node_id)

    async def stop_node(self, node_id: int, *, clean: bool = True) -> None:
        """Close a node; unclean leaves its files as a kill would."""
        node = self.nodes.pop(node_id)
        await node.replicas.close()
        node.logs.shutdown(clean)

    async def close(self) -> None:
        """Check every partition's invariants and end."""
        for node in self.nodes.values():
            for partition in node.replicas.partitions():
                partition.state.check_invariants()
        for node_id in list(self.nodes):
            await self.stop_node(node_id)

    # The image ---------------------------------------------------------------------------

    def publish(self, image: MetadataImage, changed: ImageDelta) -> None:
        """Every node replays it."""
        self.image = image
        for node in self.nodes.values():
            node.metadata.publish(SimpleNamespace(image=image, changed=changed))  # type: ignore[arg-type]

    def create(
        self, *replicas: int, topic: str = "t", partitions: int = 1, **configs: str
    ) -> TopicImage:
        """A topic whose partitions all have these replicas, the first one leading."""
        topic_id = UUID(int=len(self.image.topics_by_id) + 1000 + self.image.offset)
        images = {
            number: PartitionImage(
                topic_id=topic_id,
                topic=topic,
                partition=number,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
            )
            for number in range(partitions)
        }
        created = TopicImage(name=topic, topic_id=topic_id, partitions=MappingProxyType(images))
        self.configure(topic_resource(topic), **configs)
        self._put(created, frozenset((topic, number) for number in images))
        return created

    def _put(self, topic: TopicImage, changed: frozenset[tuple[str, int]]) -> None:
        image = replace(
            self.image,
            offset=self.image.offset + 1,
            topics=MappingProxyType({**self.image.topics, topic.name: topic}),
            topics_by_id=MappingProxyType({**self.image.topics_by_id, topic.topic_id: topic}),
        )
        delta = ImageDelta(topics_changed=frozenset({topic.name}), partitions_changed=changed)
        self.publish(image, delta)

    def delete(self, name: str) -> None:
        """Delete a topic."""
        topic = self.image.topics[name]
        image = replace(
            self.image,
            topics=MappingProxyType({k: v for k, v in self.image.topics.items() if k != name}),
            topics_by_id=MappingProxyType(
                {k: v for k, v in self.image.topics_by_id.items() if k != topic.topic_id}
            ),
        )
        self.publish(image, ImageDelta(topics_deleted=(topic,)))

    def change(self, topic: str = "t", partition: int = 0, **changes: Any) -> PartitionImage:
        """A new state of a partition; a new leader raises the leader epoch."""
        old = self.image.topics[topic]
        before = old.partitions[partition]
        if "leader" in changes:
            changes.setdefault("leader_epoch", before.leader_epoch + 1)
        after = replace(before, partition_epoch=before.partition_epoch + 1, **changes)
        partitions = MappingProxyType({**old.partitions, partition: after})
        self._put(replace(old, partitions=partitions), frozenset({(topic, partition)}))
        return after

    def configure(self, resource: ConfigResource, **configs: str) -> None:
        """Set configs; underscores stand for dots."""
        named = {name.replace("_", "."): value for name, value in configs.items()}
        image = replace(
            self.image, configs=MappingProxyType({**self.image.configs, resource: named})
        )
        self.publish(image, ImageDelta(configs_changed=frozenset({resource})))

    def set_broker(self, node_id: int, **changes: Any) -> None:
        """Fence, unfence or re-register a broker."""
        broker = replace(self.image.brokers[node_id], **changes)
        brokers = MappingProxyType({**self.image.brokers, node_id: broker})
        delta = ImageDelta(brokers_changed=frozenset({node_id}))
        self.publish(replace(self.image, brokers=brokers), delta)


def _broker(node_id: int) -> BrokerImage:
    return BrokerImage(
        id=node_id,
        epoch=100 + node_id,
        endpoints=(BrokerEndpoint(name="PLAINTEXT", host="rig", port=node_id),),
        rack=None,
        fenced=False,
        incarnation_id=UUID(int=node_id),
    )


class Controller:
    """Answers AlterPartition out of the rig's image."""

    def __init__(self, rig: Rig, node_id: int) -> None:
        self._rig = rig
        self._node_id = node_id

    async def submit(self, api_key: int, api_version: int, message: Any, *, lane: str) -> Any:
        assert api_key == 56
        self._rig.isr_requests += 1
        self._rig.isr_request_partitions.append(sum(len(t.partitions) for t in message.topics))
        await asyncio.sleep(0.001)
        topics = [
            {"topic_id": topic.topic_id, "partitions": [self._alter(topic.topic_id, p)]}
            for topic in message.topics
            for p in topic.partitions
        ]
        return codec.build_response(56, api_version, error_code=0, topics=topics)

    def _alter(self, topic_id: UUID, asked: Any) -> dict[str, Any]:
        topic = self._rig.image.topics_by_id.get(topic_id)
        if topic is None:
            return {"partition_index": asked.partition_index, "error_code": 100}
        partition = topic.partitions[asked.partition_index]
        if self._rig.isr_answer:
            return {"partition_index": partition.partition, "error_code": self._rig.isr_answer}
        if asked.leader_epoch != partition.leader_epoch:
            return {"partition_index": partition.partition, "error_code": 74}
        if asked.partition_epoch != partition.partition_epoch:
            return {"partition_index": partition.partition, "error_code": 95}
        isr = tuple(member.broker_id for member in asked.new_isr_with_epochs)
        after = self._rig.change(topic.name, partition.partition, isr=isr)
        return {
            "partition_index": partition.partition,
            "error_code": 0,
            "leader_id": after.leader,
            "leader_epoch": after.leader_epoch,
            "isr": isr,
            "leader_recovery_state": 0,
            "partition_epoch": after.partition_epoch,
        }
