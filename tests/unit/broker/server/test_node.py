"""A node as its process runs it: what ends it, and what it says then."""

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from broker.config import BrokerConfig
from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from broker.server.main import EXIT_FAILED, _serve
from broker.server.node import Node
from tests.support.faulty_disk import FaultyDisk
from tests.support.ports import free_ports

NODE_ID: Final = 101
WAIT_S: Final = 20


def new_node(directory: Path) -> Node:
    client, controller = free_ports(2)
    return Node(
        BrokerConfig.from_properties(
            {
                "node.id": str(NODE_ID),
                "cluster.id": "alone",
                "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
                "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{controller}",
                "log.dirs": str(directory),
                "partiscope.metrics.enable": "false",
            }
        )
    )


def services(node: Node) -> Any:
    assert node._parts is not None
    return node._parts.services


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.02)


async def create_topic(node: Node, name: str, **configs: str) -> None:
    named = [{"name": key.replace("_", "."), "value": v} for key, v in configs.items()]
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": named}
    message = codec.build_request(19, 7, topics=[topic], timeout=5000)
    answer = await services(node).controller.submit(19, 7, message)
    assert answer.topics[0].error_code == 0
    await until(lambda: services(node).replicas.partition(name, 0) is not None)


async def produce(node: Node, name: str, value: bytes) -> Any:
    batch = build_batch([NewRecord(value=value, timestamp=1)])
    return await services(node).replicas.append_and_wait(name, 0, batch)


async def test_a_failed_fsync_ends_the_process_and_nothing_acknowledged_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    node = new_node(tmp_path / "data")
    serving = asyncio.create_task(_serve(node))
    await until(lambda: "ready" in capsys.readouterr().out)
    await create_topic(node, "orders", min_insync_replicas="1", flush_ms="1")
    with FaultyDisk(tmp_path / "data" / "orders-0", errno.EIO, calls={"fsync"}) as disk:
        assert (await produce(node, "orders", b"kept")).error is None
        assert await asyncio.wait_for(serving, WAIT_S) == EXIT_FAILED
    assert disk.met
    assert "Forcing" in caplog.messages[-1]
    assert "Check the disk" in caplog.messages[-1]

    again = new_node(tmp_path / "data")
    await again.start(asyncio.Event())
    assert not services(again).logs.was_clean
    await until(lambda: services(again).replicas.partition("orders", 0) is not None)
    log = services(again).replicas.partition("orders", 0).log
    assert b"kept" in log.read_bytes(0, max_bytes=1 << 20, max_offset=log.log_end_offset)
    await again.stop()
