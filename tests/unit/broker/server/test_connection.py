"""Connections answer in order, in bounded memory, and end on nonsense without harm to others."""

import asyncio
import errno
import gc
import os
import struct
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from broker.handlers.services import NodeServices, Request
from broker.metadata.records import BrokerEndpoint
from broker.protocol import codec
from broker.protocol.frames import RequestMemory
from broker.server import listener
from broker.server.listener import ListenError, ListenerServer
from tests.support.patience import WAIT_S
from tests.support.settle import until
from tests.unit.broker.server.support import (
    BROKEN,
    PLAIN,
    SLOT,
    TASK,
    Handlers,
    Range,
    connected,
    is_served,
    listening,
    read_frame,
    request_frame,
    temporary_file,
)


async def correlation_ids(reader: asyncio.StreamReader, count: int) -> list[int]:
    return [int.from_bytes((await read_frame(reader))[:4], "big") for _ in range(count)]


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


async def assert_ended(reader: asyncio.StreamReader) -> None:
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(reader.readexactly(1), WAIT_S)


async def test_responses_keep_the_order_of_requests() -> None:
    handlers = Handlers()
    async with listening(handlers) as server, connected(server) as (reader, writer):
        writer.write(
            request_frame(SLOT, 4, 1) + request_frame(PLAIN, 0, 2) + request_frame(SLOT, 4, 3)
        )
        await handlers.wait_for_slots(2)
        assert handlers.asked == ["slot 1", "plain 2", "slot 3"]
        handlers.slots[1].complete((framed(struct.pack(">i", 3)),))
        handlers.slots[0].complete((framed(struct.pack(">i", 1)),))
        assert await correlation_ids(reader, 3) == [1, 2, 3]


async def test_a_throttled_client_is_not_read_and_then_answered() -> None:
    handlers, memory = Handlers(), RequestMemory()
    async with (
        listening(handlers, memory=memory) as server,
        connected(server) as (reader, writer),
        connected(server) as (held_reader, held_writer),
    ):
        held_writer.write(request_frame(SLOT, 4, 1))
        writer.write(request_frame(SLOT, 4, 2))
        await handlers.wait_for_slots(2)
        for slot, time_ms in zip(handlers.slots, (600_000, 100), strict=True):
            slot.throttle(time_ms)
            slot.complete((framed(struct.pack(">i", 0)),))
        await read_frame(held_reader)
        held_writer.write(struct.pack(">i", 900_000) + bytes(900_000))
        writer.write(request_frame(PLAIN, 0, 3))
        assert await is_served(server)
        assert memory.used_bytes == 0
        assert await asyncio.wait_for(correlation_ids(reader, 2), WAIT_S) == [0, 3]


async def test_a_connection_that_ended_holds_no_buffer_and_is_freed_at_once() -> None:
    """Without Python's cycle collector, which a broker runs seldom."""
    async with listening(Handlers()) as server:
        gc.disable()
        try:
            async with connected(server) as (reader, writer):
                writer.write(request_frame(PLAIN, 0, 1))
                await read_frame(reader)
                (connection,) = server.connections
            await until(lambda: not server.connections)
            assert connection._receive.capacity_bytes == 0
            kept = weakref.ref(connection)
            del connection
            await until(lambda: kept() is None)
        finally:
            gc.enable()


async def test_a_coroutine_handler_holds_later_requests_back() -> None:
    handlers = Handlers()
    async with listening(handlers) as server, connected(server) as (reader, writer):
        writer.write(request_frame(TASK, 7, 1) + request_frame(PLAIN, 0, 2))
        await until(lambda: handlers.asked)
        assert await is_served(server)
        assert handlers.asked == ["task 1"]
        writer.write(request_frame(PLAIN, 0, 3))
        handlers.gate.set()
        assert await correlation_ids(reader, 3) == [1, 2, 3]
        assert handlers.asked == ["task 1", "plain 2", "plain 3"]


