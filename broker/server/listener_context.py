"""The parts that all connections of one listener share."""

from collections.abc import Callable
from dataclasses import dataclass, field

from broker.background import Tasks, log_failure
from broker.config.sasl import SaslConfig
from broker.handlers.registry import HandlerRegistry
from broker.handlers.services import NodeServices
from broker.protocol.frames import FRAME_BYTES_MAX, RequestMemory
from broker.protocol.request_context import PLAINTEXT
from broker.server.acceptor import Refusals
from broker.server.sasl import ScramUsers
from broker.server.tls import TlsContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerContext:
    """State that all connections of one listener share."""

    listener_name: str
    registry: HandlerRegistry
    node: NodeServices
    connections_max: Callable[[], int]
    frame_bytes_max: int = FRAME_BYTES_MAX
    security_protocol: int = PLAINTEXT
    tls: TlsContext | None = None
    """None where nothing is encrypted."""
    sasl: SaslConfig | None = None
    """None where nobody logs in."""
    scram: ScramUsers | None = None
    """Where there is SASL."""
    reserve: int = 0
    """Connections beyond the limit, for those whose first request is a broker's."""
    is_peer: Callable[[memoryview], bool] = lambda _: False
    """Whether a request is a broker's, as far as it says itself."""
    is_throttled: bool = False
    """Whether quotas of clients are asked."""
    refusals: Refusals = field(default_factory=Refusals)
    memory: RequestMemory = field(default_factory=RequestMemory)
    tasks: Tasks = field(default_factory=lambda: Tasks("request handlers", log_failure))
    """Running coroutine handlers, above all: they finish even when their client has gone."""
