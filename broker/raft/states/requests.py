"""How a voter answers the others, whatever its state; epochs are judged here, once."""

from typing import Any, Final

from broker.raft.messages import (
    BeginEpochRequest,
    BeginEpochResponse,
    EndEpochRequest,
    EndEpochResponse,
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    Response,
    RpcError,
    VoteRequest,
    VoteResponse,
)
from broker.raft.states.roles import RaftRoles
from broker.raft.states.transition import BecomeFollower, BecomeUnattached, Transition

EPOCH_FREE_MAX: Final = 2**30
"""Up to here any later epoch is believed: who was away may have missed many elections."""
EPOCH_STEP_MAX: Final = 1_000
"""Beyond that an epoch may be so much later than ours. So nobody ends all elections by naming the
last epoch that there is."""


def handle_request(core: RaftRoles, token: int, request: Request) -> None:
    """Answer one request now, or (a fetch) later."""
    error = _refusal(core, request)
    if error is not None:
        _refuse(core, token, request, error)
        return
    match request:
        case VoteRequest():
            _handle_vote(core, token, request)
        case BeginEpochRequest():
            _handle_begin_epoch(core, token, request)
        case EndEpochRequest():
            _handle_end_epoch(core, token, request)
        case FetchRequest():
            _handle_fetch(core, token, request)
        case FetchSnapshotRequest():
            _handle_fetch_snapshot(core, token, request)


def _refusal(core: RaftRoles, request: Request) -> RpcError | None:
    """Why nothing of a request counts: no voter says that (KafkaRaftClient's checks)."""
    own_id, voters = core.config.node_id, core.config.voter_ids
    match request:
        case VoteRequest():
            sender = request.candidate_id
            last_epoch_max = request.epoch if request.pre_vote else request.epoch - 1
            is_sound = 0 <= request.last_epoch <= last_epoch_max and request.last_offset >= 0
        case BeginEpochRequest() | EndEpochRequest():
            sender = request.leader_id
            is_sound = request.epoch >= 0
        case FetchRequest():
            sender = request.replica_id
            is_sound = 0 <= request.last_fetched_epoch <= request.epoch
            is_sound = is_sound and request.fetch_offset >= 0
        case FetchSnapshotRequest():
            sender = request.replica_id
            is_sound = request.snapshot.end_offset >= 0
    is_of_voters = not isinstance(request, FetchRequest | FetchSnapshotRequest)
    is_unasked = isinstance(request, VoteRequest) and not core.config.is_voter
    if is_unasked or (is_of_voters and sender not in voters):
        return RpcError.INCONSISTENT_VOTER_SET
    is_sound = is_sound and sender >= 0 and sender != own_id and _is_credible(core, request.epoch)
    return None if is_sound else RpcError.INVALID_REQUEST


def _is_credible(core: RaftRoles, epoch: int) -> bool:
    return epoch <= max(EPOCH_FREE_MAX, core.epoch + EPOCH_STEP_MAX)


def _refuse(core: RaftRoles, token: int, request: Request, error: RpcError) -> None:
    known: dict[str, Any] = {"epoch": core.epoch, "leader_id": core.leader_id, "error": error}
    match request:
        case VoteRequest():
            core.reply(token, VoteResponse(vote_granted=False, **known))
        case BeginEpochRequest():
            core.reply(token, BeginEpochResponse(**known))
        case EndEpochRequest():
            core.reply(token, EndEpochResponse(**known))
        case FetchRequest():
            core.refuse_fetch(token, error)
        case FetchSnapshotRequest():
            core.refuse_fetch_snapshot(token, request, error)


