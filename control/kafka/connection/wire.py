"""kio messages over aiokafka's connections: TLS, SASL and version look-up come from there.

A connection is an `AIOKafkaConnection`; `_KioRequest` is the adapter that makes a kio message look
like one of aiokafka's own requests. Versions are negotiated per broker, the highest in common
first. A request is sent to one broker by id, or to any that answers; sendings are bounded by
`KafkaSettings.attempts_max`.
"""

import asyncio
import io
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import aiokafka.client
from aiokafka.conn import AIOKafkaConnection, CloseReason, create_conn
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from broker.host_name import address_text, is_host_name
from broker.protocol import codec
from broker.protocol.errors import ProtocolError
from control.kafka.connection.handshake import (
    TICKET_ERRORS,
    is_refused,
    maybe_raise_for_good,
    next_step_after,
    reason_of,
)
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import (
    KafkaPortError,
    LoginError,
    TlsError,
    UnreachableError,
    UnsupportedApiError,
    WrongClusterError,
)

# Brokers create the topics that aiokafka's clients ask for: whoever sends to a topic while it is
# deleted would bring it back, with the usual configs.
aiokafka.client.MetadataRequest = partial(MetadataRequest, allow_auto_topic_creation=False)

METADATA_API: Final = 3
_CORRELATION_ID_AT: Final = 8
"""Behind size, API key and version."""
_NO_CONNECTION: Final = (OSError, KafkaError, TimeoutError)
NEXT_ADDRESS_AFTER_S: Final = 0.5
"""Without an answer the next bootstrap address is tried as well."""
ANSWERS_WITHIN_S: Final = 2.2
"""Somebody waits: a cluster that has said nothing by then is told to be unreachable."""
BROKER_ANSWERS_WITHIN_S: Final = 1.0
"""A broker that says nothing on a new connection for so long hangs, or is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """An API as this product speaks it: key, words for messages, and the versions we know."""

    key: int
    name: str
    versions: tuple[int, int]


_DESCRIBE_ITSELF: Final = Api(key=METADATA_API, name="describe itself", versions=(1, 12))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A decoded response and who sent it."""

    version: int
    message: Any
    broker: int | None
    sent_bytes: int = 0
    received_bytes: int = 0


class PreparedRequest:
    """Fields of a request that is sent again and again: encoded once per version."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self._encoded: dict[tuple[int, int, str], bytes] = {}

    def encode(self, api: Api, version: int, *, correlation_id: int, client_id: str) -> bytes:
        """The whole request, led by its size."""
        key = (api.key, version, client_id)
        encoded = self._encoded.get(key)
        if encoded is None:
            message = codec.build_request(api.key, version, **self._fields)
            encoded = codec.encode_request(message, correlation_id=0, client_id=client_id)
            self._encoded[key] = encoded
        place = _CORRELATION_ID_AT
        return encoded[:place] + correlation_id.to_bytes(4, "big") + encoded[place + 4 :]


Fields = Mapping[str, Any] | PreparedRequest


class _KioRequest:
    """Duck-types aiokafka's Request, RequestStruct, header and response type in one object."""

    def __init__(self, api: Api, fields: Fields) -> None:
        self._api = api
        self._fields = fields if isinstance(fields, PreparedRequest) else PreparedRequest(fields)
        self.version = -1
        self.sent_bytes = self.received_bytes = 0
        self._encoded = b""

    @property
    def RESPONSE_TYPE(self) -> "_KioRequest":
        return self

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> "_KioRequest":
        self.version = negotiate(self._api, versions.get(self._api.key))
        return self

    def build_request_header(self, correlation_id: int, client_id: str) -> "_KioRequest":
        encoded = self._fields.encode(
            self._api, self.version, correlation_id=correlation_id, client_id=client_id
        )
        self.sent_bytes = len(encoded)
        # aiokafka writes the size itself and joins header and body: all of it is the header.
        self._encoded = encoded[4:]
        return self

    def encode(self) -> bytes:
        encoded, self._encoded = self._encoded, b""
        return encoded

    def parse_response_header(self, payload: io.BytesIO) -> "_ResponseHeader":
        return _ResponseHeader(int.from_bytes(payload.getvalue()[:4], "big", signed=True))

    def decode(self, payload: io.BytesIO) -> Any:
        answer = payload.getvalue()
        self.received_bytes = len(answer)
        _, message = codec.decode_response(self._api.key, self.version, answer)
        return message

    def __repr__(self) -> str:
        return f"{self._api.name} v{self.version}"


