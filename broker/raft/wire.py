"""The voters' messages as Kafka's: Vote v2, Begin/EndQuorumEpoch v1, Fetch v18 of one partition,
FetchSnapshot v1.

A layout tells where Kafka's message has the fields of ours; a dot leads into a part of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from operator import attrgetter
from typing import Any, Final, TypeVar

from broker.log.names import METADATA_TOPIC_ID
from broker.metadata.topic_names import METADATA_TOPIC
from broker.protocol import codec
from broker.protocol.errors import ProtocolError
from broker.raft.messages import (
    BeginEpochRequest,
    BeginEpochResponse,
    EndEpochRequest,
    EndEpochResponse,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Request,
    Response,
    RpcError,
    VoteRequest,
    VoteResponse,
)
from broker.raft.snapshot_id import SnapshotId

WAIT_MS_MAX: Final = 10_000
"""So long a fetch waits at most, whatever it asks: its place is kept although its sender may go."""
NOBODY: Final = -1

FETCH: Final = 1
VOTE: Final = 52
BEGIN_QUORUM_EPOCH: Final = 53
END_QUORUM_EPOCH: Final = 54
FETCH_SNAPSHOT: Final = 59
VERSIONS: Final[Mapping[int, int]] = {
    FETCH: 18,
    VOTE: 2,
    BEGIN_QUORUM_EPOCH: 1,
    END_QUORUM_EPOCH: 1,
    FETCH_SNAPSHOT: 1,
}

T = TypeVar("T")
_INCONSISTENT_CLUSTER_ID: Final = 104


class WireError(ProtocolError):
    """A message of a voter that is not about the metadata log, or not an answer to ours."""


class ForeignClusterError(WireError):
    """The peer belongs to another cluster."""


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class _At:
    """A place in Kafka's message, and how a value goes there and back; None stays away."""

    path: str
    write: Callable[[Any], Any] = _as_it_is
    read: Callable[[Any], Any] = _as_it_is


Places = Mapping[str, str | _At]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Where Kafka's message of one API has the fields of `kind`, about one partition."""

    api_key: int
    kind: type[Any]
    partition: Places
    message: Places = field(default_factory=dict)
    topics: str = "topics"
    topic: Mapping[str, object] = field(default_factory=lambda: {"topic_name": METADATA_TOPIC})

    def write(self, ours: Any) -> dict[str, Any]:
        """Fields of Kafka's message."""
        topic = {**self.topic, "partitions": [_written(ours, self.partition)]}
        return {**_written(ours, self.message), self.topics: [topic]}

    def read(self, message: Any) -> Any:
        """Raises WireError."""
        topic = _only(getattr(message, self.topics))
        if getattr(topic, "topic_id", METADATA_TOPIC_ID) != METADATA_TOPIC_ID:
            raise WireError(f"fetch of topic id {topic.topic_id} on the controller listener")
        partition = _only(topic.partitions)
        return self.kind(**_read(message, self.message), **_read(partition, self.partition))


def _written(ours: Any, places: Places) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for name, at in places.items():
        path, value = at, getattr(ours, name)
        if isinstance(at, _At):
            path, value = at.path, at.write(value)
        if value is not None:
            *parts, last = str(path).split(".")
            target = written
            for part in parts:
                target = target.setdefault(part, {})
            target[last] = value
    return written


def _read(found: Any, places: Places) -> dict[str, Any]:
    values = {}
    for name, at in places.items():
        read = at.read if isinstance(at, _At) else _as_it_is
        values[name] = read(attrgetter(at.path if isinstance(at, _At) else at)(found))
    return values


def _only(items: tuple[T, ...]) -> T:
    if len(items) != 1:
        raise WireError(f"{len(items)} topics or partitions where one was expected")
    return items[0]


def _error(code: int) -> RpcError:
    try:
        return RpcError(int(code))
    except ValueError:
        raise WireError(f"refused with error {code!r}") from None


def _or_nobody(id_: int | None) -> int:
    return NOBODY if id_ is None else id_


def _or_none(id_: int) -> int | None:
    return None if id_ < 0 else id_


def _end_of(end: EpochEnd | SnapshotId | None) -> dict[str, int] | None:
    return None if end is None else {"epoch": end.epoch, "end_offset": end.end_offset}


def _snapshot_id(found: Any) -> SnapshotId:
    return SnapshotId(end_offset=found.end_offset, epoch=found.epoch)


def _maybe_snapshot_id(found: Any) -> SnapshotId | None:
    return _snapshot_id(found) if found.end_offset >= 0 else None


def _maybe_epoch_end(found: Any) -> EpochEnd | None:
    is_told = found.end_offset >= 0
    return EpochEnd(epoch=found.epoch, end_offset=found.end_offset) if is_told else None


def _bytes(found: Any) -> bytes:
    return bytes(found or b"")


def _wait_ms(found: timedelta) -> int:
    return min(round(found.total_seconds() * 1000), WAIT_MS_MAX)


def _candidates(ids: tuple[int, ...]) -> list[dict[str, int]]:
    return [{"candidate_id": id_} for id_ in ids]


def _ids(candidates: Any) -> tuple[int, ...]:
    return tuple(candidate.candidate_id for candidate in candidates)


