"""Inputs of a handler: the request, a place for its answer, and the node's services."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, Protocol

from broker.clock import Clock
from broker.config.broker_config import BrokerConfig
from broker.controller.controller_channel import ControllerChannel
from broker.coordinator.group_coordinator import GroupCoordinator
from broker.coordinator.producer_ids import ProducerIdAllocator
from broker.coordinator.transactions.transactions import Transactions
from broker.handlers.metadata_blobs import MetadataBlobs
from broker.handlers.request_time import RequestTime
from broker.log.log_manager import LogManager
from broker.metadata.authorization import Authorization
from broker.metadata.client_quotas import ClientQuotas
from broker.metadata.metadata_service import MetadataService
from broker.protocol import codec
from broker.protocol.errors import RequestHeader
from broker.protocol.request_context import RequestContext
from broker.replication.replica_manager import ReplicaManager


class Listener(Flag):
    """Where an API is served."""

    CLIENT = auto()
    CONTROLLER = auto()
    BOTH = CLIENT | CONTROLLER


class FileRange(Protocol):
    """A range of an open file that is sent without being read into the process.

    broker.log's FileSlice is one. Position and size are in bytes.
    """

    @property
    def fd(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    def handle_unreadable(self, error: OSError) -> None:
        """It was promised to a client and cannot be read."""


ResponsePart = bytes | bytearray | memoryview | FileRange


class ResponseSlot(Protocol):
    """One place in a connection's in-order queue of responses."""

    def complete(self, parts: Sequence[ResponsePart]) -> None:
        """Give the whole response, led by its 4-byte size, now or later, once.

        The parts must not refer to the request's frame: its buffer is reused.
        """

    def hold(self, size_bytes: int) -> None:
        """Count memory held until the answer: a client that holds too much is not heard further."""

    def when_gone(self, callback: Callable[[], None]) -> None:
        """Have `callback` called if the client goes before its answer."""

    def throttle(self, time_ms: int) -> None:
        """Hear nothing further from the client for so long; the answer itself may go out."""

    def no_response(self) -> None:
        """Give up the place without an answer (Produce with acks=0)."""

    def close_connection(self, reason: str) -> None:
        """Close the connection in place of an answer (Produce with acks=0 that failed)."""


class Request:
    """One request; its message is decoded when first asked for.

    `frame` is a view of the connection's buffer: valid while the handler runs synchronously, not
    after an await. The message of an `async def` handler is decoded before its task starts.
    """

    __slots__ = ("_message", "context", "frame", "header", "time")

    def __init__(self, header: RequestHeader, frame: memoryview, context: RequestContext) -> None:
        self.header = header
        self.frame = frame
        self.context = context
        self._message: Any = None
        self.time: RequestTime | None = None
        """Where a quota asks for it."""

    @property
    def spent_ns(self) -> int:
        """Time that it took so far, where a quota asks for it."""
        return 0 if self.time is None else self.time.spent_ns

    @property
    def api_key(self) -> int:
        """Kafka's number of the API."""
        return self.header.api_key

    @property
    def api_version(self) -> int:
        """The version that the client speaks."""
        return self.header.api_version

    @property
    def correlation_id(self) -> int:
        """The client's number of this request."""
        return self.header.correlation_id

    @property
    def client_id(self) -> str | None:
        """The client's name for itself."""
        return self.header.client_id

    @property
    def message(self) -> Any:
        """kio's entity of the request.

        :raises MalformedRequestError: the body does not follow the schema.
        """
        if self._message is None:
            self.decode()
        return self._message

    def about(self, message: Any) -> "Request":
        """The same client's request with another message."""
        request = Request(self.header, memoryview(b""), self.context)
        request._message = message
        return request

    def decode(self) -> None:
        """Read the message while the frame is still there.

        :raises MalformedRequestError: the body does not follow the schema.
        """
        self._message = codec.decode_body(self.header, self.frame)


@dataclass(slots=True, kw_only=True)
class NodeServices:
    """The parts of a running node that handlers use."""

    config: BrokerConfig
    clock: Clock
    metadata: MetadataService
    controller: ControllerChannel
    replicas: ReplicaManager
    logs: LogManager
    groups: GroupCoordinator
    producer_ids: ProducerIdAllocator
    transactions: Transactions
    authorization: Authorization = field(default_factory=Authorization)
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    metadata_blobs: MetadataBlobs = field(default_factory=MetadataBlobs)
