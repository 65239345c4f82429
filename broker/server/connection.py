"""One accepted socket: bytes in, frames to the dispatcher, responses out, in bounded memory."""

import asyncio
import logging
import socket

from broker.host_name import address_text
from broker.protocol.errors import ProtocolError
from broker.protocol.frames import ReceiveBuffer
from broker.protocol.request_context import ANONYMOUS, Principal, RequestContext
from broker.server.dispatch import Dispatcher
from broker.server.listener_context import ListenerContext
from broker.server.response_queue import ResponseQueue
from broker.server.sasl import TOKEN_BYTES_MAX
from broker.server.tls import distinguished_name

RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024
SEND_BUFFER_BYTES = 1024 * 1024
WRITE_HIGH_WATER_BYTES = 256 * 1024

log = logging.getLogger(__name__)


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one accepted socket."""

    def __init__(
        self,
        context: ListenerContext,
        connections: "set[Connection]",
        *,
        is_on_trial: bool = False,
    ) -> None:
        """`connections` are those of the listener that are open; this one joins them. On trial:
        it stands beyond the limit, and its first request has to be a broker's."""
        self._is_on_trial = is_on_trial
        self.frame_since_ms: int | None = None
        """Since when the request comes in that is not whole yet."""
        self._context = context
        self._connections = connections
        self._clock = context.node.clock
        self._receive = ReceiveBuffer(
            frame_bytes_max=context.frame_bytes_max, memory=context.memory
        )
        self._queue = ResponseQueue(self._answers_written, self._end)
        self._dispatcher = Dispatcher(context, self._queue, self.refuse, self._progressed)
        self._transport: asyncio.Transport | None = None
        self._peer = "?"
        self._is_reading_paused = False
        self.last_active_ms = self._clock.monotonic_ms()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Tune the socket and take the connection into the listener's set."""
        assert isinstance(transport, asyncio.Transport)
        host, port = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self._peer = address_text(host, port)
        self._transport = transport
        tune_socket(transport)
        self._queue.open(transport)
        self._connections.add(self)
        principal = self._principal(transport)
        if principal is None:
            self.refuse("no rule of ssl.principal.mapping.rules names who its certificate is")
            return
        if not self._dispatcher.is_logged_in:
            self._receive.frame_bytes_max = TOKEN_BYTES_MAX
        self._dispatcher.open(
            RequestContext(
                principal=principal,
                listener_name=self._context.listener_name,
                security_protocol=self._context.security_protocol,
                client_host=host,
            )
        )

    def _principal(self, transport: asyncio.Transport) -> Principal | None:
        """The client by its certificate, where it showed one; None: no rule names it."""
        certificate = transport.get_extra_info("peercert")
        if self._context.tls is None or self._context.sasl is not None or not certificate:
            return ANONYMOUS  # behind a login it is who logs in
        rules = self._context.tls.config.principals
        name = rules.name_of(distinguished_name(certificate))
        return None if name is None else Principal(type="User", name=name)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what waits; running handlers end by themselves, their answers go nowhere."""
        self._connections.discard(self)
        self._transport = None
        self._queue.close()
        self._dispatcher.close()
        self._receive.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the transport reads into."""
        return self._receive.writable()

    def buffer_updated(self, nbytes: int) -> None:
        """Handle every frame that has become complete."""
        self.last_active_ms = self._clock.monotonic_ms()
        try:
            frames = self._receive.received(nbytes)
        except ProtocolError as error:
            self.refuse(str(error))
            return
        is_on_trial, self._is_on_trial = self._is_on_trial, self._is_on_trial and not frames
        if frames and is_on_trial and not _is_peers(frames[0], self._context):
            limit = self._context.connections_max()
            self._context.refusals.note(limit, self.last_active_ms)
            self.close(is_at_once=True)
            return
        self._queue.cork()
        for frame in frames:
            self._dispatcher.take(frame)
        self._queue.uncork()
        if self._dispatcher.is_logged_in:
            self._receive.frame_bytes_max = self._context.frame_bytes_max
        self._make_room()
        self._maybe_pause_reading()

    def _make_room(self) -> None:
        """For what comes next; without memory for it nothing is read until others give theirs."""
        if self._transport is None:
            return
        self._receive.release()
        if not self._receive.pending_bytes:
            self.frame_since_ms = None
        elif self.frame_since_ms is None:
            self.frame_since_ms = self.last_active_ms
        if self._receive.lacks_memory:
            self._context.memory.wait(self._make_room)
        self._maybe_resume_reading()

    def eof_received(self) -> bool:
        """The peer has ended its side; a frame that is cut off is worth a line."""
        if self._receive.pending_bytes:
            pending = self._receive.pending_bytes
            log.warning("connection from %s ended inside a frame (%d bytes)", self._peer, pending)
        return False

    def pause_writing(self) -> None:
        """The peer reads more slowly than we answer."""
        self._queue.pause_writing()

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self._queue.resume_writing()

    def _answers_written(self) -> None:
        self._dispatcher.resume()
        self._maybe_resume_reading()

    def _progressed(self) -> None:
        self._maybe_pause_reading()
        self._maybe_resume_reading()

    @property
    def _is_over_bound(self) -> bool:
        return (
            self._queue.is_full
            or self._dispatcher.deferred_count > 0
            or self._dispatcher.is_muted
            or self._receive.lacks_memory
        )

    def _maybe_pause_reading(self) -> None:
        if self._transport is not None and not self._is_reading_paused and self._is_over_bound:
            self._is_reading_paused = True
            self._transport.pause_reading()

    def _maybe_resume_reading(self) -> None:
        if self._transport is not None and self._is_reading_paused and not self._is_over_bound:
            self._is_reading_paused = False
            self._transport.resume_reading()

    @property
    def is_idle(self) -> bool:
        """Whether its client waits for nothing."""
        return not (self._queue.is_waiting or self._dispatcher.deferred_count)

    def refuse(self, reason: str) -> None:
        """End the connection at once, with a line in the log."""
        log.warning("connection from %s closed: %s", self._peer, reason)
        self._dispatcher.close()
        self.close(is_at_once=True)

    def _end(self, reason: str) -> None:
        log.info("connection from %s closed: %s", self._peer, reason)
        self._dispatcher.close()
        self.close()

    def close(self, *, is_at_once: bool = False) -> None:
        """End the connection after what is already in the transport's buffer, or at once: a peer
        may never take that."""
        if self._transport is not None and is_at_once:
            self._transport.abort()
        elif self._transport is not None:
            self._transport.close()

    def shrink(self) -> None:
        """Give back the memory of an idle connection."""
        self._receive.shrink()


def _is_peers(frame: memoryview, context: ListenerContext) -> bool:
    try:
        return context.is_peer(frame)
    except ProtocolError:
        return False


def tune_socket(transport: asyncio.Transport) -> None:
    """No delay, large buffers, and a bound on what the transport holds for a slow peer."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