def adopt_epoch(core: RaftRoles, response: Response) -> Transition | None:
    """Follow what a response tells of a later epoch or of a leader, if it is news.

    A leader of our own epoch is news only for a voter that waits or asks for votes. A
    prospective voter does not take the word of others for the very leader that it gave up.
    """
    if not _is_credible(core, response.epoch):
        return None
    leader_id = None if response.leader_id == core.config.node_id else response.leader_id
    if response.epoch > core.epoch and leader_id is None:
        return BecomeUnattached(epoch=response.epoch)
    if response.epoch < core.epoch or leader_id is None:
        return None
    if response.epoch == core.epoch:
        if core.state.name not in ("unattached", "prospective", "candidate", "seeking"):
            return None
        if getattr(core.state, "previous_leader", None) == leader_id:
            return None
    return BecomeFollower(epoch=response.epoch, leader_id=leader_id)


def _handle_vote(core: RaftRoles, token: int, request: VoteRequest) -> None:
    error = RpcError.FENCED_LEADER_EPOCH if request.epoch < core.epoch else RpcError.NONE
    is_granted = False
    if error is RpcError.NONE:
        if request.epoch > core.epoch:
            core.apply(BecomeUnattached(epoch=request.epoch))
        is_granted = _is_up_to_date(core, request) and core.state.grants(core, request)
    if is_granted and not request.pre_vote:
        core.apply(BecomeUnattached(epoch=request.epoch, voted_id=request.candidate_id))
    core.reply(
        token,
        VoteResponse(
            epoch=core.epoch, leader_id=core.leader_id, vote_granted=is_granted, error=error
        ),
    )


def _is_up_to_date(core: RaftRoles, request: VoteRequest) -> bool:
    """Raft's election restriction: only a log that holds all that ours held may win our vote."""
    return (request.last_epoch, request.last_offset) >= core.log.held_end


def _handle_begin_epoch(core: RaftRoles, token: int, request: BeginEpochRequest) -> None:
    error = RpcError.NONE
    if request.epoch < core.epoch:
        error = RpcError.FENCED_LEADER_EPOCH
    elif request.epoch > core.epoch or core.leader_id is None:
        core.apply(BecomeFollower(epoch=request.epoch, leader_id=request.leader_id))
    core.reply(token, BeginEpochResponse(epoch=core.epoch, leader_id=core.leader_id, error=error))


def _handle_end_epoch(core: RaftRoles, token: int, request: EndEpochRequest) -> None:
    """The first successor stands at once, each next one a step later."""
    error = RpcError.NONE
    if request.epoch < core.epoch:
        error = RpcError.FENCED_LEADER_EPOCH
    elif core.leader_id in (None, request.leader_id) and core.state.name in (
        "follower",
        "unattached",
    ):
        voted_id = core.voted_id if request.epoch == core.epoch else None
        patience_ms = _patience_ms(core, request)
        core.apply(
            BecomeUnattached(epoch=request.epoch, voted_id=voted_id, patience_ms=patience_ms)
        )
    core.reply(token, EndEpochResponse(epoch=core.epoch, leader_id=core.leader_id, error=error))


def _patience_ms(core: RaftRoles, request: EndEpochRequest) -> int:
    successors = request.preferred_successors
    if core.config.node_id not in successors:
        return core.config.election_timeout_ms
    return successors.index(core.config.node_id) * core.config.election_timeout_ms


def _handle_fetch(core: RaftRoles, token: int, request: FetchRequest) -> None:
    error = _epoch_error(core, request.epoch)
    if error is not None:
        core.refuse_fetch(token, error)
    else:
        core.state.handle_fetch(core, token, request)


def _handle_fetch_snapshot(core: RaftRoles, token: int, request: FetchSnapshotRequest) -> None:
    error = _epoch_error(core, request.epoch)
    if error is not None:
        core.refuse_fetch_snapshot(token, request, error)
    else:
        core.state.handle_fetch_snapshot(core, token, request)


def _epoch_error(core: RaftRoles, epoch: int) -> RpcError | None:
    if epoch < core.epoch:
        return RpcError.FENCED_LEADER_EPOCH
    return RpcError.UNKNOWN_LEADER_EPOCH if epoch > core.epoch else None
