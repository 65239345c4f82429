"""A peer client matches answers, survives a lost connection, and says how a request failed."""

import asyncio
import struct

import pytest

from broker.protocol import codec
from broker.server.peers import (
    PeerClient,
    PeerError,
    PeerRefusedError,
    PeerTimeoutError,
    PeerUnavailableError,
)
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports
from tests.support.settle import turns
from tests.support.silent import lost_listener
from tests.unit.broker.server.support import PLAIN, SLOT, Handlers, listening


async def test_requests_are_pipelined_and_matched() -> None:
    handlers = Handlers()
    async with listening(handlers) as server:
        peer = PeerClient(host="127.0.0.1", port=server.port, client_id="1")
        request = codec.build_request(PLAIN, 0)
        answers = await asyncio.gather(*(peer.send(PLAIN, 0, request) for _ in range(20)))
        assert {answer.cluster_id for answer in answers} == {"c"}
        await peer.close()


async def test_a_callback_gets_the_raw_answer() -> None:
    handlers = Handlers()
    async with listening(handlers) as server:
        peer = PeerClient(host="127.0.0.1", port=server.port)
        got: list[bytes] = []
        done = asyncio.Event()

        def on_response(outcome: memoryview | PeerError) -> None:
            assert isinstance(outcome, memoryview)
            got.append(bytes(outcome[4:]))
            done.set()

        def build(correlation_id: int) -> tuple[bytes, ...]:
            header = struct.pack(">hhih", SLOT, 4, correlation_id, -1)
            body = codec.encode_request(
                codec.build_request(SLOT, 4), correlation_id=0, client_id=None
            )[14:]
            return (struct.pack(">i", len(header) + len(body)), header + body)

        await peer.submit(build, on_response)
        await handlers.wait_for_slots(1)
        handlers.slots[0].complete((struct.pack(">ii", 9, 1), b"hello"))
        await asyncio.wait_for(done.wait(), WAIT_S)
        assert got == [b"hello"]
        await peer.close()


async def test_what_cannot_be_built_is_told_once() -> None:
    async with listening(Handlers()) as server:
        peer = PeerClient(host="127.0.0.1", port=server.port)
        got: list[memoryview | PeerError] = []

        def build(correlation_id: int) -> tuple[bytes, ...]:
            raise ValueError("cannot be built")

        with pytest.raises(ValueError, match="cannot be built"):
            await peer.submit(build, got.append)
        peer.disconnect()
        await turns()
        assert not got
        await peer.close()


async def test_no_answer_in_time() -> None:
    async with listening(Handlers()) as server:
        peer = PeerClient(host="127.0.0.1", port=server.port)
        with pytest.raises(PeerTimeoutError):
            await peer.send(SLOT, 4, codec.build_request(SLOT, 4), timeout_s=0.05)
        await peer.close()


async def test_a_lost_connection_fails_what_is_in_flight_and_is_made_again() -> None:
    handlers = Handlers()
    async with listening(handlers) as server:
        peer = PeerClient(host="127.0.0.1", port=server.port)
        waiting = asyncio.ensure_future(peer.send(SLOT, 4, codec.build_request(SLOT, 4)))
        await handlers.wait_for_slots(1)
        for connection in list(server.connections):
            connection.close()
        with pytest.raises(PeerUnavailableError):
            await waiting
        assert (await peer.send(PLAIN, 0, codec.build_request(PLAIN, 0))).cluster_id == "c"
        await peer.close()


async def test_nobody_listens() -> None:
    (port,) = free_ports(1)
    peer = PeerClient(host="127.0.0.1", port=port)
    for _ in range(3):
        with pytest.raises(PeerRefusedError):
            await peer.send(PLAIN, 0, codec.build_request(PLAIN, 0))
    await peer.close()
    with pytest.raises(PeerUnavailableError):
        await peer.send(PLAIN, 0, codec.build_request(PLAIN, 0))


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "a\0b"])
async def test_a_host_that_no_resolver_takes_is_unavailable(host: str) -> None:
    """A node may register any text as its host; its peers go on."""
    peer = PeerClient(host=host, port=9092)
    for _ in range(2):
        with pytest.raises(PeerUnavailableError, match="cannot be reached"):
            await peer.send(PLAIN, 0, codec.build_request(PLAIN, 0))
    await peer.close()


async def test_closing_fails_who_waits_for_the_connection() -> None:
    """A cancellation would end the task of whoever asked, without a word."""
    with lost_listener() as address:
        host, port = address.split(":")
        peer = PeerClient(host=host, port=int(port))
        asking = asyncio.create_task(peer.send(PLAIN, 0, codec.build_request(PLAIN, 0)))
        await turns()
        await peer.close()
        with pytest.raises(PeerUnavailableError, match="is closed"):
            await asyncio.wait_for(asking, WAIT_S)
