"""One change of a partition: who leads, who is in sync (Kafka's PartitionChangeBuilder).

Election, in order: the current leader stays when it may; else the first replica in assignment
order that is in the target ISR and active; else, only when an unclean election is allowed, the
first active replica, which then is the whole ISR; else nobody, and the ISR stays as it is, so
that its last members can lead again when they return.

Example: replicas 1,2,3, ISR 1,2, leader 1. Broker 1 is fenced: the target ISR is 2, so 2 leads
in the next leader epoch. Then 2 is fenced as well: the target ISR would be empty, so it stays 2
and the leader is -1. When 2 returns it is elected; 3 could only be by an unclean election.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from broker.metadata.image import NO_LEADER, PartitionImage
from broker.metadata.records import NO_LEADER_CHANGE, PartitionChangeRecord
from broker.metadata.replay import merge_partition

IsActive = Callable[[int], bool]


class Election(Enum):
    """How far an election may go."""

    ONLINE = "any live replica in sync, the current leader first"
    PREFERRED = "the preferred leader if it is live and in sync"
    UNCLEAN = "any live replica, in sync or not"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChange:
    """The wanted state of a partition; None leaves a part as it is."""

    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    election: Election = Election.ONLINE


def build_change(
    old: PartitionImage, change: PartitionChange, is_active: IsActive
) -> PartitionChangeRecord | None:
    """The record that makes the change, with the leader elected; None when nothing changes.

    A reassignment whose completion rule holds for the new ISR is completed in the same record.
    """
    wanted = complete_reassignment(_Wanted.of(old, change))
    leader, isr = _elect(old, wanted, change.election, is_active)
    record = PartitionChangeRecord(
        partition_id=old.partition,
        topic_id=old.topic_id,
        isr=_if_changed(isr, old.isr),
        leader=_leader_field(old, wanted, leader),
        replicas=_if_changed(wanted.replicas, old.replicas),
        adding_replicas=_if_changed(wanted.adding, old.adding_replicas),
        removing_replicas=_if_changed(wanted.removing, old.removing_replicas),
    )
    return None if _is_empty(record) else record


def changed_partition(old: PartitionImage, record: PartitionChangeRecord | None) -> PartitionImage:
    """The partition as it will be."""
    return old if record is None else merge_partition(old, record)


@dataclass(frozen=True, slots=True)
class _Wanted:
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @classmethod
    def of(cls, old: PartitionImage, change: PartitionChange) -> "_Wanted":
        return cls(
            isr=old.isr if change.isr is None else change.isr,
            replicas=old.replicas if change.replicas is None else change.replicas,
            adding=_or(change.adding_replicas, old.adding_replicas),
            removing=_or(change.removing_replicas, old.removing_replicas),
        )


def complete_reassignment(wanted: _Wanted) -> _Wanted:
    """End a reassignment whose target is in sync (PartitionReassignmentReplicas).

    Complete when the ISR without the removing replicas is not empty and contains the whole target:
    the adding replicas, and the kept ones too, or the copies that go would be the better ones.
    Example: replicas 1,2,3 with ISR 1 go to 2,3,4. When 4 joins, 1 stays until 2 and 3 are back.
    """
    if not wanted.adding and not wanted.removing:
        return wanted
    target = tuple(r for r in wanted.replicas if r not in wanted.removing)
    target_isr = tuple(r for r in wanted.isr if r not in wanted.removing)
    if not target_isr or not set(target) <= set(target_isr):
        return wanted
    return _Wanted(isr=target_isr, replicas=target, adding=(), removing=())


def _elect(
    old: PartitionImage, wanted: _Wanted, election: Election, is_active: IsActive
) -> tuple[int, tuple[int, ...]]:
    """The leader and the ISR it leads."""
    isr = wanted.isr or old.isr

    def may_lead(replica: int) -> bool:
        return replica in isr and is_active(replica)

    if election is Election.PREFERRED and may_lead(wanted.replicas[0]):
        return wanted.replicas[0], isr
    if old.leader in wanted.replicas and may_lead(old.leader):
        return old.leader, isr
    for replica in wanted.replicas:
        if may_lead(replica):
            return replica, isr
    if election is Election.UNCLEAN:
        for replica in wanted.replicas:
            if is_active(replica):
                return replica, (replica,)
    return NO_LEADER, isr


def _leader_field(old: PartitionImage, wanted: _Wanted, leader: int) -> int:
    """Names the leader when the leader epoch must rise: it changed, or a replica was dropped."""
    is_replica_dropped = not set(old.replicas) <= set(wanted.replicas)
    return leader if leader != old.leader or is_replica_dropped else NO_LEADER_CHANGE


def _if_changed(new: tuple[int, ...], old: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if new == old else new


def _or(value: tuple[int, ...] | None, default: tuple[int, ...]) -> tuple[int, ...]:
    return default if value is None else value


def _is_empty(record: PartitionChangeRecord) -> bool:
    return record.leader == NO_LEADER_CHANGE and all(
        part is None
        for part in (
            record.isr,
            record.replicas,
            record.adding_replicas,
            record.removing_replicas,
        )
    )
