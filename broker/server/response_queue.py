"""The in-order queue of responses of one connection, and how they reach the socket.

A slot is taken when a request arrives and completed now or later; whatever stands complete at
the head of the queue is written. Nothing is written while the transport's buffer is over its
high-water mark. Answers that wait are counted in bytes: while the queue `is_full`, its connection
handles no further request. So a client that does not read holds at most `QUEUED_BYTES_MAX`, one
more answer, the transport's mark, and the answers of requests that waited already (fetches and
acks=all: RESPONSES_QUEUED_MAX of them, without records). What such requests hold while they wait is
counted, too: HELD_BYTES_MAX and one more request. File ranges are read only when there is room.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence

from broker.handlers.services import FileRange, ResponsePart

CHUNK_BYTES_MAX = 1024 * 1024
"""A file range is read and written in pieces of this size."""
SENDFILE_BYTES_MAX = 256 * 1024
"""Up to here sendfile beats read and write (docs/decisions/0004)."""
QUEUED_BYTES_MAX = 1024 * 1024
"""Of answers that one connection has not taken yet; above it no further request is handled."""
HELD_BYTES_MAX = 16 * 1024 * 1024
"""Of requests of one connection that wait; above it no further one is handled."""
RESPONSES_QUEUED_MAX = 512
"""Requests of one connection whose responses are due; above it no further one is handled."""
FILE_RANGE_BYTES = 1024
"""What a file range that waits counts for: its bytes are not in memory, its bookkeeping is."""


class Slot:
    """One place in the queue; see broker.handlers.services.ResponseSlot."""

    __slots__ = ("_queue", "ends_because", "held_bytes", "on_gone", "parts")

    def __init__(self, queue: "ResponseQueue") -> None:
        self._queue = queue
        self.held_bytes = 0
        self.on_gone: Callable[[], None] = _nobody_asks
        self.parts: Sequence[ResponsePart] | None = None
        self.ends_because = ""
        """Why the connection is closed in place of an answer; empty: it is not."""

    def complete(self, parts: Sequence[ResponsePart]) -> None:
        """Give the whole response, led by its 4-byte size, once."""
        assert self.parts is None, "a response slot was completed twice"
        self.parts = parts
        self.on_gone = _nobody_asks  # no cycle with what waited
        self._queue.slot_completed(self)

    def hold(self, size_bytes: int) -> None:
        """Count memory that is held until the answer."""
        self.held_bytes += size_bytes
        self._queue.held_bytes += size_bytes

    def when_gone(self, callback: Callable[[], None]) -> None:
        """Have `callback` called if the connection ends before the answer."""
        self.on_gone = callback

    def throttle(self, time_ms: int) -> None:
        """Hear nothing further from the client for so long."""
        self._queue.on_throttle(time_ms)

    def no_response(self) -> None:
        """Give up the place without an answer."""
        self.complete(())

    def close_connection(self, reason: str) -> None:
        """Close the connection in place of an answer, after what the transport has taken."""
        self.ends_because = reason
        self.complete(())


def _queued_bytes(parts: Sequence[ResponsePart]) -> int:
    return sum(
        len(part) if isinstance(part, bytes | bytearray | memoryview) else FILE_RANGE_BYTES
        for part in parts
    )


def _nobody_asks(*_: object) -> None:
    """In place of the connection, which is freed at once when nothing of it refers to it."""


class ResponseQueue:
    """Responses in the order of their requests.

    `on_written` is told whenever the queue has become shorter, `on_end` why the connection is to
    be closed.
    """

    __slots__ = (
        "_is_corked",
        "_is_paused",
        "_on_end",
        "_on_written",
        "_outgoing",
        "_queued_bytes",
        "_slots",
        "_socket_fd",
        "_transport",
        "held_bytes",
        "on_throttle",
    )

    def __init__(self, on_written: Callable[[], None], on_end: Callable[[str], None]) -> None:
        self._on_written = on_written
        self._on_end = on_end
        self._slots: deque[Slot] = deque()
        self._outgoing: deque[ResponsePart] = deque()
        self._transport: asyncio.Transport | None = None
        self._socket_fd = -1
        self._queued_bytes = 0
        self.held_bytes = 0
        self.on_throttle: Callable[[int], None] = _nobody_asks
        self._is_paused = False
        self._is_corked = False

    @property
    def is_full(self) -> bool:
        """Whether so much waits, or is due, that no further request is to be handled."""
        return (
            self._queued_bytes >= QUEUED_BYTES_MAX
            or self.held_bytes >= HELD_BYTES_MAX
            or len(self._slots) >= RESPONSES_QUEUED_MAX
        )

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is due, or not taken yet."""
        return bool(self._slots or self._outgoing)

    def open(self, transport: asyncio.Transport) -> None:
        """Attach the transport of a new connection."""
        self._transport = transport
        is_encrypted = transport.get_extra_info("sslcontext") is not None
        self._socket_fd = -1 if is_encrypted else transport.get_extra_info("socket").fileno()

    def close(self) -> None:
        """Forget everything; slots completed from now on go nowhere."""
        self._transport = None
        waiting = [slot for slot in self._slots if slot.parts is None]
        self._slots.clear()
        self._outgoing.clear()
        self._queued_bytes = 0
        self._on_written, self._on_end = _nobody_asks, _nobody_asks
        self.on_throttle = _nobody_asks
        for slot in waiting:
            slot.on_gone()

    def new_slot(self) -> Slot:
        """The next place in the queue."""
        slot = Slot(self)
        self._slots.append(slot)
        return slot

    def slot_completed(self, slot: Slot) -> None:
        """Called by a slot; writes when it is at the head of the queue."""
        if self._transport is None:
            return
        self.held_bytes -= slot.held_bytes
        self._queued_bytes += _queued_bytes(slot.parts or ())
        if not self._is_corked and self._slots[0] is slot:
            self._advance()

    def cork(self) -> None:
        """Hold writing back while several requests are being handled."""
        self._is_corked = True

    def uncork(self) -> None:
        """Write what has become complete since `cork`."""
        self._is_corked = False
        if self._slots and self._slots[0].parts is not None:
            self._advance()

    def pause_writing(self) -> None:
        """The transport's buffer is full."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """The transport's buffer has drained."""
        self._is_paused = False
        self._write()
        self._on_written()

    def _advance(self) -> None:
        slots = self._slots
        while slots and slots[0].parts is not None:
            slot = slots.popleft()
            if slot.ends_because:
                self._write()
                self._on_end(slot.ends_because)
                return
            self._outgoing.extend(slot.parts or ())
        self._write()
        self._on_written()

    def _write(self) -> None:
        outgoing = self._outgoing
        while outgoing and not self._is_paused and self._transport is not None:
            part = outgoing[0]
            if isinstance(part, bytes | bytearray | memoryview):
                self._transport.write(self._gather())
            else:
                outgoing.popleft()
                self._queued_bytes -= FILE_RANGE_BYTES
                self._write_file_range(part)

    def _gather(self) -> bytes | bytearray | memoryview:
        """The bytes at the head, joined while they are small."""
        outgoing = self._outgoing
        first = outgoing.popleft()
        assert isinstance(first, bytes | bytearray | memoryview)
        parts = [first]
        size_bytes = len(first)
        while outgoing and size_bytes < CHUNK_BYTES_MAX:
            following = outgoing[0]
            if not isinstance(following, bytes | bytearray | memoryview):
                break
            parts.append(following)
            size_bytes += len(following)
            outgoing.popleft()
        self._queued_bytes -= size_bytes
        return first if len(parts) == 1 else b"".join(parts)

    def _write_file_range(self, part: FileRange) -> None:
        transport = self._transport
        assert transport is not None
        fd, position, size_bytes = part.fd, part.position, part.size_bytes
        can_send_file = self._socket_fd >= 0 and size_bytes <= SENDFILE_BYTES_MAX
        if can_send_file and transport.get_write_buffer_size() == 0:
            sent = self._send_file(fd, position, size_bytes)
            position += sent
            size_bytes -= sent
        if size_bytes == 0:
            return
        try:
            chunk = os.pread(fd, min(size_bytes, CHUNK_BYTES_MAX), position)
        except OSError as error:
            part.handle_unreadable(error)
            chunk = b""
        if not chunk:
            # The size went out already, so the stream cannot be mended: end the connection.
            self.close()
            transport.abort()
            return
        transport.write(chunk)
        if size_bytes > len(chunk):
            rest = _Rest(part, position + len(chunk), size_bytes - len(chunk))
            self._outgoing.appendleft(rest)
            self._queued_bytes += FILE_RANGE_BYTES

    def _send_file(self, fd: int, position: int, size_bytes: int) -> int:
        try:
            return os.sendfile(self._socket_fd, fd, position, size_bytes)
        except OSError:
            # Full, or gone: the transport's own write waits or reports it.
            return 0


class _Rest:
    """The rest of a file range; keeps the range itself, and so its file, alive."""

    __slots__ = ("_whole", "position", "size_bytes")

    def __init__(self, part: FileRange, position: int, size_bytes: int) -> None:
        self._whole: FileRange = part._whole if isinstance(part, _Rest) else part
        self.position = position
        self.size_bytes = size_bytes

    @property
    def fd(self) -> int:
        return self._whole.fd

    def handle_unreadable(self, error: OSError) -> None:
        self._whole.handle_unreadable(error)


_: type[FileRange] = _Rest
