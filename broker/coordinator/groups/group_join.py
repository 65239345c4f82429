"""JoinGroup on a classic group: newcomers, members with an id, static members that come back."""

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.groups.group_events import JoinRequested, JoinResult
from broker.coordinator.groups.group_state import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    ClassicGroup,
    GroupState,
)
from broker.coordinator.groups.roster import Member, build_member


def handle_join(group: ClassicGroup, event: JoinRequested) -> None:
    """Admit, park or refuse; a parked join is answered when the next generation starts."""
    error = _refusal(group, event)
    if error is CoordinatorError.GROUP_MAX_SIZE_REACHED:
        _turn_away(group, event)
    elif error is not CoordinatorError.NONE:
        _refuse(group, event, error)
    elif event.member_id == "":
        _join_newcomer(group, event)
    elif event.member_id in group.roster.pending and event.group_instance_id is None:
        _add_member(group, event, event.member_id)
    else:
        _rejoin(group, event)


def _refusal(group: ClassicGroup, event: JoinRequested) -> CoordinatorError:
    if group.state is GroupState.DEAD:
        return CoordinatorError.COORDINATOR_NOT_AVAILABLE
    if not _has_room(group, event):
        return CoordinatorError.GROUP_MAX_SIZE_REACHED
    if not event.protocol_type or not event.protocols:
        return CoordinatorError.INCONSISTENT_GROUP_PROTOCOL
    if len(group.roster) and not _is_compatible(group, event):
        return CoordinatorError.INCONSISTENT_GROUP_PROTOCOL
    return CoordinatorError.NONE


def _has_room(group: ClassicGroup, event: JoinRequested) -> bool:
    """Whether group.max.size admits the member (KIP-389; Kafka: acceptJoiningMember).

    While members rejoin, only those that came back count: the last ones beyond the size are out.
    Unlike in Kafka, a static member that restarts may always take over its own place.
    """
    roster = group.roster
    member = roster.members.get(
        event.member_id or roster.static.get(event.group_instance_id or "", "")
    )
    if group.state is not GroupState.PREPARING_REBALANCE:
        return member is not None or len(roster) < group.size_max
    returned = sum(it.join_token is not None for it in roster)
    return returned < group.size_max or (member is not None and member.join_token is not None)


def _turn_away(group: ClassicGroup, event: JoinRequested) -> None:
    """Refuse a member for which there is no room; it is out even if it was in before."""
    group.roster.pending.pop(event.member_id, None)
    if event.member_id in group.roster.members:
        group.remove_member(event.member_id, event.now_ms, "has no room")
    group.maybe_complete_join(event.now_ms)
    group.answer(
        event.token, JoinResult(error=CoordinatorError.GROUP_MAX_SIZE_REACHED, member_id="")
    )


def _is_compatible(group: ClassicGroup, event: JoinRequested) -> bool:
    """At least one assignor that everybody offers must remain."""
    offered = {protocol.name for protocol in event.protocols}
    return event.protocol_type == group.protocol_type and bool(
        offered & group.roster.candidate_protocols()
    )


def _refuse(group: ClassicGroup, event: JoinRequested, error: CoordinatorError) -> None:
    group.answer(event.token, JoinResult(error=error, member_id=event.member_id))


def _join_newcomer(group: ClassicGroup, event: JoinRequested) -> None:
    instance = event.group_instance_id
    if instance is not None and instance in group.roster.static:
        _replace_static(group, event, instance)
    elif instance is None and event.requires_known_member_id:
        group.roster.hand_out(event.new_member_id, event.now_ms + event.session_timeout_ms)
        required = JoinResult(
            error=CoordinatorError.MEMBER_ID_REQUIRED, member_id=event.new_member_id
        )
        group.answer(event.token, required)
    else:
        _add_member(group, event, event.new_member_id)


def _add_member(group: ClassicGroup, event: JoinRequested, member_id: str) -> None:
    if not len(group.roster):
        group.protocol_type = event.protocol_type
    member = build_member(event, member_id)
    member.join_token = event.token
    member.session_deadline_ms = event.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS
    group.roster.add(member)
    if group.initial_delay is not None:
        group.initial_delay.has_newcomer = True
    group.prepare_rebalance(event.now_ms, f"{member_id} joins")