async def test_the_first_request_of_a_kind_holds_up_only_its_own_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it needs is made in a thread; meanwhile others are answered, and its own order stays."""
    handlers, may_go = Handlers(), threading.Event()

    def prepare_slowly(api_key: int, api_version: int) -> None:
        assert may_go.wait(WAIT_S)
        prepare(api_key, api_version)

    prepare = codec.prepare
    async with (
        listening(handlers) as server,
        connected(server) as (reader, writer),
        connected(server) as (others_reader, others_writer),
    ):
        prepare(PLAIN, 0)
        monkeypatch.setattr(codec, "_prepared", {(PLAIN, 0)})
        monkeypatch.setattr(codec, "prepare", prepare_slowly)
        writer.write(
            request_frame(PLAIN, 0, 1) + request_frame(PLAIN, 1, 2) + request_frame(PLAIN, 0, 3)
        )
        assert await correlation_ids(reader, 1) == [1]
        others_writer.write(request_frame(PLAIN, 0, 7))
        assert await correlation_ids(others_reader, 1) == [7]
        may_go.set()
        assert await correlation_ids(reader, 2) == [2, 3]
        assert handlers.asked == ["plain 1", "plain 7", "plain 2", "plain 3"]


async def test_what_could_not_be_prepared_is_served_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(codec, "_prepared", set())
    monkeypatch.setattr(codec, "names_of", fail)
    async with listening(Handlers()) as server, connected(server) as (reader, writer):
        writer.write(request_frame(PLAIN, 0, 1) + request_frame(PLAIN, 0, 2))
        assert await correlation_ids(reader, 2) == [1, 2]


async def test_a_handler_outlives_its_client() -> None:
    handlers = Handlers()
    async with listening(handlers) as server:
        async with connected(server) as (_, writer):
            writer.write(request_frame(TASK, 7, 1))
            await until(lambda: handlers.asked)
        handlers.gate.set()
        await until(lambda: not server.context.tasks and not server.connections)


async def test_no_response_takes_no_bytes() -> None:
    handlers = Handlers()
    async with listening(handlers) as server, connected(server) as (reader, writer):
        writer.write(request_frame(SLOT, 4, 1) + request_frame(PLAIN, 0, 2))
        await handlers.wait_for_slots(1)
        handlers.slots[0].no_response()
        assert await correlation_ids(reader, 1) == [2]


class LongAnswers(Handlers):
    """PLAIN answers with 20 kB."""

    def plain(self, request: Request, node: NodeServices) -> Any:
        self.asked.append(f"plain {request.correlation_id}")
        return codec.build_response(PLAIN, request.api_version, cluster_id="c" * 20_000)


async def test_of_a_client_that_does_not_read_few_requests_are_handled_until_it_reads() -> None:
    handlers = LongAnswers()
    count = 3_000
    async with listening(handlers) as server, connected(server) as (reader, writer):
        # The first ones come in one piece, while the queue is corked.
        writer.write(b"".join(request_frame(PLAIN, 0, number) for number in range(count)))
        await until(lambda: handlers.asked)
        handled = -1
        while handled != len(handlers.asked):
            handled = len(handlers.asked)
            assert await is_served(server)
        assert handled * 20_000 < 20_000_000, "what the sockets' buffers hold, and one queue"
        assert await correlation_ids(reader, count) == list(range(count))
    assert handlers.asked == [f"plain {number}" for number in range(count)]


async def test_an_answer_given_up_for_good_closes_the_connection() -> None:
    handlers = Handlers()
    async with listening(handlers) as server, connected(server) as (reader, writer):
        writer.write(
            request_frame(SLOT, 4, 1) + request_frame(SLOT, 4, 2) + request_frame(PLAIN, 0, 3)
        )
        await handlers.wait_for_slots(2)
        first, second = handlers.slots
        second.close_connection("acks=0 failed")
        first.complete((framed(struct.pack(">i", 1)),))
        assert await correlation_ids(reader, 1) == [1], "what stood before it is still answered"
        await assert_ended(reader)


@pytest.mark.parametrize("size_bytes", [100, 60_000, 200_000, 5_000_000])
async def test_file_ranges_arrive_whole_at_a_slow_reader(tmp_path: Path, size_bytes: int) -> None:
    content = os.urandom(size_bytes)
    fd = temporary_file(b"skip" + content, str(tmp_path / "log"))
    handlers = Handlers()
    async with listening(handlers) as server, connected(server) as (reader, writer):
        writer.write(request_frame(SLOT, 4, 1) + request_frame(SLOT, 4, 2))
        await handlers.wait_for_slots(2)
        part = Range(fd=fd, position=4, size_bytes=size_bytes)
        for slot in handlers.slots:
            slot.complete((struct.pack(">i", size_bytes + 4), b"head", part))
        assert await is_served(server)
        for _ in range(2):
            assert await read_frame(reader) == b"head" + content
    os.close(fd)


@pytest.mark.parametrize(
    "nonsense",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        framed(b"\x00\x01"),
        framed(struct.pack(">hhih", 999, 0, 1, -1)),
        framed(struct.pack(">hhih", PLAIN, 77, 1, -1)),
        framed(struct.pack(">hhih", TASK, 7, 1, -1) + b"\x00\xff\xff\xff"),
        b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
    ],
)
async def test_nonsense_ends_one_connection_with_one_line(
    nonsense: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        listening(Handlers()) as server,
        connected(server) as (good_reader, good_writer),
        connected(server) as (reader, writer),
    ):
        writer.write(nonsense)
        await assert_ended(reader)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "closed:" in caplog.messages[0]
        good_writer.write(request_frame(PLAIN, 0, 9))
        assert await correlation_ids(good_reader, 1) == [9]


async def test_a_truncated_frame_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async with listening(Handlers()) as server, connected(server) as (reader, writer):
        writer.write(struct.pack(">i", 100) + b"half")
        writer.write_eof()
        assert await reader.read() == b""
        assert "ended inside a frame (8 bytes)" in caplog.text


async def test_unknown_api_versions_gets_v0_with_the_ranges() -> None:
    async with listening(Handlers()) as server, connected(server) as (reader, writer):
        writer.write(framed(struct.pack(">hhih", 18, 99, 5, -1)))
        correlation_id, message = codec.decode_response(18, 0, await read_frame(reader))
        assert (correlation_id, int(message.error_code)) == (5, 35)
        assert {api.api_key for api in message.api_keys} == {18, PLAIN, TASK, SLOT, BROKEN}


async def test_a_bug_ends_only_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    async with listening(Handlers()) as server:
        async with connected(server) as (reader, writer):
            writer.write(request_frame(BROKEN, 12, 1))
            await assert_ended(reader)
        assert "ZeroDivisionError" in caplog.text
        async with connected(server) as (reader, writer):
            writer.write(request_frame(PLAIN, 0, 1))
            assert await correlation_ids(reader, 1) == [1]


async def test_connections_are_bounded() -> None:
    async with (
        listening(Handlers(), connections_max=1) as server,
        connected(server) as (reader, writer),
    ):
        writer.write(request_frame(PLAIN, 0, 1))
        assert await correlation_ids(reader, 1) == [1]
        async with connected(server) as (late_reader, _):
            await assert_ended(late_reader)


async def test_the_longest_idle_makes_room_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "EVICTED_IDLE_MS", 50)
    monkeypatch.setattr(listener, "EVICTION_MS", 0)
    async with (
        listening(Handlers(), connections_max=2) as server,
        connected(server) as (idle_reader, _),
        connected(server) as (waiting_reader, waiting_writer),
    ):
        waiting_writer.write(request_frame(SLOT, 4, 1))
        await until(lambda: len(server.connections) == 2)
        await asyncio.sleep(0.06)
        async with connected(server) as (reader, writer):
            writer.write(request_frame(PLAIN, 0, 7))
            assert await correlation_ids(reader, 1) == [7]
            await assert_ended(idle_reader)
            assert not waiting_reader.at_eof()


async def test_brokers_are_taken_beyond_the_limit_and_nobody_else() -> None:
    async with (
        listening(Handlers(), connections_max=1, reserve=1) as server,
        connected(server) as (reader, writer),
    ):
        writer.write(request_frame(PLAIN, 0, 1))
        assert await correlation_ids(reader, 1) == [1]
        async with connected(server) as (reader, writer):
            writer.write(request_frame(PLAIN, 0, 2, client_id="consumer-1"))
            await assert_ended(reader)
        async with connected(server) as (reader, writer):
            writer.write(request_frame(PLAIN, 0, 3, client_id="broker-1"))
            assert await correlation_ids(reader, 1) == [3]


async def test_without_descriptors_the_accept_loop_tries_and_tells_once_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with listening(Handlers()) as server:
        calls = 0

        class Full:
            def fileno(self) -> int:
                return sock.fileno()

            def accept(self) -> Any:
                nonlocal calls
                calls += 1
                raise OSError(errno.EMFILE, "Too many open files")

        (sock,) = server._acceptors[0].sockets
        loop = asyncio.get_running_loop()
        loop.add_reader(sock.fileno(), server._acceptors[0]._accept, Full())  # type: ignore[arg-type]
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await until(lambda: calls)
        await asyncio.sleep(0.3)
        assert calls == 1
        assert [m for m in caplog.messages if "Too many open files" in m] == caplog.messages[:1]
        await until(lambda: server.connections)
        writer.close()


async def test_a_port_in_use_says_so() -> None:
    async with listening(Handlers()) as server:
        endpoint = BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=server.port)
        second = ListenerServer((endpoint,), server.context, connections_idle_ms_max=1)
        with pytest.raises(ListenError, match="the port is in use"):
            await second.bind()
