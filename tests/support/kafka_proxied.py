"""Real Kafka of which one node is reached through a proxy of ours, which can be slow."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from tests.support.kafka_oracle import KafkaCluster
from tests.support.ports import free_ports

PROXIED: Final = 103
_CHUNK_BYTES: Final = 1 << 16


@dataclass
class ProxiedKafka(KafkaCluster):
    """Clients are sent to ``proxy_port`` for node 103; the nodes among themselves are not."""

    internal_ports: dict[int, int] = field(default_factory=dict)
    proxy_port: int = 0

    def properties(self, node_id: int) -> dict[str, str]:
        """With a listener for the other nodes."""
        internal = self.internal_ports.setdefault(node_id, free_ports(1)[0])
        self.proxy_port = self.proxy_port or free_ports(1)[0]
        own: Mapping[str, str] = super().properties(node_id)
        client = self.proxy_port if node_id == PROXIED else self.ports[node_id]
        between = f"BETWEEN://127.0.0.1:{internal}"
        return {
            **own,
            "listeners": f"{own['listeners']},{between}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{client},{between}",
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,BETWEEN:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "inter.broker.listener.name": "BETWEEN",
        }


class LoopbackProxy:
    """Forwards a port to another; what comes back may be late. An async context manager."""

    def __init__(self, port: int, target: int) -> None:
        self.delay_s = 0.0
        """Of everything that the target answers from now on."""
        self._port = port
        self._target = target
        self._server: asyncio.Server | None = None
        self._pipes: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for pipe in self._pipes:
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        self._pipe(reader, there[1], is_answer=False)
        self._pipe(there[0], writer, is_answer=True)

    def _pipe(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        task = asyncio.create_task(self._forward(reader, writer, is_answer=is_answer))
        self._pipes.add(task)
        task.add_done_callback(self._pipes.discard)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        try:
            while chunk := await reader.read(_CHUNK_BYTES):
                if is_answer and self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(chunk)
                await writer.drain()
        except OSError:
            return
        finally:
            writer.close()
