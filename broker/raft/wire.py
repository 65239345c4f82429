"""The voters' messages as Kafka's: Vote v2, Begin/EndQuorumEpoch v1, Fetch v18 of one partition,
FetchSnapshot v1.
"""

from collections.abc import Callable, Mapping
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

API_KEYS: Final[Mapping[type[Request], int]] = {
    FetchRequest: FETCH,
    VoteRequest: VOTE,
    BeginEpochRequest: BEGIN_QUORUM_EPOCH,
    EndEpochRequest: END_QUORUM_EPOCH,
    FetchSnapshotRequest: FETCH_SNAPSHOT,
}

T = TypeVar("T")
_INCONSISTENT_CLUSTER_ID: Final = 104


class WireError(ProtocolError):
    """A message of a voter that is not about the metadata log, or not an answer to ours."""


class ForeignClusterError(WireError):
    """The peer belongs to another cluster."""


def to_request(request: Request, *, cluster_id: str) -> Any:
    """kio's request entity."""
    api_key = API_KEYS[type(request)]
    fields = _REQUEST_FIELDS[type(request)](request)
    return codec.build_request(api_key, VERSIONS[api_key], cluster_id=cluster_id, **fields)


def from_request(api_key: int, message: Any) -> Request:
    """The request in kio's entity. Raises WireError."""
    read: Callable[[Any], Request] = _REQUEST_READERS[api_key]
    return read(message)


def to_response(response: Response) -> Any:
    """kio's response entity."""
    if isinstance(response, FetchResponse):
        return _to_fetch_response(response)
    if isinstance(response, FetchSnapshotResponse):
        return _to_snapshot_response(response)
    api_key = _RESPONSE_KEYS[type(response)]
    partition: dict[str, Any] = {
        "partition_index": 0,
        "error_code": response.error.value,
        "leader_id": _or_nobody(response.leader_id),
        "leader_epoch": response.epoch,
    }
    if isinstance(response, VoteResponse):
        partition["vote_granted"] = response.vote_granted
    topic = {"topic_name": METADATA_TOPIC, "partitions": [partition]}
    return codec.build_response(api_key, VERSIONS[api_key], error_code=0, topics=[topic])


def from_response(request: Request, message: Any) -> Response:
    """The response to a request of ours. Raises WireError when it is an error of another kind."""
    if message.error_code == _INCONSISTENT_CLUSTER_ID:
        raise ForeignClusterError("it belongs to another cluster")
    if message.error_code != 0:
        raise WireError(f"refused with {message.error_code!r}")
    if isinstance(request, FetchRequest):
        return _from_fetch_response(message)
    if isinstance(request, FetchSnapshotRequest):
        return _from_snapshot_response(message)
    partition = _only(_only(message.topics).partitions)
    error = _error(partition.error_code)
    leader_id = _or_none(partition.leader_id)
    epoch = int(partition.leader_epoch)
    match request:
        case VoteRequest():
            return VoteResponse(
                epoch=epoch,
                leader_id=leader_id,
                vote_granted=partition.vote_granted,
                error=error,
            )
        case BeginEpochRequest():
            return BeginEpochResponse(epoch=epoch, leader_id=leader_id, error=error)
        case EndEpochRequest():
            return EndEpochResponse(epoch=epoch, leader_id=leader_id, error=error)


def _topics(**partition: Any) -> dict[str, Any]:
    partition["partition_index"] = 0
    return {"topics": [{"topic_name": METADATA_TOPIC, "partitions": [partition]}]}


def _vote_fields(request: VoteRequest) -> dict[str, Any]:
    return _topics(
        replica_epoch=request.epoch,
        replica_id=request.candidate_id,
        last_offset_epoch=request.last_epoch,
        last_offset=request.last_offset,
        pre_vote=request.pre_vote,
    )


def _begin_fields(request: BeginEpochRequest) -> dict[str, Any]:
    return _topics(leader_id=request.leader_id, leader_epoch=request.epoch)


