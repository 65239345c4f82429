"""Nodes with two listeners: each client is told the addresses of the one that it came through."""

import asyncio
from pathlib import Path
from typing import Any

from broker.protocol import codec
from tests.support.ports import free_ports
from tests.support.wire import ask
from tests.unit.broker.server.nodes import create_topic, parts, running, until


async def brokers_at(port: int) -> dict[int, tuple[str, int]]:
    """Addresses by broker id, as a client there is told."""
    request = codec.build_request(3, 12, topics=None)
    told: Any = await asyncio.to_thread(ask, f"127.0.0.1:{port}", 3, 12, request)
    return {it.node_id: (it.host, it.port) for it in told.brokers}


async def test_clients_inside_and_outside_are_told_their_own_addresses(tmp_path: Path) -> None:
    inside, outside, controller = free_ports(3)
    properties = {
        "listeners": f"INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside},"
        f"CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"INSIDE://127.0.0.1:{inside},OUTSIDE://kafka.example:39092",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "controller.quorum.voters": f"101@127.0.0.1:{controller}",
    }
    async with running(tmp_path, 1, **properties) as nodes:
        assert await brokers_at(inside) == {101: ("127.0.0.1", inside)}
        assert await brokers_at(outside) == {101: ("kafka.example", 39092)}
        assert nodes[0].address == f"127.0.0.1:{inside}"
        await create_topic(nodes, "orders")


async def test_limits_hold_for_all_listeners_together(tmp_path: Path) -> None:
    first, second, controller = free_ports(3)
    properties = {
        "listeners": f"A://127.0.0.1:{first},B://127.0.0.1:{second},"
        f"CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
        "inter.broker.listener.name": "A",
        "controller.quorum.voters": f"101@127.0.0.1:{controller}",
        "max.connections": "2",
    }
    async with running(tmp_path, 1, **properties) as nodes:
        (node,) = nodes
        servers = parts(node).client_listeners
        opened = [await asyncio.open_connection("127.0.0.1", port) for port in (first, second)]
        await until(lambda: len(servers.connections) == len(opened))
        reader, third = await asyncio.open_connection("127.0.0.1", second)
        third.write(
            codec.encode_request(codec.build_request(18, 0), correlation_id=1, client_id="x")
        )
        assert await reader.read() == b""
        for _, writer in (*opened, (reader, third)):
            writer.close()