@dataclass(frozen=True, slots=True)
class _ResponseHeader:
    correlation_id: int


def _closed_error() -> UnreachableError:
    return UnreachableError(
        "the connections to the cluster are closed",
        reason="the client was closed",
        next_step="ask again with a new client",
    )


def negotiate(api: Api, served: tuple[int, int] | None) -> int:
    """The highest version that both sides know.

    :raises UnsupportedApiError: there is none.
    """
    if served is None or served[0] > api.versions[1] or served[1] < api.versions[0]:
        raise UnsupportedApiError(api.name, served=served)
    return min(served[1], api.versions[1])


class KafkaWire:
    """Connections to the brokers of one cluster, opened when first needed.

    Not for use from several event loops. Close it.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self._connections: dict[int | None, AIOKafkaConnection] = {}
        self._locks: dict[int | None, asyncio.Lock] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self._next_any = 0
        self._is_closed = False
        self.controller_id: int | None = None
        """The broker to send to what only a controller does; null: any passes it on."""

    async def close(self) -> None:
        """Close every connection, for good; all of them also where waiting for it is cancelled."""
        self._is_closed = True
        connections, self._connections = self._connections, {}
        closing = [c.close(reason=CloseReason.SHUTDOWN) for c in connections.values()]
        waited_for = [closed for closed in closing if closed is not None]
        if waited_for:
            await asyncio.wait(waited_for)

    @property
    def bootstrap_address(self) -> str:
        """``host:port`` of the bootstrap address that has answered; empty: none has."""
        connection = self._connections.get(None)
        return "" if connection is None else address_text(connection.host, connection.port)

    def node_ids(self) -> tuple[int, ...]:
        """Brokers seen in the last metadata."""
        return tuple(self._addresses)

    async def live_nodes(self) -> tuple[int, ...]:
        """Brokers as any of them tells now.

        :raises UnreachableError: none answers.
        """
        answer = await self.send(_DESCRIBE_ITSELF, {"topics": ()})
        self.set_addresses({b.node_id: (b.host, b.port) for b in answer.message.brokers})
        return self.node_ids()

    def set_addresses(self, addresses: Mapping[int, tuple[str, int]]) -> None:
        """Where brokers listen, as the latest metadata says; moved brokers are reconnected."""
        for node_id, address in self._addresses.items():
            if addresses.get(node_id, address) != address:
                self._drop(node_id)
        if addresses:
            self._addresses = dict(addresses)

    async def send(
        self,
        api: Api,
        fields: Fields,
        *,
        node_id: int | None = None,
        is_idempotent: bool = True,
    ) -> Answer:
        """Send to broker `node_id`, or to any broker; retried while nothing was answered.

        A request that is not idempotent is sent again only if it cannot have arrived.

        :raises UnreachableError: no answer within the bounds of the settings.
        :raises UnsupportedApiError: no common version.
        """
        story: Exception | None = None
        for attempt in range(self.settings.attempts_max):
            if attempt:
                await self._back_off(attempt)
                await self.maybe_refresh_addresses()
            try:
                key, connection = await self._connection(node_id, attempt)
            except _NO_CONNECTION as error:
                story = error
                continue
            try:
                return await self._exchange(key, connection, api, fields)
            except _NO_CONNECTION as error:
                story = error
                if not is_idempotent:
                    break
        raise self._unreachable(api, node_id, story)

    async def _exchange(
        self,
        key: int | None,
        connection: AIOKafkaConnection,
        api: Api,
        fields: Fields,
    ) -> Answer:
        request = _KioRequest(api, fields)
        try:
            message = await connection.send(request)
        except _NO_CONNECTION:
            # Later answers on this connection would be matched with the wrong requests.
            self._drop(key)
            raise
        return Answer(
            version=request.version,
            message=message,
            broker=key,
            sent_bytes=request.sent_bytes,
            received_bytes=request.received_bytes,
        )

    async def _connection(
        self, node_id: int | None, attempt: int
    ) -> tuple[int | None, AIOKafkaConnection]:
        key = node_id if node_id is not None else self._any_node(attempt)
        if key is not None and key not in self._addresses:
            # Outside the lock: the refresh itself needs a connection.
            await self.maybe_refresh_addresses()
        async with self._locks.setdefault(key, asyncio.Lock()):
            connection = self._connections.get(key)
            if connection is not None and connection.connected():
                return key, connection
            if self._is_closed:
                raise _closed_error()
            if key is None:
                opened = await self._open_bootstrap()
            else:
                opened = await self._open_node(key)
            self._connections[key] = opened
            if self._is_closed:
                # Of two questions asked together one goes on when the other has failed.
                self._drop(key)
                raise _closed_error()
            return key, opened

    def _any_node(self, attempt: int) -> int | None:
        """A connected broker first, then the others in turn, then the bootstrap addresses."""
        if attempt == 0:
            for node_id, connection in self._connections.items():
                if connection.connected():
                    return node_id
        choices: list[int | None] = [*self._addresses, None]
        self._next_any += 1
        return choices[self._next_any % len(choices)]

    async def _open_bootstrap(self) -> AIOKafkaConnection:
        """The first address that answers. One that says nothing for a while does not keep the next
        one waiting: a hung broker must not hide a living cluster."""
        addresses = self.settings.addresses()
        if not addresses:
            raise ConnectionError("no bootstrap address")
        opening: list[asyncio.Task[AIOKafkaConnection]] = []
        try:
            for address in addresses:
                opening.append(asyncio.create_task(self._open(address)))
                is_last = len(opening) == len(addresses)
                found = await _first(opening, None if is_last else NEXT_ADDRESS_AFTER_S)
                if found is not None:
                    return opening.pop(opening.index(found)).result()
        finally:
            await _give_up(opening)
        return opening[-1].result()  # raises why

    async def _open_node(self, node_id: int) -> AIOKafkaConnection:
        address = self._addresses.get(node_id)
        if address is None:
            raise ConnectionError(f"broker {node_id} is not among the live brokers")
        return await self._open(address)

    async def _open(self, address: tuple[str, int]) -> AIOKafkaConnection:
        settings = self.settings
        if not is_host_name(address[0]):
            raise ConnectionError(f"{address[0]!r} is neither a host's name nor an address")
        try:
            # Not wait_for: cancelled, it may raise what the attempt failed by instead.
            async with asyncio.timeout(settings.connect_timeout_ms / 1000):
                opened = await create_conn(
                    *address,
                    client_id=settings.client_id,
                    request_timeout_ms=settings.request_timeout_ms,
                    **settings.security_options(),
                )
        except (*_NO_CONNECTION, *TICKET_ERRORS) as error:
            maybe_raise_for_good(error, address, settings)
            raise
        except AssertionError as error:  # aiokafka's word for what no broker answers
            raise ConnectionError(str(error)) from error
        await _check_answering(opened, settings, address)
        return opened

    async def maybe_refresh_addresses(self) -> None:
        """Ask any reachable broker where the brokers are; quietly keep what we know if none is."""
        for _ in range(len(self._addresses) + 1):
            try:
                key, connection = await self._connection(None, 1)
                answer = await self._exchange(key, connection, _DESCRIBE_ITSELF, {"topics": ()})
            except _NO_CONNECTION:
                continue
            brokers = answer.message.brokers
            self.set_addresses({b.node_id: (b.host, b.port) for b in brokers})
            return

    async def _back_off(self, attempt: int) -> None:
        delay_ms = self.settings.backoff_ms << (attempt - 1)
        await asyncio.sleep(min(delay_ms, self.settings.backoff_ms_max) / 1000)

    def _drop(self, key: int | None) -> None:
        connection = self._connections.pop(key, None)
        if connection is not None:
            connection.close(reason=CloseReason.CONNECTION_BROKEN)

    def _unreachable(
        self, api: Api, node_id: int | None, story: Exception | None
    ) -> UnreachableError:
        where = self.settings.bootstrap if node_id is None else f"broker {node_id}"
        if node_id in self._addresses:
            host, port = self._addresses[node_id]
            where += f" at {address_text(host, port)}"
        unread = _protocol_error_of(story)
        if unread is not None:
            return UnreachableError(
                f"the answer of {where} when asked to {api.name} could not be read",
                reason=str(unread),
                next_step="check that the address is a Kafka listener of the right protocol",
            )
        asked = "" if is_refused(story) else f" when asked to {api.name}"
        return UnreachableError(
            f"{where} did not answer{asked}",
            reason=reason_of(story),
            next_step=next_step_after(story, self.settings, is_any_broker=node_id is None),
        )


def _protocol_error_of(error: BaseException | None) -> ProtocolError | None:
    """Why an answer could not be read: aiokafka closes the connection, and names this as cause."""
    cause = None if error is None else error.__cause__
    return cause if isinstance(cause, ProtocolError) else None


async def _check_answering(
    opened: AIOKafkaConnection, settings: KafkaSettings, address: tuple[str, int]
) -> None:
    """Each time, since another cluster may have taken the address meanwhile.

    :raises WrongClusterError: it has.
    """
    wanted, found = settings.cluster_id, None
    if wanted is None:
        return
    try:
        message = await opened.send(_KioRequest(_DESCRIBE_ITSELF, {"topics": ()}))
        found = getattr(message, "cluster_id", None)
    finally:
        if found != wanted:
            opened.close(reason=CloseReason.SHUTDOWN)
    if found != wanted:
        where = ":".join(map(str, address))
        raise WrongClusterError(where, wanted=wanted, found=str(found))


async def _first(
    opening: list[asyncio.Task[AIOKafkaConnection]], timeout_s: float | None
) -> asyncio.Task[AIOKafkaConnection] | None:
    """The first of them that is open; None: all have failed, or time is up.

    :raises Exception: what is no matter of one address, such as wrong credentials.
    """
    until_s = None if timeout_s is None else time.monotonic() + timeout_s
    while pending := [task for task in opening if not task.done()]:
        left_s = None if until_s is None else until_s - time.monotonic()
        if left_s is not None and left_s <= 0:
            return None
        await asyncio.wait(pending, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        done = [task for task in pending if task.done()]
        for task in done:
            error = task.exception()
            if error is None:
                return task
            if not isinstance(error, _NO_CONNECTION):
                raise error
    return None


async def _give_up(opening: list[asyncio.Task[AIOKafkaConnection]]) -> None:
    """Close what was opened beside the one that is taken."""
    for task in opening:
        task.cancel()
    for result in await asyncio.gather(*opening, return_exceptions=True):
        if isinstance(result, AIOKafkaConnection):
            result.close(reason=CloseReason.SHUTDOWN)


async def address_that_answers(settings: KafkaSettings) -> str:
    """One of the bootstrap addresses: aiokafka's clients wait long for each that is silent.

    :raises UnreachableError: none answers, or another cluster than the one that is meant.
    """
    if len(settings.addresses()) < 2 and settings.cluster_id is None:
        return settings.bootstrap
    wire = KafkaWire(replace(settings, attempts_max=1))
    try:
        await wire.send(_DESCRIBE_ITSELF, {"topics": ()})
        return wire.bootstrap_address
    finally:
        await wire.close()


async def brokers_that_answer(
    settings: KafkaSettings, addresses: Mapping[int, tuple[str, int]]
) -> frozenset[int]:
    """Those of the brokers at these addresses that take a connection and say something on it
    within ``BROKER_ANSWERS_WITHIN_S``; a refused login is an answer."""
    wire = KafkaWire(replace(settings, attempts_max=1))
    wire.set_addresses(addresses)

    async def is_there(broker: int) -> bool:
        try:
            async with asyncio.timeout(BROKER_ANSWERS_WITHIN_S):
                await wire.send(_DESCRIBE_ITSELF, {"topics": ()}, node_id=broker)
        except (LoginError, TlsError):
            return True
        except (TimeoutError, KafkaPortError):
            return False
        return True

    try:
        found = await asyncio.gather(*map(is_there, addresses))
    finally:
        await wire.close()
    return frozenset(broker for broker, is_alive in zip(addresses, found, strict=True) if is_alive)


@asynccontextmanager
async def answers_soon(settings: KafkaSettings) -> AsyncIterator[None]:
    """Bounds what is asked of a cluster while somebody waits for it to begin.

    :raises UnreachableError: it is not done within ``ANSWERS_WITHIN_S``.
    """
    limit = asyncio.timeout(ANSWERS_WITHIN_S)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise UnreachableError(
            f"{settings.bootstrap} did not answer within {ANSWERS_WITHIN_S:g} s",
            reason="the brokers are down or hung, or the network loses what is sent",
            next_step=next_step_after(None, settings),
        ) from error


async def explain_unreachable(settings: KafkaSettings) -> None:
    """Ask once more by a connection of our own, whose errors say why; quiet when that works.

    :raises UnreachableError: the reason, which aiokafka's clients keep to their log.
    """
    wire = KafkaWire(replace(settings, attempts_max=1))
    try:
        await wire.send(_DESCRIBE_ITSELF, {"topics": ()})
    finally:
        await wire.close()