def _end_fields(request: EndEpochRequest) -> dict[str, Any]:
    candidates = [{"candidate_id": id_} for id_ in request.preferred_successors]
    return _topics(
        leader_id=request.leader_id, leader_epoch=request.epoch, preferred_candidates=candidates
    )


def _fetch_fields(request: FetchRequest) -> dict[str, Any]:
    partition = {
        "partition": 0,
        "current_leader_epoch": request.epoch,
        "fetch_offset": request.fetch_offset,
        "last_fetched_epoch": request.last_fetched_epoch,
        "high_watermark": request.high_watermark,
        "partition_max_bytes": 0,
    }
    return {
        "replica_state": {"replica_id": request.replica_id, "replica_epoch": -1},
        "max_wait": request.wait_ms_max,
        "min_bytes": 1,
        "topics": [{"topic_id": METADATA_TOPIC_ID, "partitions": [partition]}],
    }


def _snapshot_fields(request: FetchSnapshotRequest) -> dict[str, Any]:
    partition = {
        "partition": 0,
        "current_leader_epoch": request.epoch,
        "snapshot_id": _snapshot_id_fields(request.snapshot),
        "position": request.position,
    }
    return {
        "replica_id": request.replica_id,
        "max_bytes": request.bytes_max,
        "topics": [{"name": METADATA_TOPIC, "partitions": [partition]}],
    }


def _snapshot_id_fields(snapshot: SnapshotId) -> dict[str, Any]:
    return {"end_offset": snapshot.end_offset, "epoch": snapshot.epoch}


_REQUEST_FIELDS: Final[dict[type[Request], Callable[[Any], dict[str, Any]]]] = {
    VoteRequest: _vote_fields,
    BeginEpochRequest: _begin_fields,
    EndEpochRequest: _end_fields,
    FetchRequest: _fetch_fields,
    FetchSnapshotRequest: _snapshot_fields,
}


def _read_vote(message: Any) -> VoteRequest:
    partition = _only(_only(message.topics).partitions)
    return VoteRequest(
        candidate_id=int(partition.replica_id),
        epoch=int(partition.replica_epoch),
        last_epoch=int(partition.last_offset_epoch),
        last_offset=int(partition.last_offset),
        pre_vote=partition.pre_vote,
    )


def _read_begin(message: Any) -> BeginEpochRequest:
    partition = _only(_only(message.topics).partitions)
    return BeginEpochRequest(leader_id=int(partition.leader_id), epoch=int(partition.leader_epoch))


def _read_end(message: Any) -> EndEpochRequest:
    partition = _only(_only(message.topics).partitions)
    return EndEpochRequest(
        leader_id=int(partition.leader_id),
        epoch=int(partition.leader_epoch),
        preferred_successors=tuple(int(c.candidate_id) for c in partition.preferred_candidates),
    )


def _read_fetch(message: Any) -> FetchRequest:
    topic = _only(message.topics)
    if topic.topic_id != METADATA_TOPIC_ID:
        raise WireError(f"fetch of topic id {topic.topic_id} on the controller listener")
    partition = _only(topic.partitions)
    return FetchRequest(
        replica_id=int(message.replica_state.replica_id),
        epoch=int(partition.current_leader_epoch),
        fetch_offset=int(partition.fetch_offset),
        last_fetched_epoch=int(partition.last_fetched_epoch),
        high_watermark=int(partition.high_watermark),
        wait_ms_max=min(round(message.max_wait.total_seconds() * 1000), WAIT_MS_MAX),
    )


def _read_fetch_snapshot(message: Any) -> FetchSnapshotRequest:
    partition = _only(_only(message.topics).partitions)
    return FetchSnapshotRequest(
        replica_id=int(message.replica_id),
        epoch=int(partition.current_leader_epoch),
        snapshot=_snapshot_id(partition.snapshot_id),
        position=int(partition.position),
        bytes_max=int(message.max_bytes),
    )


