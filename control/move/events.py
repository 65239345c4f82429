"""Events that travel through the events topic: what happened to an operation, as JSON v1.

`data` depends on the kind (``record_shapes``); its keys are read only by control.move.state, which
folds the events of one operation into its state.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Final

EVENTS_TOPIC: Final = "__partiscope_events"
EVENT_VERSION: Final = 1
MESSAGE_LENGTH_MAX: Final = 64 << 10
"""Characters of the line for people."""


class EventKind(StrEnum):
    """Kinds of events, in the order in which they can happen."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    STARTED = "started"
    THROTTLE_RECORDED = "throttle_recorded"
    """Written before the throttle is set, so that a crash never leaves one unrecorded."""
    WAVE_STARTED = "wave_started"
    PROGRESS = "progress"
    WAVE_DONE = "wave_done"
    PAUSED = "paused"
    RESUMED = "resumed"
    YIELDED = "yielded"
    """To consumer groups that fall behind (`groups`), or no longer (none)."""
    WINDOW = "window"
    """It waits until its window opens (`opens_ms`), or no longer (null)."""
    INTERFERED = "interfered"
    """Another tool changed what the operation had set (`changed`); `stops`: why it is paused then,
    `refused`: partitions that will not arrive."""
    CANCELLING = "cancelling"
    ELECTED = "elected"
    THROTTLE_REMOVED = "throttle_removed"
    NOTE = "note"
    FINISHED = "finished"
    JOURNAL = "journal"
    """A direct operation (create a topic, reset offsets, …) that some screen or script did."""


class Outcome(StrEnum):
    """How an operation ended."""

    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened, with a line for people."""

    operation_id: str
    kind: EventKind
    at_ms: int
    message: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    is_foreign: bool = False
    """Read from the bus without a proof that a known installation wrote it; it is not encoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledMove:
    """A partition that does not get on, and the cause as far as it shows."""

    topic: str
    partition: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingPartition:
    """One partition on its way; what cannot be said yet is null."""

    topic: str
    partition: int
    bytes_done: int
    """Of all its new replicas together."""
    bytes_total: int
    rate_bytes_per_s: float | None = None
    eta_s_low: float | None = None
    eta_s_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveProgress:
    """How far a reassignment is. ETA figures are null while nothing can be said."""

    bytes_done: int
    bytes_total: int
    partitions_done: int
    partitions_total: int
    wave: int
    """From 1; 0 before the first."""
    waves: int
    rate_bytes_per_s: float | None = None
    eta_s_low: float | None = None
    eta_s_high: float | None = None
    in_flight: tuple[str, ...] = ()
    """The first of those on their way."""
    in_flight_more: int = 0
    """How many more there are."""
    stalled: tuple[StalledMove, ...] = ()
    """The first of those that do not get on."""
    stalled_more: int = 0
    """How many more there are."""
    moving: tuple[MovingPartition, ...] = ()
    """The first of `in_flight`, with their figures."""
    spread_s: float = 0.0
    """Until the last is asked for, for producers' sake (see ``spreading``)."""

    @property
    def moving_count(self) -> int:
        """Partitions on their way."""
        return len(self.in_flight) + self.in_flight_more

    def document(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "MoveProgress":
        """The inverse of document(); what a newer release adds is left out."""
        known = _known(cls, document)
        known["in_flight"] = tuple(known.get("in_flight", ()))
        known["stalled"] = tuple(StalledMove(**s) for s in known.get("stalled", ()))
        moving = known.get("moving", ())
        known["moving"] = tuple(MovingPartition(**_known(MovingPartition, m)) for m in moving)
        return cls(**known)


def _known(kind: type, document: Mapping[str, Any]) -> dict[str, Any]:
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in document.items() if name in names}


def encode_event(event: Event) -> bytes:
    """The value of a record of the events topic."""
    document = {
        "v": EVENT_VERSION,
        "operation_id": event.operation_id,
        "kind": event.kind.value,
        "at_ms": event.at_ms,
        "message": _fitting(event.message),
        "data": event.data,
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _fitting(message: str) -> str:
    """No reader takes a longer one."""
    cut = message[: MESSAGE_LENGTH_MAX - 1]
    return message if len(message) <= MESSAGE_LENGTH_MAX else f"{cut}…"
