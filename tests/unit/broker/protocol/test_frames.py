"""Frames come out whole, whatever pieces they arrive in."""

import struct

import pytest

from broker.protocol.errors import FrameTooLargeError
from broker.protocol.frames import BUFFER_BYTES_IDLE, BUFFER_BYTES_MIN, ReceiveBuffer

PAYLOADS = [b"a", b"", b"b" * 300_000, b"c" * 10, b"d" * 70_000]
STREAM = b"".join(struct.pack(">i", len(payload)) + payload for payload in PAYLOADS)


@pytest.mark.parametrize("read_bytes_max", [3, 7, 4096, 10**6])
def test_receive_buffer_grows_and_shrinks(read_bytes_max: int) -> None:
    buffer = ReceiveBuffer()
    frames: list[bytes] = []
    sent = 0
    largest = 0
    while sent < len(STREAM):
        tail = buffer.writable()
        count = min(len(tail), read_bytes_max, len(STREAM) - sent)
        tail[:count] = STREAM[sent : sent + count]
        sent += count
        frames += map(bytes, buffer.received(count))
        buffer.release()
        largest = max(largest, buffer.capacity_bytes)
        assert len(buffer.writable()) > 0
    assert frames == PAYLOADS
    assert largest >= 300_000
    buffer.shrink()
    assert buffer.capacity_bytes == BUFFER_BYTES_IDLE


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 1001])
def test_sizes_out_of_bounds(size: int) -> None:
    buffer = ReceiveBuffer(frame_bytes_max=1000)
    buffer.writable()[:4] = struct.pack(">i", size)
    with pytest.raises(FrameTooLargeError):
        buffer.received(4)
    assert buffer.capacity_bytes == BUFFER_BYTES_MIN
