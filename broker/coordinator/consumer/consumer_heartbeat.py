"""ConsumerGroupHeartbeat on a consumer group: join, follow, leave. Pure.

Order of Kafka's GroupMetadataManager: who asks, what it subscribes to, the group's epoch, the
target, one step towards it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from broker.coordinator.consumer.consumer_group import ConsumerGroup, Topics
from broker.coordinator.consumer.consumer_member import (
    LEAVE_STATIC_EPOCH,
    NOTHING,
    Assigned,
    ConsumerMember,
    MemberState,
    reconciled,
    without,
)
from broker.coordinator.consumer.consumer_records import KeyValue, regex_record
from broker.coordinator.errors import CoordinatorError


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeat:
    """A request; None means unchanged since the one before."""

    member_id: str
    epoch: int
    """0 to join, -1 to leave, -2 of a static member that comes back."""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Assigned | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def is_full(self) -> bool:
        """Whether it tells everything, as after a lost answer: then it is told everything."""
        has_subscription = self.topics is not None or self.regex is not None
        is_whole = has_subscription and self.owned is not None and self.rebalance_timeout_ms != -1
        return self.epoch == 0 or is_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswer:
    """Answer to the member; `assignment` None: as before."""

    error: CoordinatorError = CoordinatorError.NONE
    reason: str | None = None
    member_id: str | None = None
    epoch: int = 0
    assignment: Assigned | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatContext:
    """Topics, clocks and limits that a group looks at."""

    topics: Topics
    now_ms: int
    wall_ms: int
    metadata_offset: int
    size_max: int
    resolve: Callable[[str], frozenset[str]]
    """Topics that a regular expression names, and the member may see."""


def heartbeat(
    group: ConsumerGroup, asked: ConsumerHeartbeat, context: HeartbeatContext
) -> HeartbeatAnswer:
    """Let a member tell and be told; the group's records are to be written then."""
    found = _member(group, asked, context)
    if isinstance(found, HeartbeatAnswer):
        return found
    if asked.epoch < 0:
        return _leave(group, found, asked)
    member = _subscribed(group, found, asked, context)
    group.maybe_assign(context.topics)
    following = _reconciled(group, member, asked, context)
    has_new = asked.is_full or following.assigned != found.assigned
    return HeartbeatAnswer(
        member_id=member.member_id,
        epoch=following.epoch,
        assignment=following.assigned if has_new else None,
    )


def _refuse(error: CoordinatorError, reason: str) -> HeartbeatAnswer:
    return HeartbeatAnswer(error=error, reason=reason)


def _member(
    group: ConsumerGroup, asked: ConsumerHeartbeat, context: HeartbeatContext
) -> ConsumerMember | HeartbeatAnswer:
    """The member that asks, or a refusal, with which nothing has changed."""
    known = group.members.get(asked.member_id)
    if asked.instance_id is not None:
        seat = group.static_member(asked.instance_id)
        if asked.epoch == 0 and seat is not None and seat.member_id != asked.member_id:
            return _take_seat(group, seat, asked)
        if asked.epoch != 0:
            if seat is None:
                return _unknown(asked)
            if seat.member_id != asked.member_id:
                words = f"Static member {asked.member_id} with instance id {asked.instance_id} was "
                fenced = CoordinatorError.FENCED_INSTANCE_ID
                return _refuse(fenced, f"{words}fenced by member {seat.member_id}.")
    if asked.epoch == 0:
        return known or _newcomer(group, asked, context)
    if known is None:
        return _unknown(asked)
    if asked.epoch > 0 and (reason := _why_fenced(known, asked)):
        return _refuse(CoordinatorError.FENCED_MEMBER_EPOCH, reason)
    return known


def _unknown(asked: ConsumerHeartbeat) -> HeartbeatAnswer:
    words = f"Member {asked.member_id} is not a member of the group."
    return _refuse(CoordinatorError.UNKNOWN_MEMBER_ID, words)


def _take_seat(
    group: ConsumerGroup, seat: ConsumerMember, asked: ConsumerHeartbeat
) -> ConsumerMember | HeartbeatAnswer:
    if seat.epoch != LEAVE_STATIC_EPOCH:
        words = f"Static member {asked.member_id} with instance id {asked.instance_id} cannot join "
        reason = f"{words}the group because the instance id is owned by {seat.member_id} member."
        return _refuse(CoordinatorError.UNRELEASED_INSTANCE_ID, reason)
    return group.replace_static(seat, asked.member_id)