def _snapshot_id(found: Any) -> SnapshotId:
    return SnapshotId(end_offset=int(found.end_offset), epoch=int(found.epoch))


_REQUEST_READERS: Final[dict[int, Callable[[Any], Request]]] = {
    VOTE: _read_vote,
    BEGIN_QUORUM_EPOCH: _read_begin,
    END_QUORUM_EPOCH: _read_end,
    FETCH: _read_fetch,
    FETCH_SNAPSHOT: _read_fetch_snapshot,
}

_RESPONSE_KEYS: Final[dict[type[Response], int]] = {
    VoteResponse: VOTE,
    BeginEpochResponse: BEGIN_QUORUM_EPOCH,
    EndEpochResponse: END_QUORUM_EPOCH,
}


def _to_fetch_response(response: FetchResponse) -> Any:
    leader = {"leader_id": _or_nobody(response.leader_id), "leader_epoch": response.epoch}
    partition: dict[str, Any] = {
        "partition_index": 0,
        "error_code": response.error.value,
        "high_watermark": response.high_watermark,
        "log_start_offset": response.log_start_offset,
        "current_leader": leader,
        "aborted_transactions": None,
        "records": response.records,
    }
    if response.diverging is not None:
        partition["diverging_epoch"] = {
            "epoch": response.diverging.epoch,
            "end_offset": response.diverging.end_offset,
        }
    if response.snapshot is not None:
        partition["snapshot_id"] = _snapshot_id_fields(response.snapshot)
    topic = {"topic_id": METADATA_TOPIC_ID, "partitions": [partition]}
    return codec.build_response(
        FETCH, VERSIONS[FETCH], error_code=0, throttle_time=0, responses=[topic]
    )


def _from_fetch_response(message: Any) -> FetchResponse:
    partition = _only(_only(message.responses).partitions)
    diverging = partition.diverging_epoch
    has_diverging = diverging.end_offset >= 0
    has_snapshot = partition.snapshot_id.end_offset >= 0
    return FetchResponse(
        epoch=int(partition.current_leader.leader_epoch),
        leader_id=_or_none(partition.current_leader.leader_id),
        high_watermark=int(partition.high_watermark),
        log_start_offset=int(partition.log_start_offset),
        diverging=(
            EpochEnd(epoch=int(diverging.epoch), end_offset=int(diverging.end_offset))
            if has_diverging
            else None
        ),
        snapshot=_snapshot_id(partition.snapshot_id) if has_snapshot else None,
        records=bytes(partition.records or b""),
        error=_error(partition.error_code),
    )


def _to_snapshot_response(response: FetchSnapshotResponse) -> Any:
    partition = {
        "index": 0,
        "error_code": response.error.value,
        "snapshot_id": _snapshot_id_fields(response.snapshot),
        "current_leader": {
            "leader_id": _or_nobody(response.leader_id),
            "leader_epoch": response.epoch,
        },
        "size": response.size_bytes,
        "position": response.position,
        "unaligned_records": response.data,
    }
    topic = {"name": METADATA_TOPIC, "partitions": [partition]}
    return codec.build_response(
        FETCH_SNAPSHOT, VERSIONS[FETCH_SNAPSHOT], throttle_time=0, error_code=0, topics=[topic]
    )


def _from_snapshot_response(message: Any) -> FetchSnapshotResponse:
    partition = _only(_only(message.topics).partitions)
    return FetchSnapshotResponse(
        epoch=int(partition.current_leader.leader_epoch),
        leader_id=_or_none(partition.current_leader.leader_id),
        snapshot=_snapshot_id(partition.snapshot_id),
        position=int(partition.position),
        size_bytes=int(partition.size),
        data=bytes(partition.unaligned_records or b""),
        error=_error(partition.error_code),
    )


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
    return None if id_ < 0 else int(id_)
