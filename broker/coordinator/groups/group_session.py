"""SyncGroup, Heartbeat, LeaveGroup, passing time and the log's answers, on a classic group."""

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.groups.group_events import (
    Answer,
    GroupStored,
    GroupUnloaded,
    HeartbeatReceived,
    HeartbeatResult,
    JoinResult,
    LeaveRequested,
    LeaveResult,
    MemberIdentity,
    StoreGroup,
    SyncRequested,
    SyncResult,
    TimePassed,
)
from broker.coordinator.groups.group_state import ClassicGroup, GroupState
from broker.coordinator.groups.roster import Member


def handle_sync(group: ClassicGroup, event: SyncRequested) -> None:
    """Park until the leader's assignment is stored, or hand out the stored one."""
    error = _check_sync(group, event)
    if error is not CoordinatorError.NONE:
        group.answer(event.token, SyncResult(error=error))
        return
    member = group.roster.members[event.member_id]
    member.renew_session(event.now_ms)
    if group.state is GroupState.STABLE:
        member.has_synced = True
        _end_sync_wait(group)
        group.answer(event.token, sync_result(group, member))
        return
    if member.sync_token is not None:
        group.answer_sync(member, CoordinatorError.REBALANCE_IN_PROGRESS)
    member.sync_token, member.has_synced = event.token, True
    if event.member_id == group.leader_id:
        group.effects.append(StoreGroup(snapshot=group.snapshot(dict(event.assignments))))


def _check_sync(group: ClassicGroup, event: SyncRequested) -> CoordinatorError:
    error = check_member(group, event)
    if error is not CoordinatorError.NONE:
        return error
    if event.protocol_type not in {None, group.protocol_type} or event.protocol_name not in {
        None,
        group.protocol_name,
    }:
        return CoordinatorError.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return CoordinatorError.REBALANCE_IN_PROGRESS
    return CoordinatorError.NONE


def check_member(group: ClassicGroup, event: SyncRequested | HeartbeatReceived) -> CoordinatorError:
    """Known member, not fenced, of this generation."""
    if group.state is GroupState.DEAD:
        return CoordinatorError.COORDINATOR_NOT_AVAILABLE
    error = group.roster.check(event.member_id, event.group_instance_id)
    if error is not CoordinatorError.NONE:
        return error
    is_current = event.generation_id == group.generation_id
    return CoordinatorError.NONE if is_current else CoordinatorError.ILLEGAL_GENERATION