_BY_ID: Final = {"topic_id": METADATA_TOPIC_ID}
_LEADER: Final = {"epoch": "leader_epoch", "leader_id": "leader_id"}
_ERROR: Final = _At(path="error_code", write=attrgetter("value"), read=_error)
_SNAPSHOT_ID: Final = _At(path="snapshot_id", write=_end_of, read=_snapshot_id)
_ANSWER: Final[Places] = {
    "error": _ERROR,
    "epoch": "leader_epoch",
    "leader_id": _At(path="leader_id", write=_or_nobody, read=_or_none),
}
_FETCH_ANSWER: Final[Places] = {
    "error": _ERROR,
    "epoch": "current_leader.leader_epoch",
    "leader_id": _At(path="current_leader.leader_id", write=_or_nobody, read=_or_none),
}
_WAIT: Final = _At(path="max_wait", read=_wait_ms)
_SUCCESSORS: Final = _At(path="preferred_candidates", write=_candidates, read=_ids)
_REQUESTS: Final = (
    _Layout(
        api_key=VOTE,
        kind=VoteRequest,
        partition={
            "candidate_id": "replica_id",
            "epoch": "replica_epoch",
            "last_epoch": "last_offset_epoch",
            "last_offset": "last_offset",
            "pre_vote": "pre_vote",
        },
    ),
    _Layout(api_key=BEGIN_QUORUM_EPOCH, kind=BeginEpochRequest, partition=_LEADER),
    _Layout(
        api_key=END_QUORUM_EPOCH,
        kind=EndEpochRequest,
        partition={**_LEADER, "preferred_successors": _SUCCESSORS},
    ),
    _Layout(
        api_key=FETCH,
        kind=FetchRequest,
        topic=_BY_ID,
        message={"replica_id": "replica_state.replica_id", "wait_ms_max": _WAIT},
        partition={
            "epoch": "current_leader_epoch",
            "fetch_offset": "fetch_offset",
            "last_fetched_epoch": "last_fetched_epoch",
            "high_watermark": "high_watermark",
        },
    ),
    _Layout(
        api_key=FETCH_SNAPSHOT,
        kind=FetchSnapshotRequest,
        topic={"name": METADATA_TOPIC},
        message={"replica_id": "replica_id", "bytes_max": "max_bytes"},
        partition={
            "epoch": "current_leader_epoch",
            "snapshot": _SNAPSHOT_ID,
            "position": "position",
        },
    ),
)
_RESPONSES: Final = (
    _Layout(
        api_key=VOTE,
        kind=VoteResponse,
        partition={**_ANSWER, "vote_granted": "vote_granted"},
    ),
    _Layout(api_key=BEGIN_QUORUM_EPOCH, kind=BeginEpochResponse, partition=_ANSWER),
    _Layout(api_key=END_QUORUM_EPOCH, kind=EndEpochResponse, partition=_ANSWER),
    _Layout(
        api_key=FETCH,
        kind=FetchResponse,
        topics="responses",
        topic=_BY_ID,
        partition={
            **_FETCH_ANSWER,
            "high_watermark": "high_watermark",
            "log_start_offset": "log_start_offset",
            "diverging": _At(path="diverging_epoch", write=_end_of, read=_maybe_epoch_end),
            "snapshot": _At(path="snapshot_id", write=_end_of, read=_maybe_snapshot_id),
            "records": _At(path="records", read=_bytes),
        },
    ),
    _Layout(
        api_key=FETCH_SNAPSHOT,
        kind=FetchSnapshotResponse,
        topic={"name": METADATA_TOPIC},
        partition={
            **_FETCH_ANSWER,
            "snapshot": _SNAPSHOT_ID,
            "position": "position",
            "size_bytes": "size",
            "data": _At(path="unaligned_records", read=_bytes),
        },
    ),
)
API_KEYS: Final[Mapping[type[Request], int]] = {it.kind: it.api_key for it in _REQUESTS}
_BY_KIND: Final[Mapping[type[Any], _Layout]] = {it.kind: it for it in (*_REQUESTS, *_RESPONSES)}
_REQUEST: Final = {it.api_key: it for it in _REQUESTS}
_RESPONSE: Final = {it.api_key: it for it in _RESPONSES}


def to_request(request: Request, *, cluster_id: str) -> Any:
    """kio's request entity."""
    layout = _BY_KIND[type(request)]
    api = layout.api_key, VERSIONS[layout.api_key]
    return codec.build_request(*api, cluster_id=cluster_id, **layout.write(request))


def from_request(api_key: int, message: Any) -> Request:
    """The request in kio's entity. Raises WireError."""
    request: Request = _REQUEST[api_key].read(message)
    return request


def to_response(response: Response) -> Any:
    """kio's response entity."""
    layout = _BY_KIND[type(response)]
    return codec.build_response(layout.api_key, VERSIONS[layout.api_key], **layout.write(response))


def from_response(request: Request, message: Any) -> Response:
    """The response to a request of ours. Raises WireError when it is an error of another kind."""
    if message.error_code == _INCONSISTENT_CLUSTER_ID:
        raise ForeignClusterError("it belongs to another cluster")
    if message.error_code != 0:
        raise WireError(f"refused with {message.error_code!r}")
    response: Response = _RESPONSE[API_KEYS[type(request)]].read(message)
    return response
