"""Requests to another node: pipelined over one connection that is made again when it is lost.

    peer = PeerClient(host="127.0.0.1", port=19092, client_id="101")
    message = await peer.send(52, 1, codec.build_request(52, 1, ...))

Answers are matched by correlation id. A request fails with PeerUnavailableError when the
connection cannot be made or is lost (PeerRefusedError when nobody listens), and with
PeerTimeoutError after its time; all are PeerError, which is an OSError. Nothing is sent twice:
whether to try again is the caller's to know.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Tasks, Timer, leave_to_caller
from broker.config.sasl import OwnLogin
from broker.host_name import address_text, is_host_name
from broker.protocol import codec
from broker.protocol.errors import ProtocolError
from broker.protocol.frames import ReceiveBuffer
from broker.protocol.scram import ScramError
from broker.server.connection import tune_socket
from broker.server.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE, tokens
from broker.server.tls import TlsContext

REQUEST_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 2.0
BACKOFF_S_MIN = 0.05
BACKOFF_S_MAX = 0.5
REQUESTS_IN_FLIGHT_MAX = 1000

log = logging.getLogger(__name__)

BuildFrame = Callable[[int], Sequence[bytes | memoryview]]
"""correlation id -> the parts of a request, led by its 4-byte size."""


class PeerError(OSError):
    """A request to a peer has no answer."""


class PeerUnavailableError(PeerError, ConnectionError):
    """There is no connection, or it was lost before the answer came."""


class PeerRefusedError(PeerUnavailableError, ConnectionRefusedError):
    """Nobody listens there: the peer's process is down."""


class PeerTimeoutError(PeerError, TimeoutError):
    """The answer did not come in time; the request may still take effect."""


class _Pending:
    """A request that waits for its answer."""

    __slots__ = ("future", "on_response", "timer")

    def __init__(
        self,
        future: "asyncio.Future[bytes] | None",
        on_response: Callable[[memoryview | PeerError], None] | None,
    ) -> None:
        self.future = future
        self.on_response = on_response
        self.timer: Timer | None = None

    def settle(self, outcome: memoryview | PeerError) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.on_response is not None:
            self.on_response(outcome)
        elif self.future is not None and not self.future.done():
            if isinstance(outcome, PeerError):
                self.future.set_exception(outcome)
            else:
                self.future.set_result(bytes(outcome))


