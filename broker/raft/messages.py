"""Messages between voters (KIP-595), free of any wire format.

`epoch` is the leader epoch of the quorum; in a response, epoch and leader are the responder's.
"""

from dataclasses import dataclass
from enum import Enum

from broker.raft.snapshot_id import SnapshotId


class RpcError(Enum):
    """Why a voter refused a request (Kafka's error codes of the same names)."""

    NONE = 0
    NOT_LEADER_OR_FOLLOWER = 6
    INVALID_REQUEST = 42
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    INCONSISTENT_VOTER_SET = 94
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnd:
    """The end offset (exclusive) of an epoch in a log."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequest:
    """A candidate asks for a vote; a pre-vote (KIP-996) only asks whether it would get one."""

    candidate_id: int
    epoch: int
    last_epoch: int
    last_offset: int
    pre_vote: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResponse:
    """The answer to a vote or pre-vote."""

    epoch: int
    leader_id: int | None
    vote_granted: bool
    error: RpcError = RpcError.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpochRequest:
    """A new leader announces itself (BeginQuorumEpoch)."""

    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpochResponse:
    """The answer to a leader's announcement."""

    epoch: int
    leader_id: int | None
    error: RpcError = RpcError.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEpochRequest:
    """A leader steps down and names its successors, best first (EndQuorumEpoch)."""

    leader_id: int
    epoch: int
    preferred_successors: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEpochResponse:
    """The answer to a leader's farewell."""

    epoch: int
    leader_id: int | None
    error: RpcError = RpcError.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """A follower asks for records; `fetch_offset` acknowledges all before it as flushed.

    `high_watermark` is what the follower knows, so that the leader answers at once when it
    knows a higher one (KIP-1166). `wait_ms_max` bounds the leader's wait for news.
    """

    replica_id: int
    epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    high_watermark: int
    wait_ms_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse:
    """Records from the fetch offset on, or where the follower's log diverges, or which snapshot
    it has to fetch first because the leader's log does not reach back as far.
    """

    epoch: int
    leader_id: int | None
    high_watermark: int = -1
    log_start_offset: int = 0
    diverging: EpochEnd | None = None
    snapshot: SnapshotId | None = None
    records: bytes = b""
    error: RpcError = RpcError.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotRequest:
    """A follower asks for bytes of a snapshot, from `position` of its file on (KIP-630)."""

    replica_id: int
    epoch: int
    snapshot: SnapshotId
    position: int
    bytes_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotResponse:
    """Bytes of a snapshot whose file has `size_bytes` in all."""

    epoch: int
    leader_id: int | None
    snapshot: SnapshotId
    position: int = 0
    size_bytes: int = 0
    data: bytes = b""
    error: RpcError = RpcError.NONE


Request = VoteRequest | BeginEpochRequest | EndEpochRequest | FetchRequest | FetchSnapshotRequest
Response = (
    VoteResponse | BeginEpochResponse | EndEpochResponse | FetchResponse | FetchSnapshotResponse
)
