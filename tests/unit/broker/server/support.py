"""A listener with handlers of every kind, for tests that speak to real sockets."""

import asyncio
import os
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from broker.clock import SystemClock
from broker.handlers.registry import Api, HandlerKind, HandlerRegistry
from broker.handlers.services import Listener, NodeServices, Request, ResponseSlot
from broker.metadata.records import BrokerEndpoint
from broker.protocol import codec
from broker.protocol.frames import RequestMemory
from broker.server.listener import ListenerServer
from broker.server.listener_context import ListenerContext
from tests.support.patience import WAIT_S

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
PLAIN, TASK, SLOT, BROKEN = 60, 19, 1, 3
API_VERSIONS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A range of a file."""

    fd: int
    position: int
    size_bytes: int

    def handle_unreadable(self, error: OSError) -> None:
        """No test has one that is."""
        raise error


@dataclass
class Handlers:
    """What the handlers were asked, and the slots that wait."""

    slots: list[ResponseSlot] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    slot_count: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    def plain(self, request: Request, node: NodeServices) -> Any:
        self.asked.append(f"plain {request.correlation_id}")
        return codec.build_response(PLAIN, request.api_version, cluster_id="c")

    async def task(self, request: Request, node: NodeServices) -> Any:
        self.asked.append(f"task {request.correlation_id}")
        await self.gate.wait()
        return codec.build_response(TASK, request.api_version)

    def slot(self, request: Request, node: NodeServices, slot: ResponseSlot) -> None:
        self.asked.append(f"slot {request.correlation_id}")
        self.slots.append(slot)
        self.slot_count.release()

    async def wait_for_slots(self, count: int) -> None:
        """Until that many more slots were taken."""
        for _ in range(count):
            await asyncio.wait_for(self.slot_count.acquire(), WAIT_S)

    def broken(self, request: Request, node: NodeServices) -> Any:
        raise ZeroDivisionError

    def registry(self) -> HandlerRegistry:
        """All of them, ApiVersions too."""
        from broker.handlers.k18_api_versions import handle_api_versions

        kinds: list[tuple[int, int, Any, HandlerKind]] = [
            (API_VERSIONS, 4, handle_api_versions, HandlerKind.PLAIN),
            (PLAIN, 1, self.plain, HandlerKind.PLAIN),
            (TASK, 7, self.task, HandlerKind.TASK),
            (SLOT, 4, self.slot, HandlerKind.SLOT),
            (BROKEN, 12, self.broken, HandlerKind.PLAIN),
        ]
        return HandlerRegistry(
            Api(
                api_key=key,
                version_min=0,
                version_max=version,
                advertised_min=0,
                listener=Listener.BOTH,
                handler=handler,
                kind=kind,
            )
            for key, version, handler, kind in kinds
        )


def services() -> NodeServices:
    """A node without any room behind it."""
    names = "config metadata controller replicas logs groups producer_ids transactions"
    nothing: dict[str, Any] = dict.fromkeys(names.split())
    return NodeServices(clock=SystemClock(), **nothing)


@asynccontextmanager
async def listening(
    handlers: Handlers,
    *,
    frame_bytes_max: int = 1_000_000,
    connections_max: int = 100,
    connections_idle_ms_max: int = 600_000,
    memory: RequestMemory | None = None,
    reserve: int = 0,
) -> AsyncIterator[ListenerServer]:
    """A listener on a free port."""
    context = ListenerContext(
        listener_name="PLAINTEXT",
        registry=handlers.registry(),
        node=services(),
        connections_max=lambda: connections_max,
        frame_bytes_max=frame_bytes_max,
        memory=memory or RequestMemory(),
        reserve=reserve,
        is_peer=lambda frame: codec.decode_header(frame).client_id == "broker-1",
    )
    endpoint = BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=0)
    server = ListenerServer((endpoint,), context, connections_idle_ms_max=connections_idle_ms_max)
    await server.bind()
    await server.serve()
    try:
        yield server
    finally:
        handlers.gate.set()
        await server.close()
        await asyncio.sleep(0)


@asynccontextmanager
async def connected(server: ListenerServer) -> AsyncIterator[Streams]:
    """A client connection, closed at the end whatever happened."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def request_frame(
    api_key: int, version: int, correlation_id: int, client_id: str = "t", **values: object
) -> bytes:
    """A request on the wire."""
    message = codec.build_request(api_key, version, **values)
    return codec.encode_request(message, correlation_id=correlation_id, client_id=client_id)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """One response without its size."""
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def temporary_file(content: bytes, path: str) -> int:
    """An open file that holds `content`."""
    with open(path, "wb") as file:
        file.write(content)
    return os.open(path, os.O_RDONLY)


async def is_served(server: ListenerServer) -> bool:
    """Whether another client gets answers, by when the server has read what others had sent."""
    async with connected(server) as (reader, writer):
        for number in range(5):
            writer.write(request_frame(API_VERSIONS, 0, number))
            answer = await asyncio.wait_for(read_frame(reader), WAIT_S)
            if answer[:4] != struct.pack(">i", number):
                return False
    return True