class _PeerConnection(asyncio.BufferedProtocol):
    """One TCP connection to the peer."""

    def __init__(self, name: str, on_lost: Callable[[], None]) -> None:
        self._name = name
        self._on_lost = on_lost
        self._receive = ReceiveBuffer()
        self.transport: asyncio.Transport | None = None
        self.pending: dict[int, _Pending] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        tune_socket(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receive.writable()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            frames = self._receive.received(nbytes)
        except ProtocolError as error:
            log.warning("peer %s: %s", self._name, error)
            self.abort()
            return
        for frame in frames:
            pending = self.pending.pop(int.from_bytes(frame[:4], "big", signed=True), None)
            if pending is not None:
                pending.settle(frame)
        self._receive.release()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        lost, self.pending = self.pending, {}
        for pending in lost.values():
            pending.settle(PeerUnavailableError(f"the connection to {self._name} was lost"))
        self._on_lost()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class PeerClient:
    """Requests to one address."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        client_id: str | None = None,
        tls: TlsContext | None = None,
        login: OwnLogin | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._name = address_text(host, port)
        self.on_lost: Callable[[], None] | None = None
        self._client_id = client_id
        self._tls = tls
        self._login = login
        self._connection: _PeerConnection | None = None
        self._connecting: asyncio.Task[_PeerConnection] | None = None
        self._tasks = Tasks("connection to a peer", leave_to_caller)
        self._correlation_id = 0
        self._backoff_s = 0.0
        self._next_attempt_s = 0.0
        self._is_closed = False
        self._last_failure = PeerUnavailableError("never tried")

    async def send(
        self, api_key: int, api_version: int, message: Any, *, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> Any:
        """The peer's response message to a kio request entity.

        :raises PeerError: no connection, connection lost, no answer in time, or nonsense.
        """
        payload = await self.exchange(self._frame_of(message), timeout_s=timeout_s)
        return self._decoded(api_key, api_version, payload)

    async def exchange(self, build: BuildFrame, *, timeout_s: float = REQUEST_TIMEOUT_S) -> bytes:
        """The raw response (correlation id first, no size) to a request of the caller's making.

        :raises PeerError: as `send`.
        """
        connection = await self._connected()
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._write(connection, build, _Pending(future, None), timeout_s)
        return await future

    async def submit(
        self,
        build: BuildFrame,
        on_response: Callable[[memoryview | PeerError], None],
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        """Send, and have `on_response` called once with a view that is valid during the call.

        For large answers: no copy, no future. The view starts at the correlation id.

        :raises PeerError: no connection, so nothing was sent and the callback will not be called.
        """
        self._write(await self._connected(), build, _Pending(None, on_response), timeout_s)

    def _write(
        self, connection: _PeerConnection, build: BuildFrame, pending: _Pending, timeout_s: float
    ) -> None:
        if connection.transport is None:
            raise PeerUnavailableError(f"the connection to {self._name} was lost")
        if len(connection.pending) >= REQUESTS_IN_FLIGHT_MAX:
            raise PeerUnavailableError(f"{self._name} has too many requests in flight")
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        correlation_id = self._correlation_id
        # Before anybody waits: what cannot be built is never answered.
        frame = build(correlation_id)
        connection.pending[correlation_id] = pending
        pending.timer = Timer(
            "deadline of a request", partial(self._expire, connection, correlation_id)
        )
        pending.timer.set(timeout_s * 1000)
        for part in frame:
            connection.transport.write(part)

    def _expire(self, connection: _PeerConnection, correlation_id: int) -> None:
        pending = connection.pending.pop(correlation_id, None)
        if pending is not None:
            pending.settle(PeerTimeoutError(f"{self._name} did not answer in time"))
            # As Kafka's clients do: a silent connection is not trusted with the next request.
            connection.abort()

    async def _connected(self) -> _PeerConnection:
        if self._connection is not None and self._connection.transport is not None:
            return self._connection
        if self._is_closed:
            raise PeerUnavailableError(f"the client of {self._name} is closed")
        if self._connecting is None or self._connecting.done():
            self._connecting = self._tasks.start(self._connect())
        connecting = self._connecting
        # Waited for, not awaited: one caller that gives up must not end the attempt for the others,
        # and `close`, which ends it, cancels none of them.
        await asyncio.wait((connecting,))
        if connecting.cancelled():
            raise PeerUnavailableError(f"the client of {self._name} is closed")
        return connecting.result()

    async def _connect(self) -> _PeerConnection:
        loop = asyncio.get_running_loop()
        if loop.time() < self._next_attempt_s:
            raise type(self._last_failure)(f"{self._last_failure} (backing off)")
        try:
            if not is_host_name(self.host):
                raise OSError("that is neither a host's name nor an address")
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await loop.create_connection(
                    lambda: _PeerConnection(self._name, self._lost),
                    self.host,
                    self.port,
                    ssl=None if self._tls is None else self._tls.current(),
                )
                if self._login is not None:
                    await self._log_in(connection, self._login)
        except OSError as error:
            self._backoff_s = min(max(2 * self._backoff_s, BACKOFF_S_MIN), BACKOFF_S_MAX)
            self._next_attempt_s = loop.time() + self._backoff_s
            kind = PeerUnavailableError
            if isinstance(error, ConnectionRefusedError):
                kind = PeerRefusedError
            self._last_failure = kind(f"{self._name} cannot be reached: {error}")
            raise self._last_failure from error
        self._backoff_s = 0.0
        self._connection = connection
        return connection

    async def _log_in(self, connection: _PeerConnection, login: OwnLogin) -> None:
        async def ask(api_key: int, version: int, **fields: Any) -> Any:
            build = self._frame_of(codec.build_request(api_key, version, **fields))
            future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
            self._write(connection, build, _Pending(future, None), CONNECT_TIMEOUT_S)
            answer = self._decoded(api_key, version, await future)
            if answer.error_code is not ErrorCode.none:
                why = getattr(answer, "error_message", None) or answer.error_code.name
                raise PeerUnavailableError(f"{self._name} refuses our login: {why}")
            return answer

        async def send(token: bytes) -> bytes:
            return bytes((await ask(SASL_AUTHENTICATE, 2, auth_bytes=token)).auth_bytes)

        try:
            await ask(SASL_HANDSHAKE, 1, mechanism=login.mechanism)
            await tokens(login, send)
        except ScramError as error:
            connection.abort()
            raise PeerUnavailableError(f"{self._name} cannot log us in: {error}") from error
        except BaseException:
            connection.abort()  # nobody else knows of it yet
            raise

    def _frame_of(self, message: Any) -> BuildFrame:
        def build(correlation_id: int) -> Sequence[bytes]:
            frame = codec.encode_request(
                message, correlation_id=correlation_id, client_id=self._client_id
            )
            return (frame,)

        return build

    def _decoded(self, api_key: int, api_version: int, payload: bytes) -> Any:
        try:
            return codec.decode_response(api_key, api_version, payload)[1]
        except ProtocolError as error:
            raise PeerError(f"{self._name} answered with nonsense: {error}") from error

    def _lost(self) -> None:
        if self.on_lost is not None and not self._is_closed:
            self.on_lost()

    def disconnect(self) -> None:
        """Drop the connection, if there is one: requests in flight fail, the next one connects."""
        if self._connection is not None:
            self._connection.abort()

    async def close(self) -> None:
        """End the connection; requests in flight fail."""
        self._is_closed = True
        await self._tasks.stop()
        if self._connection is not None:
            self._connection.abort()
            await asyncio.sleep(0)
