"""Clients that are slow, silent, do not read or flood cost bounded memory and hold nobody up.

A half-open connection, whose client is gone without a word, is a silent one to the broker.
"""

import asyncio
import struct
import weakref
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from broker.handlers.services import NodeServices, Request, ResponseSlot
from broker.protocol import codec
from broker.protocol.frames import FRAME_BYTES_MAX, RequestMemory
from broker.server import listener
from broker.server.listener import ListenerServer
from broker.server.response_queue import (
    HELD_BYTES_MAX,
    QUEUED_BYTES_MAX,
    RESPONSES_QUEUED_MAX,
)
from tests.support.settle import until
from tests.unit.broker.server.support import (
    PLAIN,
    SLOT,
    TASK,
    Handlers,
    Streams,
    connected,
    is_served,
    listening,
    read_frame,
    request_frame,
)

IDLE_MS = 150


@pytest.fixture(autouse=True)
def _often_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "IDLE_CHECK_MS", 20)


def resident_bytes() -> int:
    """Memory of this process that is really there."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class LargeAnswers(Handlers):
    """PLAIN answers with 30 kB."""

    def plain(self, request: Request, node: NodeServices) -> Any:
        self.asked.append(f"plain {request.correlation_id}")
        return codec.build_response(PLAIN, request.api_version, cluster_id="c" * 30_000)


@pytest.fixture
async def idle_server() -> AsyncIterator[ListenerServer]:
    """A listener that ends connections idle for `IDLE_MS`."""
    async with listening(LargeAnswers(), connections_idle_ms_max=IDLE_MS) as server:
        yield server


async def assert_ended_as_idle(server: ListenerServer, streams: Streams) -> None:
    (connection,) = server.connections
    await until(lambda: connection not in server.connections)
    assert connection._receive.capacity_bytes == 0
    assert await is_served(server)


async def test_a_silent_client_is_ended(idle_server: ListenerServer) -> None:
    async with connected(idle_server) as streams:
        await until(lambda: idle_server.connections)
        await assert_ended_as_idle(idle_server, streams)
        assert await streams[0].read() == b""


async def test_a_client_that_stops_inside_a_frame_is_ended(idle_server: ListenerServer) -> None:
    async with connected(idle_server) as streams:
        streams[1].write(request_frame(PLAIN, 0, 1)[:-1])
        await until(lambda: idle_server.connections)
        await assert_ended_as_idle(idle_server, streams)


async def test_a_client_that_never_reads_is_ended_with_what_waits_for_it(
    idle_server: ListenerServer,
) -> None:
    async with connected(idle_server) as streams:
        streams[0]._transport.pause_reading()  # type: ignore[attr-defined]  # the kernel's buffers fill
        streams[1].write(b"".join(request_frame(PLAIN, 0, number) for number in range(2_000)))
        await until(lambda: idle_server.connections)
        await assert_ended_as_idle(idle_server, streams)


async def test_a_client_that_sends_byte_by_byte_is_answered_and_holds_nobody_up() -> None:
    async with listening(Handlers()) as server, connected(server) as (reader, writer):
        frame = request_frame(PLAIN, 0, 5)
        for byte in frame[:-1]:
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(0)
        assert await is_served(server)
        writer.write(frame[-1:])
        assert (await read_frame(reader))[:4] == struct.pack(">i", 5)


async def test_a_promise_of_100_mb_takes_no_memory() -> None:
    async with listening(Handlers(), frame_bytes_max=FRAME_BYTES_MAX) as server:
        clients = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(40)]
        before = resident_bytes()
        for _, writer in clients:
            writer.write(struct.pack(">ih", FRAME_BYTES_MAX, PLAIN))
        await until(lambda: sum(each._receive.pending_bytes for each in server.connections) == 240)
        assert resident_bytes() - before < 40 << 20
        assert await is_served(server)
        for _, writer in clients:
            writer.close()


@pytest.mark.parametrize("api", [(PLAIN, 0), (SLOT, 4)])
async def test_of_a_flood_few_requests_are_handled_at_once(api: tuple[int, int]) -> None:
    handlers = LargeAnswers()
    async with (
        listening(handlers, frame_bytes_max=4 << 20) as server,
        connected(server) as (reader, writer),
    ):
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        # A long request first, so that the receive buffer takes many short ones at once.
        topics = [{"topic": "t" * 30_000, "partitions": []}] * 50
        long = codec.build_request(SLOT, 4, topics=topics)
        first = codec.encode_request(long, correlation_id=0, client_id="t")
        writer.write(first + b"".join(request_frame(*api, number) for number in range(60_000)))
        await until(lambda: len(handlers.asked) > 20)
        (connection,) = server.connections
        queue, handled = connection._queue, -1
        while handled != len(handlers.asked):
            handled = len(handlers.asked)
            assert await is_served(server)
            assert len(queue._slots) <= RESPONSES_QUEUED_MAX
            assert queue._queued_bytes <= QUEUED_BYTES_MAX + 31_000
        assert handled < 5_000
        assert await is_served(server)


class LargeWaits(Handlers):
    """SLOT holds 4 MiB until it is answered."""

    def slot(self, request: Request, node: NodeServices, slot: ResponseSlot) -> None:
        slot.hold(4 << 20)
        super().slot(request, node, slot)


async def test_of_requests_that_hold_much_while_they_wait_few_are_handled_at_once() -> None:
    handlers = LargeWaits()
    at_once = HELD_BYTES_MAX // (4 << 20)
    async with listening(handlers) as server, connected(server) as (reader, writer):
        writer.write(b"".join(request_frame(SLOT, 4, number) for number in range(20)))
        await handlers.wait_for_slots(at_once)
        assert await is_served(server)
        assert len(handlers.slots) == at_once
        for number in range(20):
            if number >= at_once:
                await handlers.wait_for_slots(1)
            handlers.slots[number].complete((struct.pack(">ii", 4, number),))
            assert await read_frame(reader) == struct.pack(">i", number)
        (connection,) = server.connections
        assert connection._queue.held_bytes == 0


async def test_half_requests_share_a_bounded_memory_and_hold_up_no_small_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listener, "MEMORY_CHECK_MS", 20)
    monkeypatch.setattr(listener, "SHORT_FRAME_MS_MAX", 600)
    frame_bytes, bytes_max = 4 << 20, 6 << 20
    handlers = Handlers()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            listening(handlers, frame_bytes_max=frame_bytes, memory=RequestMemory(bytes_max))
        )
        streams = [await stack.enter_async_context(connected(server)) for _ in range(12)]
        half = struct.pack(">i", frame_bytes) + bytes(frame_bytes // 2)
        for _, writer in streams:
            writer.write(half)
        await until(lambda: server.context.memory.is_short)
        assert server.context.memory.used_bytes <= bytes_max
        assert (
            sum(it._receive.capacity_bytes for it in server.connections) <= bytes_max + 13 * 65_536
        )
        assert await is_served(server)
        await until(lambda: not server.context.memory.is_short)
        assert "too slowly while memory was short" in caplog.text
        whole = request_frame(PLAIN, 0, 5)
        async with connected(server) as (reader, writer):
            writer.write(whole)
            assert (await read_frame(reader))[:4] == struct.pack(">i", 5)
    assert server.context.memory.used_bytes == 0


async def test_whoever_waits_for_memory_goes_on_when_it_is_given_back() -> None:
    handlers = Handlers()
    memory = RequestMemory(1 << 20)
    async with (
        listening(handlers, frame_bytes_max=4 << 20, memory=memory) as server,
        connected(server) as (_, first),
        connected(server) as (_, second),
    ):
        request = request_frame(SLOT, 4, 1)
        whole = struct.pack(">i", (1 << 20) - 4) + request[4:] + bytes((1 << 20) - len(request))
        first.write(whole[: 1 << 19])
        await until(lambda: memory.used_bytes == 1 << 20)
        second.write(whole)
        await until(lambda: memory.is_short)
        first.write(whole[1 << 19 :])
        await handlers.wait_for_slots(2)
    assert memory.used_bytes == 0
    assert not memory.is_short


async def test_a_request_that_waits_keeps_no_buffer() -> None:
    handlers = Handlers()
    async with listening(handlers) as server:
        async with connected(server) as (_, writer):
            writer.write(request_frame(TASK, 7, 1))
            await until(lambda: handlers.asked)
            (connection,) = server.connections
            kept = weakref.ref(connection._receive._readable)
        await until(lambda: not server.connections)
        await until(lambda: kept() is None)
        assert handlers.asked == ["task 1"]
        assert len(server.context.tasks) == 1, "it waits still"
