"""One member of a consumer group, and how it comes to what it shall have. Pure.

A member holds `assigned`. What it must give up lies in `revoking` until it no longer reports it as
owned; what it shall get is added once nobody holds it any more. Its epoch becomes that of the
target as soon as nothing is left to give up.

| state                 | waits for                                             |
|-----------------------|-------------------------------------------------------|
| STABLE                | a new target                                          |
| UNREVOKED_PARTITIONS  | the member, which still owns what it must give up     |
| UNRELEASED_PARTITIONS | others, which still hold partitions of its target     |

Source: KIP-848, CurrentAssignmentBuilder and ConsumerGroupMember of Kafka's group-coordinator.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final
from uuid import UUID

Assigned = Mapping[UUID, frozenset[int]]
"""Partitions by topic id; no topic without partitions."""

NOTHING: Final[Assigned] = {}
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2
"""A static member is away and will come back."""


class MemberState(IntEnum):
    """Numbers as in the records of __consumer_offsets."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """A member as the log keeps it."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    """A pattern of RE2; empty: it names its topics."""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assigned = field(default_factory=dict)
    revoking: Assigned = field(default_factory=dict)

    @property
    def held(self) -> Assigned:
        """Partitions that nobody else may get yet."""
        return union(self.assigned, self.revoking)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has all of the target of that epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch


def union(one: Assigned, other: Assigned) -> Assigned:
    """Partitions of either."""
    if not one or not other:
        return one or other
    return {it: one.get(it, frozenset()) | other.get(it, frozenset()) for it in {**one, **other}}


def without(one: Assigned, other: Assigned) -> Assigned:
    """Partitions of the first that the second lacks."""
    left = {topic: partitions - other.get(topic, frozenset()) for topic, partitions in one.items()}
    return {topic: partitions for topic, partitions in left.items() if partitions}


def common(one: Assigned, other: Assigned) -> Assigned:
    """Partitions of both."""
    both = {topic: partitions & other.get(topic, frozenset()) for topic, partitions in one.items()}
    return {topic: partitions for topic, partitions in both.items() if partitions}


def reconciled(
    member: ConsumerMember,
    *,
    target: Assigned,
    target_epoch: int,
    owned: Assigned | None,
    is_free: Callable[[UUID, int], bool],
) -> ConsumerMember:
    """The member one step nearer to its target.

    `owned` is what it told to own, None where it told nothing; `is_free` tells whether no member
    holds a partition.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch:
            return member
        case MemberState.UNREVOKED_PARTITIONS if _owns(owned, member.revoking):
            return member
    kept = common(member.assigned, target)
    revoking = without(member.assigned, target)
    wanted = without(target, kept)
    available = {it: frozenset(p for p in wanted[it] if is_free(it, p)) for it in wanted}
    available = {topic: partitions for topic, partitions in available.items() if partitions}
    if revoking and _owns(owned, revoking):
        state = MemberState.UNREVOKED_PARTITIONS
        return replace(member, state=state, assigned=kept, revoking=revoking)
    is_complete = not without(wanted, available)
    return replace(
        member,
        state=MemberState.STABLE if is_complete else MemberState.UNRELEASED_PARTITIONS,
        assigned=union(kept, available),
        revoking=NOTHING,
        epoch=target_epoch,
        previous_epoch=member.previous_epoch if member.epoch == target_epoch else member.epoch,
    )


def _owns(owned: Assigned | None, revoking: Assigned) -> bool:
    """Whether the member may still own some of it; one that tells nothing may."""
    return owned is None or bool(common(revoking, owned))
