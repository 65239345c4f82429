"""A listening socket and the housekeeping of its connections."""

import asyncio
import errno
import logging
import socket

from broker.background import Repeater
from broker.config.broker_config import Endpoint
from broker.server.connection import RECEIVE_BUFFER_BYTES, Connection
from broker.server.dispatch import ListenerContext

IDLE_CHECK_MS = 30_000
IDLE_SHRINK_MS = 10_000
CLOSE_WAIT_S = 1.0
BACKLOG = 1024

log = logging.getLogger(__name__)


class ListenError(Exception):
    """The listening socket could not be opened; the message says why and what to do."""


class ListenerServer:
    """Accepts connections on one endpoint until it is closed."""

    def __init__(
        self, endpoint: Endpoint, context: ListenerContext, *, connections_idle_ms_max: int
    ) -> None:
        self._endpoint = endpoint
        self.context = context
        self._idle_ms_max = connections_idle_ms_max
        self.connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._idle_check = Repeater("check of idle connections", IDLE_CHECK_MS, self._check_idle)

    async def bind(self) -> None:
        """Take the port; nobody can connect before `serve`.

        :raises ListenError: the port is in use, not permitted, or not an address of this host.
        """
        loop = asyncio.get_running_loop()
        host, port = self._endpoint.host, self._endpoint.port
        try:
            self._server = await loop.create_server(
                lambda: Connection(self.context, self.connections),
                host or None,
                port,
                backlog=BACKLOG,
                start_serving=False,
            )
        except OSError as error:
            raise ListenError(_explain(error, host, port)) from error
        for sock in self._server.sockets:
            # Before the handshake, so that the window scale allows for it.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)

    async def serve(self) -> None:
        """Accept connections; needs `bind`."""
        assert self._server is not None
        await self._server.start_serving()
        self._idle_check.start()

    @property
    def port(self) -> int:
        """The port that is listened on (of interest when 0 was asked for)."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

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
        if self._server is not None:
            self._server.close()
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
