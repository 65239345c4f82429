"""Cutting a byte stream into frames: 4 bytes of size, then that many bytes.

`ReceiveBuffer` is what a connection reads into: one bytearray, resident only as large as the
frames need (start at 64 KiB, double as a frame comes in, shrink when idle). Frames are views of
it and stay valid until `release`.
"""

import struct

from broker.protocol.errors import FrameTooLargeError

FRAME_BYTES_MAX = 100 * 1024 * 1024
"""Kafka's default of socket.request.max.bytes."""
BUFFER_BYTES_MIN = 64 * 1024
BUFFER_BYTES_KEPT = 4 * 1024 * 1024
"""A buffer larger than this is given back as soon as it is empty."""

_SIZE = struct.Struct(">i")


class ReceiveBuffer:
    """A growing buffer that cuts frames in place.

    The cycle: `writable()` -> read into it -> `received(n)` -> handle the frames -> `release()`.
    Views handed out by `received` must be dropped before `release` moves bytes.
    """

    __slots__ = ("_buffer", "_end", "_frame_bytes_max", "_readable", "_start", "_view")

    def __init__(self, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray(BUFFER_BYTES_MIN)
        self._view = memoryview(self._buffer)
        self._readable = self._view.toreadonly()
        self._start = 0
        self._end = 0

    @property
    def capacity_bytes(self) -> int:
        """How much memory the buffer holds."""
        return len(self._buffer)

    @property
    def pending_bytes(self) -> int:
        """Bytes received that are not yet part of a complete frame."""
        return self._end - self._start

    def writable(self) -> memoryview:
        """The free tail to read into; never empty."""
        return self._view[self._end :]

    def received(self, count: int) -> list[memoryview]:
        """Account for `count` new bytes; read-only views of the frames now complete, no sizes.

        :raises FrameTooLargeError: a size that is negative or beyond the bound.
        """
        self._end += count
        frames: list[memoryview] = []
        position = self._start
        while self._end - position >= 4:
            (size,) = _SIZE.unpack_from(self._buffer, position)
            if not 0 <= size <= self._frame_bytes_max:
                raise FrameTooLargeError(size, self._frame_bytes_max)
            if self._end - position - 4 < size:
                break
            frames.append(self._readable[position + 4 : position + 4 + size])
            position += 4 + size
        self._start = position
        return frames

    def release(self) -> None:
        """Make room: move what is left to the front, grow to the coming frame, shrink when idle."""
        pending = self._end - self._start
        needed = self._needed_bytes(pending)
        if needed > len(self._buffer) or self._is_oversized(needed):
            self._replace(max(needed, BUFFER_BYTES_MIN), pending)
        elif self._start and (pending == 0 or self._end + BUFFER_BYTES_MIN > len(self._buffer)):
            self._buffer[:pending] = self._buffer[self._start : self._end]
            self._start, self._end = 0, pending

    def close(self) -> None:
        """Give all memory back at once: nothing will be received any more."""
        self._start = self._end = 0
        self._replace(0, 0)

    def _needed_bytes(self, pending: int) -> int:
        if pending < 4:
            return BUFFER_BYTES_MIN
        (size,) = _SIZE.unpack_from(self._buffer, self._start)
        # Room for the start of the next frame as well, so that one read can end this frame
        # and begin another. But a size is only a claim: memory follows the bytes that came.
        whole = min(int(size), self._frame_bytes_max) + 4 + BUFFER_BYTES_MIN
        return min(whole, 2 * pending + BUFFER_BYTES_MIN)

    def _is_oversized(self, needed: int) -> bool:
        return len(self._buffer) > BUFFER_BYTES_KEPT and needed <= BUFFER_BYTES_KEPT

    def _replace(self, capacity: int, pending: int) -> None:
        fresh = bytearray(capacity)
        fresh[:pending] = self._view[self._start : self._end]
        self._buffer = fresh
        self._view = memoryview(fresh)
        self._readable = self._view.toreadonly()
        self._start, self._end = 0, pending

    def shrink(self) -> None:
        """Give memory back when the connection is idle."""
        if len(self._buffer) > BUFFER_BYTES_MIN and self.pending_bytes == 0:
            self._replace(BUFFER_BYTES_MIN, 0)
