"""Shapes of the records of the bus, judged before anything is folded: anybody who may write to its
topics may write anything.

A record is read to the whole shape of its kind or to one error. Nesting, numbers, names and what
is packed have bounds; keys that are not named here (of a newer release) are left out.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from control.move.change_codec import REPLICAS_MAX, unpack
from control.move.events import MESSAGE_LENGTH_MAX

_YEAR_10000_MS: Final = 253_402_300_800_000

OperationId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,100}\z")]
"""It stands in keys, links and lines of the log."""
Line = Annotated[str, StringConstraints(max_length=MESSAGE_LENGTH_MAX)]
Moment = Annotated[int, Field(ge=0, lt=_YEAR_10000_MS)]
"""Milliseconds since 1970."""
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Id = Annotated[int, Field(ge=0, lt=1 << 31)]
"""Of a broker or a partition."""
Seconds = Annotated[float, Field(allow_inf_nan=False)]
Replicas = Annotated[list[Id], Field(min_length=1, max_length=REPLICAS_MAX)]
Throttle = (
    Annotated[int, Field(ge=0, lt=1 << 63)] | Annotated[str, StringConstraints(max_length=40)]
)
_Entry = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,10}:[0-9]{1,10}\z")]
_Place = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,10}\z")]
_Orders = dict[_Place, Replicas]


class Change(TypedDict):
    """One change of a plan that is listed."""

    topic: Line
    partition: Id
    before: Replicas
    after: Replicas
    size: Count
    leader: NotRequired[Id | None]
    stage: NotRequired[Id]


class _Yields(TypedDict, total=False):
    mode: Literal["no", "pause", "slow"]
    behind_s: Seconds
    at_most_s: Seconds


class _Window(TypedDict):
    start: Annotated[str, StringConstraints(max_length=5)]
    until: Annotated[str, StringConstraints(max_length=5)]
    zone: Annotated[str, StringConstraints(max_length=100)]


class _Opens(TypedDict):
    opens_ms: Moment | None


class _MovingPartition(TypedDict):
    topic: Line
    partition: Id
    bytes_done: Count
    bytes_total: Count
    rate_bytes_per_s: NotRequired[Seconds | None]
    eta_s_low: NotRequired[Seconds | None]
    eta_s_high: NotRequired[Seconds | None]


class _Stalled(TypedDict):
    topic: Line
    partition: Id
    reason: Line


class _Progress(TypedDict):
    bytes_done: Count
    bytes_total: Count
    partitions_done: Count
    partitions_total: Count
    wave: Count
    waves: Count
    rate_bytes_per_s: NotRequired[Seconds | None]
    eta_s_low: NotRequired[Seconds | None]
    eta_s_high: NotRequired[Seconds | None]
    in_flight: NotRequired[list[Line]]
    in_flight_more: NotRequired[Count]
    stalled: NotRequired[list[_Stalled]]
    stalled_more: NotRequired[Count]
    moving: NotRequired[list[_MovingPartition]]
    spread_s: NotRequired[Seconds]


class _Accepted(TypedDict):
    who: Line
    reason: Line
    bootstrap: Line
    cluster_id: NotRequired[Line]
    rollback_of: OperationId | None
    submitted_ms: Moment
    throttle: NotRequired[Throttle | None]
    yields: NotRequired[_Yields]
    window: NotRequired[_Window | None]
    partitions: NotRequired[Count | None]
    planned_bytes: NotRequired[Count | None]
    changes: list[Change] | str
    is_foreign: NotRequired[bool]


class _Started(TypedDict):
    progress: _Progress
    expected_s: NotRequired[tuple[Seconds, Seconds] | None]
    empties: NotRequired[list[Id]]
    topic_ids: NotRequired[dict[Line, Line]]
    before: NotRequired[_Orders]


class _Throttled(TypedDict):
    rate: Count
    brokers: list[Id]
    entries: dict[Line, dict[Line, list[_Entry]]]
    former_rates: NotRequired[list[Count]]
    unreached: NotRequired[list[Id]]


class _Wave(TypedDict):
    wave: NotRequired[Count]
    before: NotRequired[_Orders]


class _Noted(TypedDict):
    refused: NotRequired[dict[Line, Line]]
    refused_act_ms: NotRequired[Moment]


class _Interfered(_Noted):
    changed: NotRequired[list[Line]]
    stops: NotRequired[Line]


class _Yielded(TypedDict):
    groups: NotRequired[list[Line]]


class _Cancelling(TypedDict):
    going_back: NotRequired[list[Id]]


class _Misses(TypedDict):
    foreseen: Seconds | None
    left: list[Seconds]
    is_adaptive: bool


class _Finished(TypedDict):
    outcome: Literal["done", "cancelled", "failed", "refused"]
    fates: NotRequired[str]
    misses: NotRequired[_Misses | None]
    progress: NotRequired[_Progress | None]


_Value = bool | Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] | Seconds | Line | None


class _Link(TypedDict):
    chain: Annotated[str, StringConstraints(max_length=64)]
    number: Annotated[int, Field(ge=1, lt=1 << 53)]
    before: Annotated[int, Field(ge=0, lt=1 << 53)]
    hash: Annotated[str, StringConstraints(max_length=64)]
    doubtful: Annotated[
        list[tuple[int, Annotated[str, StringConstraints(max_length=64)]]], Field(max_length=1000)
    ]


class _Journal(TypedDict, total=False):
    who: Line
    reason: Line
    outcome: Line
    bootstrap: Line
    cluster_id: Line
    before: dict[Line, _Value]
    after: dict[Line, _Value]
    error: Line
    link: _Link
    move: OperationId


class _Nothing(TypedDict):
    pass


_DATA: Final[Mapping[str, type]] = {
    "accepted": _Accepted,
    "refused": _Nothing,
    "started": _Started,
    "throttle_recorded": _Throttled,
    "wave_started": _Wave,
    "progress": _Progress,
    "wave_done": _Wave,
    "paused": _Nothing,
    "resumed": _Nothing,
    "yielded": _Yielded,
    "window": _Opens,
    "interfered": _Interfered,
    "cancelling": _Cancelling,
    "elected": _Nothing,
    "throttle_removed": _Nothing,
    "note": _Noted,
    "finished": _Finished,
    "journal": _Journal,
}
"""By the kind of an event."""


class _Event(TypedDict):
    operation_id: OperationId
    kind: Annotated[str, StringConstraints(max_length=40)]
    at_ms: Moment
    message: NotRequired[Line]
    data: NotRequired[dict[str, Any]]


class _Asked(TypedDict):
    operation_id: OperationId
    who: NotRequired[Line]
    reason: NotRequired[Line]
    submitted_ms: NotRequired[Moment]
    confirmed: NotRequired[Line]


class _Control(_Asked):
    kind: Literal["control"]
    action: Literal["pause", "resume", "cancel", "cancel_after_wave", "throttle"]
    throttle: NotRequired[Throttle | None]


class _Reassign(_Asked):
    kind: Literal["reassign"]
    bootstrap: Line
    cluster_id: NotRequired[Line]
    changes: list[Change] | str
    throttle: NotRequired[Throttle]
    partitions_per_wave: NotRequired[Annotated[int, Field(ge=1, lt=1 << 31)]]
    partitions_per_broker: NotRequired[Annotated[int, Field(ge=1, lt=1 << 31)] | None]
    wave_order: NotRequired[str]
    leaders_turn: NotRequired[str]
    spread_s: NotRequired[Annotated[float, Field(ge=0, allow_inf_nan=False)]]
    yields: NotRequired[_Yields]
    window: NotRequired[_Window | None]
    elects_preferred: NotRequired[bool]
    allows_replication_factor_change: NotRequired[bool]
    is_strict: NotRequired[bool]
    rollback_of: NotRequired[OperationId | None]
    topic_ids: NotRequired[dict[Line, Line]]


# Adapters are built at their first use: all of them together take a tenth of a second.


@cache
def _event_shape() -> TypeAdapter[Any]:
    return TypeAdapter(_Event)


@cache
def _data_shape(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_DATA[kind])


@cache
def _command_shape() -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[_Control | _Reassign, Field(discriminator="kind")])


def event_document(value: bytes) -> dict[str, Any]:
    """The JSON value of an event, with all that its kind asks for.

    :raises ValueError: it is none.
    """
    document = _read(_event_shape(), value)
    kind = document["kind"]
    if kind not in _DATA:
        raise ValueError(f"kind {kind!r} is unknown")
    data = _judged(_data_shape(kind), document.get("data", {}))
    if isinstance(data.get("changes"), str):
        unpack(data["changes"])
    return {**document, "data": data}


def command_document(value: bytes) -> dict[str, Any]:
    """The JSON value of a command.

    :raises ValueError: it is none.
    """
    document = _read(_command_shape(), value)
    if isinstance(document.get("changes"), str):
        unpack(document["changes"])
    return document


def _read(shape: TypeAdapter[Any], text: bytes) -> dict[str, Any]:
    try:
        return dict(shape.validate_json(text))
    except ValidationError as error:
        raise ValueError(_first_fault(error)) from error


def _judged(shape: TypeAdapter[Any], value: object) -> dict[str, Any]:
    try:
        return dict(shape.validate_python(value))
    except ValidationError as error:
        raise ValueError(_first_fault(error)) from error


def _first_fault(error: ValidationError) -> str:
    """The first of all faults, in few words: what is there is not quoted, since it may be long."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step)[:40] for step in first["loc"][:6])
    return f"{where}: {first['msg']}" if where else first["msg"]
