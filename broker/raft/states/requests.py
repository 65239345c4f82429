"""How a voter answers the others, whatever its state; epochs are judged here, once."""

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


def handle_request(core: RaftRoles, token: int, request: Request) -> None:
    """Answer one request now, or (a fetch) later."""
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


def adopt_epoch(core: RaftRoles, response: Response) -> Transition | None:
    """Follow what a response tells of a later epoch or of a leader, if it is news.

    A leader of our own epoch is news only for a voter that waits or asks for votes. A
    prospective voter does not take the word of others for the very leader that it gave up.
    """
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
    error = _vote_error(core, request)
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


def _vote_error(core: RaftRoles, request: VoteRequest) -> RpcError:
    if not core.config.is_voter or request.candidate_id not in core.config.voter_ids:
        return RpcError.INCONSISTENT_VOTER_SET
    return RpcError.FENCED_LEADER_EPOCH if request.epoch < core.epoch else RpcError.NONE


def _is_up_to_date(core: RaftRoles, request: VoteRequest) -> bool:
    """Raft's election restriction: only a log that holds all of ours may win our vote."""
    return (request.last_epoch, request.last_offset) >= (core.log.last_epoch, core.log.end_offset)


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
