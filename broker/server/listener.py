"""Listening sockets and the housekeeping of their connections."""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from broker.background import Repeater
from broker.config.sasl import SaslConfig
from broker.metadata.records import BrokerEndpoint
from broker.server.acceptor import Acceptor, bind_sockets
from broker.server.connection import RECEIVE_BUFFER_BYTES, Connection
from broker.server.listener_context import ListenerContext
from broker.server.tls import HANDSHAKE_TIMEOUT_S, HANDSHAKES_MAX, TlsContext

IDLE_CHECK_MS = 30_000
IDLE_SHRINK_MS = 10_000
CLOSE_WAIT_S = 1.0
EVICTED_IDLE_MS = 5_000
"""So long a connection was idle that makes room for another one at the limit."""
EVICTION_MS = 100
"""Looking for it costs a look at all: not more often than that."""
MEMORY_CHECK_MS = 250
TOLD_AGAIN_MS = 1_000
SHORT_FRAME_MS_MAX = 3_000
"""Requests that wait for each other's memory do not wait for longer."""

log = logging.getLogger(__name__)


class ListenError(Exception):
    """The listening socket could not be opened; the message says why and what to do."""


class ListenerServer:
    """Accepts connections on endpoints of one kind until it is closed.

    They share limits, memory and handlers: `context` is that of each, but for name and protocol.
    """

    def __init__(
        self,
        endpoints: Sequence[BrokerEndpoint],
        context: ListenerContext,
        *,
        connections_idle_ms_max: int,
        tls: Mapping[str, TlsContext] | None = None,
        sasl: Mapping[str, SaslConfig] | None = None,
    ) -> None:
        self._endpoints = endpoints
        self._tls = tls or {}
        self._sasl = sasl or {}
        self.context = context
        self._idle_ms_max = connections_idle_ms_max
        self.connections: set[Connection] = set()
        self._acceptors: list[Acceptor] = []
        self._evict_at_ms = 0
        self._tell_handshake_at_ms = 0
        self._handshakes: dict[asyncio.Task[object], None] = {}
        """Those that go on, oldest first."""
        self._memory_check = Repeater(
            "check of requests' memory", MEMORY_CHECK_MS, self._check_memory
        )
        self._idle_check = Repeater("check of idle connections", IDLE_CHECK_MS, self._check_idle)

    async def bind(self) -> None:
        """Take the ports; nobody can connect before `serve`.

        :raises ListenError: a port is in use, not permitted, or not an address of this host.
        """
        for endpoint in self._endpoints:
            self._acceptors.append(await self._bind(endpoint))

    async def _bind(self, endpoint: BrokerEndpoint) -> Acceptor:
        host, port = endpoint.host, endpoint.port
        try:
            sockets = await bind_sockets(host, port)
        except OSError as error:
            raise ListenError(_explain(error, host, port)) from error
        for sock in sockets:
            # Before the handshake, so that the window scale allows for it.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        context = replace(
            self.context,
            listener_name=endpoint.name,
            security_protocol=endpoint.security_protocol,
            tls=self._tls.get(endpoint.name),
            sasl=self._sasl.get(endpoint.name),
        )
        return Acceptor(
            sockets,
            admit=self._admit,
            connect=lambda accepted: self._connect(accepted, context),
            wait_ms=self._wait_ms,
        )

    async def serve(self) -> None:
        """Accept connections; needs `bind`."""
        assert self._acceptors
        for acceptor in self._acceptors:
            acceptor.start()
        self._idle_check.start()
        self._memory_check.start()

    @property
    def port(self) -> int:
        """The first port that is listened on (of interest when 0 was asked for)."""
        return int(self._acceptors[0].sockets[0].getsockname()[1])

    def _admit(self) -> bool:
        """Takes one more in, if need be for the one that has been idle for longest; beyond the
        limit a few may show that they are brokers."""
        limit = self.context.connections_max()
        count = len(self.connections) + sum(acceptor.arriving for acceptor in self._acceptors)
        if count < limit:
            return True
        now_ms = self.context.node.clock.monotonic_ms()
        if now_ms >= self._evict_at_ms:
            self._evict_at_ms = now_ms + EVICTION_MS
            idle = [each for each in self.connections if each.is_idle]
            idlest = min(idle, key=lambda each: each.last_active_ms, default=None)
            if idlest is not None and now_ms - idlest.last_active_ms >= EVICTED_IDLE_MS:
                idlest.close(is_at_once=True)
                self.connections.discard(idlest)
                return True
        if count < limit + self.context.reserve:
            return True
        self.context.refusals.note(limit, now_ms)
        return False

    def _wait_ms(self, address: str) -> int:
        """For how long a connection is kept before it is refused; 0: no quota is used up."""
        is_throttled = self.context.is_throttled
        return self.context.node.quotas.connections.take(address) if is_throttled else 0

    async def _connect(self, accepted: socket.socket, context: ListenerContext) -> None:
        is_beyond = len(self.connections) >= self.context.connections_max()
        make = partial(Connection, context, self.connections, is_on_trial=is_beyond)
        loop = asyncio.get_running_loop()
        if context.tls is None:
            await loop.connect_accepted_socket(make, accepted)
            return
        with self._handshake():
            try:
                await loop.connect_accepted_socket(
                    make,
                    accepted,
                    ssl=context.tls.current(),
                    ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S,
                )
            except ssl.SSLError as error:
                self._tell_handshake(context.listener_name, error)
                raise

    @contextmanager
    def _handshake(self) -> Iterator[None]:
        """One more; the oldest ends where they are many: who means it takes milliseconds."""
        task = asyncio.current_task()
        assert task is not None
        if len(self._handshakes) >= HANDSHAKES_MAX:
            oldest = next(iter(self._handshakes))
            del self._handshakes[oldest]  # at once: more of them may come before it ends
            oldest.cancel()
        self._handshakes[task] = None
        try:
            yield
        finally:
            self._handshakes.pop(task, None)

    def _tell_handshake(self, listener: str, error: ssl.SSLError) -> None:
        """In one line a second: a stranger may try often."""
        now_ms = self.context.node.clock.monotonic_ms()
        if now_ms >= self._tell_handshake_at_ms:
            self._tell_handshake_at_ms = now_ms + TOLD_AGAIN_MS
            log.warning("a TLS handshake on %s failed: %s", listener, error.reason or error)

    def _check_memory(self) -> None:
        """Requests that come in slowly do not keep the memory that others wait for."""
        if not self.context.memory.is_short:
            return
        now_ms = self.context.node.clock.monotonic_ms()
        since_ms = {it: it.frame_since_ms for it in self.connections if it.frame_since_ms}
        for connection in self.connections - since_ms.keys():
            connection.shrink()
        slowest = min(since_ms, key=lambda each: since_ms[each], default=None)
        if slowest is not None and now_ms - since_ms[slowest] >= SHORT_FRAME_MS_MAX:
            slowest.refuse("its request came in too slowly while memory was short")

    def _check_idle(self) -> None:
        now_ms = self.context.node.clock.monotonic_ms()
        for connection in list(self.connections):
            idle_ms = now_ms - connection.last_active_ms
            if idle_ms > self._idle_ms_max:
                connection.close(is_at_once=True)
            elif idle_ms > IDLE_SHRINK_MS:
                connection.shrink()

    async def close(self) -> None:
        """Stop accepting, end the connections, give handlers a moment to finish."""
        self._idle_check.stop()
        self._memory_check.stop()
        for acceptor in self._acceptors:
            await acceptor.close()
        await self.context.tasks.wait(CLOSE_WAIT_S)
        await self.context.tasks.stop()
        for connection in list(self.connections):
            connection.close()


def _explain(error: OSError, host: str, port: int) -> str:
    where = f"{host or '*'}:{port}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"cannot listen on {where}: the port is in use; "
            f"stop the program that holds it or choose another port in `listeners`"
        )
    if error.errno == errno.EACCES:
        return f"cannot listen on {where}: not permitted; choose a port above 1023"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"cannot listen on {where}: not an address of this machine; correct `listeners`"
    return f"cannot listen on {where}: {error.strerror or error}; correct `listeners`"
