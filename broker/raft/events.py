"""Events of the quorum's core, and its effects."""

from dataclasses import dataclass

from broker.raft.messages import Request, Response
from broker.raft.ports import Flush
from broker.raft.snapshot_id import SnapshotId
from broker.raft.vote import Vote


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The core's deadline may have passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReceived:
    """Another voter asks; `token` names the exchange in the Reply effect."""

    token: int
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseReceived:
    """Another voter answered a request of ours."""

    peer: int
    request: Request
    response: Response


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFailed:
    """A request of ours got no answer; `is_refused` when nobody listens at the peer's port."""

    peer: int
    request: Request
    is_refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLost:
    """A connection to another voter ended: its process may be gone."""

    peer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushDue:
    """Appended records are to be made durable now (answers the effect FlushNeeded)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """The effect FlushBegun is done."""

    flush: Flush


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteWritten:
    """The vote of an effect VoteChanged is durable."""

    vote: Vote


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotForced:
    """The effect SnapshotFetched is done: the snapshot has its name, unless it is damaged."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True, kw_only=True)
class ResignRequested:
    """This node is about to stop: give leadership away."""


Event = (
    Tick
    | RequestReceived
    | ResponseReceived
    | RequestFailed
    | ConnectionLost
    | FlushDue
    | Flushed
    | VoteWritten
    | SnapshotForced
    | ResignRequested
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send a request to another voter and report its response or failure."""

    peer: int
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Answer a received request."""

    token: int
    response: Response


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushNeeded:
    """Deliver FlushDue soon; appends until then share one flush."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushBegun:
    """Run this, holding nobody up, and report it; several are run one after the other."""

    flush: Flush


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteChanged:
    """Make this durable, holding nobody up, and report it; in order with what FlushBegun tells."""

    vote: Vote


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFetched:
    """Check this snapshot and make it durable, holding nobody up, and report
    it; in order with what FlushBegun tells."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWatermarkAdvanced:
    """All records below are committed for ever."""

    high_watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotInstalled:
    """A snapshot from the leader has replaced the log: the state is the snapshot's now."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanged:
    """This node knows another leader, or none, for this epoch."""

    epoch: int
    leader_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterGone:
    """The leader found a voter's port closed: its process is gone."""

    voter_id: int


Effect = (
    Send
    | Reply
    | FlushNeeded
    | FlushBegun
    | VoteChanged
    | SnapshotFetched
    | HighWatermarkAdvanced
    | SnapshotInstalled
    | LeaderChanged
    | VoterGone
)