def _rejoin(group: ClassicGroup, event: JoinRequested) -> None:
    error = group.roster.check(event.member_id, event.group_instance_id)
    if error is not CoordinatorError.NONE:
        _refuse(group, event, error)
        return
    member = group.roster.members[event.member_id]
    has_changed = _offers(event) != [(p.name, p.metadata) for p in member.protocols]
    is_leader = group.leader_id == event.member_id
    if group.state is GroupState.COMPLETING_REBALANCE and not has_changed:
        # It did not hear the answer of this generation: say it again.
        _answer_now(group, event, member)
    elif group.state is GroupState.STABLE and not has_changed and not is_leader:
        _answer_now(group, event, member)
    else:
        _update_and_rebalance(group, event, member)


def _offers(event: JoinRequested) -> list[tuple[str, bytes]]:
    return [(protocol.name, protocol.metadata) for protocol in event.protocols]


def _answer_now(group: ClassicGroup, event: JoinRequested, member: Member) -> None:
    member.renew_session(event.now_ms)
    group.answer(event.token, group.join_result(member))


def _update(group: ClassicGroup, event: JoinRequested, member: Member) -> None:
    member.protocols = tuple(event.protocols)
    member.session_timeout_ms = event.session_timeout_ms
    member.rebalance_timeout_ms = event.rebalance_timeout_ms
    member.client_id, member.client_host = event.client_id, event.client_host
    member.renew_session(event.now_ms)
    if member.join_token is not None:
        # The same member asks twice: only the newer request can still have a listener.
        stale = JoinResult(error=CoordinatorError.REBALANCE_IN_PROGRESS, member_id=member.member_id)
        group.answer(member.join_token, stale)
        member.join_token = None


def _update_and_rebalance(group: ClassicGroup, event: JoinRequested, member: Member) -> None:
    _update(group, event, member)
    member.join_token = event.token
    group.prepare_rebalance(event.now_ms, f"{member.member_id} rejoins")


def _replace_static(group: ClassicGroup, event: JoinRequested, instance: str) -> None:
    """A static member restarted without its member id: it takes over its own seat (KIP-345)."""
    old_id = group.roster.static[instance]
    old = group.roster.members[old_id]
    _fence(group, old)
    was_leader = group.leader_id == old_id
    chosen = _metadata_of(event, group.protocol_name)
    keeps_subscription = chosen == old.metadata(group.protocol_name)
    member = group.roster.replace_static(instance, event.new_member_id)
    if was_leader:
        group.leader_id = member.member_id
    _update(group, event, member)
    if group.state is GroupState.STABLE and keeps_subscription and _keeps_protocol(group):
        _take_seat(group, event, member)
        return
    member.join_token = event.token
    group.prepare_rebalance(event.now_ms, f"static member {instance} replaced")


def _metadata_of(event: JoinRequested, protocol_name: str | None) -> bytes:
    return next((p.metadata for p in event.protocols if p.name == protocol_name), b"")


def _keeps_protocol(group: ClassicGroup) -> bool:
    return group.roster.vote() == group.protocol_name


def _fence(group: ClassicGroup, old: Member) -> None:
    """Answers pending requests of a static member's old process with FENCED_INSTANCE_ID."""
    if old.join_token is not None:
        fenced = JoinResult(error=CoordinatorError.FENCED_INSTANCE_ID, member_id=old.member_id)
        group.answer(old.join_token, fenced)
        old.join_token = None
    if old.sync_token is not None:
        group.answer_sync(old, CoordinatorError.FENCED_INSTANCE_ID)


def _take_seat(group: ClassicGroup, event: JoinRequested, member: Member) -> None:
    """No rebalance: the member goes on with the assignment of the running generation.

    A leader that cannot be told to skip the assignment gets no member list and somebody else's
    id as the leader's, so that it does not assign anew.
    """
    group.store()
    is_leader = group.leader_id == member.member_id
    result = group.join_result(member, skip_assignment=is_leader and event.may_skip_assignment)
    if is_leader and not event.may_skip_assignment:
        result = JoinResult(
            member_id=member.member_id,
            generation_id=result.generation_id,
            protocol_type=result.protocol_type,
            protocol_name=result.protocol_name,
        )
    group.answer(event.token, result)
