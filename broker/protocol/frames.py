"""Cutting a byte stream into frames: 4 bytes of size, then that many bytes.

`ReceiveBuffer` is what a connection reads into: one bytearray, resident only as large as the
frames need (start at 64 KiB, double as a frame comes in, shrink when idle). Frames are views of
it and stay valid until `release`.
"""

import struct
from collections import deque
from collections.abc import Callable

from broker.protocol.errors import FrameTooLargeError

FRAME_BYTES_MAX = 100 * 1024 * 1024
"""Kafka's default of socket.request.max.bytes."""
BUFFER_BYTES_MIN = 64 * 1024
BUFFER_BYTES_IDLE = 4 * 1024
BUFFER_BYTES_KEPT = 4 * 1024 * 1024
"""A buffer larger than this is given back as soon as it is empty."""

_SIZE = struct.Struct(">i")


class RequestMemory:
    """Bytes that requests of all connections together hold, beyond BUFFER_BYTES_MIN for each.

    Kafka's queued.max.request.bytes. A request larger than all of it is taken when nothing else is
    held. Those who wait are called one after the other, as memory is given back.
    """

    __slots__ = ("_bytes_max", "_waiting", "used_bytes")

    def __init__(self, bytes_max: int | None = None) -> None:
        """None: without bound."""
        self._bytes_max = bytes_max
        self._waiting: deque[Callable[[], None]] = deque()
        self.used_bytes = 0

    @property
    def is_short(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    def may_take(self, size_bytes: int) -> bool:
        """Whether there is so much more."""
        if self._bytes_max is None or not self.used_bytes:
            return True
        return self.used_bytes + size_bytes <= self._bytes_max

    def keep(self, frame: memoryview) -> bytes:
        """A copy of a frame, which is counted until it is given back."""
        self.take(len(frame))
        return bytes(frame)

    def take(self, size_bytes: int) -> None:
        """Count what is held from now on."""
        self.used_bytes += size_bytes

    def give(self, size_bytes: int) -> None:
        """Count so much less; those who wait may try again."""
        self.used_bytes -= size_bytes
        for _ in range(len(self._waiting) if size_bytes else 0):
            if not self.may_take(BUFFER_BYTES_MIN):
                return
            self._waiting.popleft()()

    def wait(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once when memory was given back."""
        if callback not in self._waiting:
            self._waiting.append(callback)


class ReceiveBuffer:
    """A growing buffer that cuts frames in place.

    The cycle: `writable()` -> read into it -> `received(n)` -> handle the frames -> `release()`.
    Views handed out by `received` must be dropped before `release` moves bytes.
    """

    __slots__ = (
        "_buffer",
        "_end",
        "_memory",
        "_readable",
        "_start",
        "_view",
        "frame_bytes_max",
        "lacks_memory",
    )

    def __init__(
        self, *, frame_bytes_max: int = FRAME_BYTES_MAX, memory: RequestMemory | None = None
    ) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._memory = RequestMemory() if memory is None else memory
        self.lacks_memory = False
        """Whether `release` could not make room: nothing may be read until it could."""
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
            if not 0 <= size <= self.frame_bytes_max:
                raise FrameTooLargeError(size, self.frame_bytes_max)
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
        self.lacks_memory = needed > len(self._buffer) and not self._memory.may_take(
            needed - max(len(self._buffer), BUFFER_BYTES_MIN)
        )
        if self.lacks_memory:
            return
        if needed > len(self._buffer) or self._is_oversized(needed):
            self._replace(max(needed, BUFFER_BYTES_MIN), pending)
        elif self._start and (pending == 0 or self._end + BUFFER_BYTES_MIN > len(self._buffer)):
            self._buffer[:pending] = self._buffer[self._start : self._end]
            self._start, self._end = 0, pending

    def close(self) -> None:
        """Give all memory back at once: nothing will be received any more."""
        self._start = self._end = 0
        self.lacks_memory = False
        self._replace(0, 0)

    def _needed_bytes(self, pending: int) -> int:
        if pending < 4:
            return BUFFER_BYTES_MIN
        (size,) = _SIZE.unpack_from(self._buffer, self._start)
        # Room for the start of the next frame as well, so that one read can end this frame
        # and begin another. But a size is only a claim: memory follows the bytes that came.
        whole = min(int(size), self.frame_bytes_max) + 4 + BUFFER_BYTES_MIN
        return min(whole, 2 * pending + BUFFER_BYTES_MIN)

    def _is_oversized(self, needed: int) -> bool:
        kept = BUFFER_BYTES_MIN if self._memory.is_short else BUFFER_BYTES_KEPT
        return len(self._buffer) > kept >= needed

    def _replace(self, capacity: int, pending: int) -> None:
        counted, held = (max(0, size - BUFFER_BYTES_MIN) for size in (capacity, len(self._buffer)))
        fresh = bytearray(capacity)
        fresh[:pending] = self._view[self._start : self._end]
        self._buffer = fresh
        self._view = memoryview(fresh)
        self._readable = self._view.toreadonly()
        self._start, self._end = 0, pending
        if counted > held:
            self._memory.take(counted - held)
        elif counted < held:
            self._memory.give(held - counted)

    def shrink(self) -> None:
        """Give memory back when the connection is idle."""
        if len(self._buffer) > BUFFER_BYTES_IDLE and self.pending_bytes == 0:
            self._replace(BUFFER_BYTES_IDLE, 0)
