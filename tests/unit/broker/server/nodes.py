"""Whole nodes in the test's own process: real sockets, real disks, a quorum of the first one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from broker.config.broker_config import BrokerConfig
from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from broker.server.node import Node
from tests.support.loop_disk import nothing_forced_on_the_loop
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports
from tests.support.wire import ask


def new_nodes(directory: Path, count: int = 1, **properties: str) -> list[Node]:
    """Nodes 101, 102, … with their data in directories of these names; not started."""
    controller, *clients = free_ports(1 + count)
    nodes = []
    for node_id, client in enumerate(clients, 101):
        listeners = f"PLAINTEXT://127.0.0.1:{client}"
        if node_id == 101:
            listeners += f",CONTROLLER://127.0.0.1:{controller}"
        config = {
            "process.roles": "broker,controller" if node_id == 101 else "broker",
            "node.id": str(node_id),
            "cluster.id": "in-one-process",
            "listeners": listeners,
            "controller.quorum.voters": f"101@127.0.0.1:{controller}",
            "log.dirs": str(directory / str(node_id)),
            "partiscope.metrics.enable": "false",
        }
        named = {name.replace("_", "."): value for name, value in properties.items()}
        nodes.append(Node(BrokerConfig.from_properties(config | named)))
    return nodes


@asynccontextmanager
async def running(directory: Path, count: int = 1, **properties: str) -> AsyncIterator[list[Node]]:
    """All of them started; stopped in the end."""
    nodes = new_nodes(directory, count, **properties)
    with nothing_forced_on_the_loop():
        try:
            for node in nodes:
                await node.start(asyncio.Event())
            yield nodes
        finally:
            for node in reversed(nodes):
                await node.stop()


def parts(node: Node) -> Any:
    assert node._parts is not None
    return node._parts


def replica(node: Node, topic: str) -> Any:
    """The node's replica of partition 0."""
    return parts(node).replicas.partition(topic, 0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.02)


async def create_topic(nodes: list[Node], name: str, **configs: str) -> None:
    """One partition, a replica on each node, led by the first."""
    named = [{"name": key.replace("_", "."), "value": v} for key, v in configs.items()]
    ids = [node.config.node_id for node in nodes]
    topic = {
        "name": name,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [{"partition_index": 0, "broker_ids": ids}],
        "configs": [{"name": "min.insync.replicas", "value": "1"}, *named],
    }
    message = codec.build_request(19, 7, topics=[topic], timeout=5000)
    answer = await request(nodes[0], 19, 7, message)
    assert answer.topics[0].error_code == 0, answer
    await until(lambda: all(replica(node, name) is not None for node in nodes))
    await until(lambda: replica(nodes[0], name).state.is_leader)


async def produce(node: Node, name: str, value: bytes, acks: int = -1) -> Any:
    """One record, appended by the node itself."""
    batch = build_batch([NewRecord(value=value, timestamp=1)])
    replicas = parts(node).replicas
    return await replicas.append_and_wait(name, 0, batch, acks=acks)


async def request(node: Node, api_key: int, version: int, message: Any) -> Any:
    """One request of a client over a connection of its own."""
    return await asyncio.to_thread(ask, node.address, api_key, version, message)


async def fetch(node: Node, *topics: str) -> dict[str, Any]:
    """The answer to a consumer's fetch from offset 0, by topic."""
    asked = [
        {
            "topic": name,
            "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}],
        }
        for name in topics
    ]
    message = codec.build_request(1, 11, topics=asked, max_wait=1000, min_bytes=1)
    answer = await request(node, 1, 11, message)
    return {str(each.topic): each.partitions[0] for each in answer.responses}