def _newcomer(
    group: ConsumerGroup, asked: ConsumerHeartbeat, context: HeartbeatContext
) -> ConsumerMember | HeartbeatAnswer:
    if len(group.members) >= context.size_max:
        words = (
            f"The consumer group has reached its maximum capacity of {context.size_max} members."
        )
        return _refuse(CoordinatorError.GROUP_MAX_SIZE_REACHED, words)
    return ConsumerMember(member_id=asked.member_id, instance_id=asked.instance_id)


def _why_fenced(member: ConsumerMember, asked: ConsumerHeartbeat) -> str:
    """Empty where its epoch is right: the newest, or the one before where the answer was lost."""
    if asked.epoch > member.epoch:
        words = f"The consumer group member has a greater member epoch ({asked.epoch}) than the one"
        return (
            f"{words} known by the group coordinator ({member.epoch}). The member must abandon "
            "all its partitions and rejoin."
        )
    has_heard = asked.epoch == member.epoch
    is_before = asked.epoch == member.previous_epoch and asked.owned is not None
    if has_heard or (is_before and not without(asked.owned or NOTHING, member.assigned)):
        return ""
    words = f"The consumer group member has a smaller member epoch ({asked.epoch}) than the one"
    return (
        f"{words} known by the group coordinator ({member.epoch}). The member must abandon all "
        "its partitions and rejoin."
    )


def _leave(
    group: ConsumerGroup, member: ConsumerMember, asked: ConsumerHeartbeat
) -> HeartbeatAnswer:
    if asked.epoch == LEAVE_STATIC_EPOCH:
        group.leave_for_a_while(member)
    else:
        group.remove(member.member_id)
    return HeartbeatAnswer(member_id=asked.member_id, epoch=asked.epoch)


def _subscribed(
    group: ConsumerGroup, known: ConsumerMember, asked: ConsumerHeartbeat, context: HeartbeatContext
) -> ConsumerMember:
    """The member as it is now; the group's epoch is newer where that or its topics changed."""
    member = _updated(known, asked)
    is_new = known.member_id not in group.members
    has_changed = is_new or (member.topics, member.regex) != (known.topics, known.regex)
    if is_new or member != known:
        group.write_member(member)
    if (has_changed or group.is_stale) and member.regex:
        has_changed |= _resolve(group, member.regex, context)
    if has_changed or group.is_stale:
        has_changed |= group.refresh(context.topics)
    if has_changed:
        group.bump_epoch()
    return member


def _updated(known: ConsumerMember, asked: ConsumerHeartbeat) -> ConsumerMember:
    told: Mapping[str, object] = {
        "rack_id": asked.rack_id,
        "topics": asked.topics,
        "regex": asked.regex,
        "assignor": asked.assignor,
        "rebalance_timeout_ms": None if asked.rebalance_timeout_ms == -1
        else asked.rebalance_timeout_ms,
    }  # fmt: skip
    return replace(
        known,
        client_id=asked.client_id,
        client_host=asked.client_host,
        **{name: value for name, value in told.items() if value is not None},  # type: ignore[arg-type]
    )


def _resolve(group: ConsumerGroup, regex: str, context: HeartbeatContext) -> bool:
    topics = context.resolve(regex)
    record: KeyValue = regex_record(
        group.group_id, regex, topics, context.metadata_offset, context.wall_ms
    )
    return group.resolve(regex, topics, record)


def _reconciled(
    group: ConsumerGroup,
    member: ConsumerMember,
    asked: ConsumerHeartbeat,
    context: HeartbeatContext,
) -> ConsumerMember:
    """One step nearer to the target, with the deadlines of that."""
    member_id = member.member_id
    following = reconciled(
        member,
        target=group.target.get(member_id, NOTHING),
        target_epoch=group.target_epoch,
        owned=asked.owned,
        is_free=group.is_free,
    )
    if following != member:
        group.write_current(following)
    group.renew_session(member_id, context.now_ms)
    if following.state is not MemberState.UNREVOKED_PARTITIONS:
        group.revocation_ends_ms.pop(member_id, None)
    elif following.revoking != member.revoking or member_id not in group.revocation_ends_ms:
        group.revocation_ends_ms[member_id] = context.now_ms + following.rebalance_timeout_ms
    return following