def sync_result(group: ClassicGroup, member: Member) -> SyncResult:
    """The member's part of the running generation's assignment."""
    return SyncResult(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def handle_stored(group: ClassicGroup, event: GroupStored) -> None:
    """The leader's assignment is durable (or not): hand it out, or gather everybody again."""
    is_awaited = (
        group.state is GroupState.COMPLETING_REBALANCE
        and event.snapshot.generation_id == group.generation_id
        and bool(event.snapshot.members)
    )
    if not is_awaited:
        return
    if event.error is not CoordinatorError.NONE:
        group.fail_syncs(event.error)
        group.prepare_rebalance(event.now_ms, f"assignment not stored: {event.error}")
        return
    assignments = {member.member_id: member.assignment for member in event.snapshot.members}
    group.move(GroupState.STABLE, event.now_ms, "assignment stored")
    for member in group.roster:
        member.assignment = assignments.get(member.member_id, b"")
        if member.sync_token is not None:
            group.answer(member.sync_token, sync_result(group, member))
            member.sync_token = None
            member.renew_session(event.now_ms)
    _end_sync_wait(group)


def _end_sync_wait(group: ClassicGroup) -> None:
    if all(member.has_synced for member in group.roster):
        group.rebalance_deadline_ms = None


def handle_heartbeat(group: ClassicGroup, event: HeartbeatReceived) -> None:
    """Renew the session; tell the member when it has to rejoin."""
    error = check_member(group, event)
    if error is CoordinatorError.NONE:
        group.roster.members[event.member_id].renew_session(event.now_ms)
        if group.state is GroupState.PREPARING_REBALANCE:
            error = CoordinatorError.REBALANCE_IN_PROGRESS
    group.effects.append(Answer(token=event.token, result=HeartbeatResult(error=error)))


def handle_leave(group: ClassicGroup, event: LeaveRequested) -> None:
    """Take each one out; one answer for all."""
    if group.state is GroupState.DEAD:
        result = LeaveResult(error=CoordinatorError.COORDINATOR_NOT_AVAILABLE)
    else:
        verdicts = [(identity, _leave(group, identity, event.now_ms)) for identity in event.members]
        result = LeaveResult(members=tuple(verdicts))
    group.effects.append(Answer(token=event.token, result=result))


def _leave(group: ClassicGroup, identity: MemberIdentity, now_ms: int) -> CoordinatorError:
    roster, member_id = group.roster, identity.member_id
    if member_id in roster.pending:
        del roster.pending[member_id]
        group.maybe_complete_join(now_ms)
        return CoordinatorError.NONE
    if member_id == "" and identity.group_instance_id is not None:
        member_id = roster.static.get(identity.group_instance_id, "")
    error = roster.check(member_id, identity.group_instance_id)
    if error is CoordinatorError.NONE:
        group.remove_member(member_id, now_ms, "leaves")
    return error


def handle_time(group: ClassicGroup, event: TimePassed) -> None:
    """Expire unused ids and silent members, end waits that have lasted long enough."""
    now_ms = event.now_ms
    late_ids = [member_id for member_id, end in group.roster.pending.items() if end <= now_ms]
    for member_id in late_ids:
        del group.roster.pending[member_id]
    if late_ids:
        group.maybe_complete_join(now_ms)
    for member in [m for m in group.roster if _can_expire(m) and m.session_deadline_ms <= now_ms]:
        if member.member_id in group.roster.members:
            group.remove_member(member.member_id, now_ms, "missed its session")
    if group.rebalance_deadline_ms is not None and group.rebalance_deadline_ms <= now_ms:
        _end_wait(group, now_ms)


def _can_expire(member: Member) -> bool:
    """Silence counts unless the member's own request is parked here for a known member."""
    return member.is_new or not member.is_waiting


def _end_wait(group: ClassicGroup, now_ms: int) -> None:
    if group.state is not GroupState.PREPARING_REBALANCE:
        _drop_unsynced(group, now_ms)
        return
    delay = group.initial_delay
    if delay is not None and delay.has_newcomer and delay.remaining_ms > 0:
        step_ms = min(delay.step_ms, delay.remaining_ms)
        delay.remaining_ms -= step_ms
        delay.has_newcomer = False
        group.rebalance_deadline_ms = now_ms + step_ms
        return
    group.complete_join(now_ms)


def _drop_unsynced(group: ClassicGroup, now_ms: int) -> None:
    """Members that joined but never asked for their assignment hold the others up no longer."""
    group.rebalance_deadline_ms = None
    for member in [m for m in group.roster if not m.has_synced]:
        if member.member_id in group.roster.members:
            group.remove_member(member.member_id, now_ms, "never synced")


def handle_unloaded(group: ClassicGroup, event: GroupUnloaded) -> None:
    """Send everybody who waits to the new coordinator."""
    for member in group.roster:
        if member.join_token is not None:
            moved = JoinResult(error=event.error, member_id=member.member_id)
            group.answer(member.join_token, moved)
        if member.sync_token is not None:
            group.answer(member.sync_token, SyncResult(error=event.error))
    group.roster.members.clear()
    group.roster.static.clear()
    group.roster.pending.clear()
    group.rebalance_deadline_ms = group.initial_delay = None
    group.move(GroupState.DEAD, event.now_ms, f"unloaded: {event.error}")


def deadline_ms(group: ClassicGroup) -> int | None:
    """When the group next wants `TimePassed`; None when nothing can expire."""
    ends = [member.session_deadline_ms for member in group.roster if _can_expire(member)]
    ends.extend(group.roster.pending.values())
    if group.rebalance_deadline_ms is not None:
        ends.append(group.rebalance_deadline_ms)
    return min(ends, default=None)
