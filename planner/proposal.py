"""A proposal: what changes, what it moves, and its inverse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from control.model.ids import TopicPartition
from planner.columns import Numbers, columns_of
from planner.disks.stages import stages_of
from planner.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChange:
    """One partition's replicas before and after; bytes of one replica."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    size_bytes: int
    leader: int | None = None
    """Leads while it moves; None: unknown."""
    stage: int = 0
    """Changes of earlier stages end first: their room on disks is needed."""

    @property
    def key(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)

    @property
    def sender(self) -> int:
        """Broker that sends every copy: the leader, or where that is unknown the preferred one."""
        return self.before[0] if self.leader is None else self.leader

    @property
    def adding(self) -> tuple[int, ...]:
        """Brokers that receive a copy."""
        return tuple(id_ for id_ in self.after if id_ not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        """Brokers that drop theirs."""
        return tuple(id_ for id_ in self.before if id_ not in self.after)

    @property
    def moved_bytes(self) -> int:
        """Bytes that travel."""
        return self.size_bytes * len(self.adding)

    @property
    def has_new_leader(self) -> bool:
        """Whether the preferred leader changes."""
        return self.before[:1] != self.after[:1]

    @property
    def factor_words(self) -> str:
        """Words about the replication factor; empty if it stays."""
        before, after = len(self.before), len(self.after)
        if before == after:
            return ""
        return f"{before} {'replica becomes' if before == 1 else 'replicas become'} {after}"

    def inverse(self) -> "PartitionChange":
        """The change that rolls this one back. Its leader is not known yet."""
        return PartitionChange(
            topic=self.topic,
            partition=self.partition,
            before=self.after,
            after=self.before,
            size_bytes=self.size_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Changes by partition name; partitions that stay are absent."""

    name: str
    changes: tuple[PartitionChange, ...] = field(default=())

    @property
    def moved_replicas(self) -> int:
        """Replicas that travel."""
        return sum(len(change.adding) for change in self.changes)

    @property
    def moved_bytes(self) -> int:
        """Bytes that travel."""
        return sum(change.moved_bytes for change in self.changes)

    @property
    def moved_leaders(self) -> int:
        """Partitions whose preferred leader changes."""
        return sum(change.has_new_leader for change in self.changes)

    def targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Target replicas per changed partition."""
        return {change.key: change.after for change in self.changes}

    def inverse(self) -> "Proposal":
        """The proposal that rolls this one back: its last stage first."""
        last = max((change.stage for change in self.changes), default=0)
        inverse = (replace(it.inverse(), stage=last - it.stage) for it in self.changes)
        return Proposal(name=f"roll back {self.name}", changes=tuple(inverse))


def proposal_of(
    name: str,
    topology: Topology,
    targets: Mapping[TopicPartition, Sequence[int]],
    held: Numbers | None = None,
) -> Proposal:
    """The proposal that brings `topology` to `targets`, in stages where disks ask for them; entries
    that change nothing are left out. `held`: bytes on each broker, where they are known already.

    :raises KeyError: a target partition is not in the topology.
    """
    now = topology.named(targets)
    changes = []
    for key, replicas in sorted(targets.items()):
        partition = now[key]
        if tuple(replicas) != partition.replicas:
            changes.append(
                PartitionChange(
                    topic=key.topic,
                    partition=key.partition,
                    before=partition.replicas,
                    after=tuple(replicas),
                    size_bytes=partition.size_bytes,
                    leader=partition.leader,
                )
            )
    stages = stages_of(room_of(topology, held), changes).of if changes else {}
    staged = (replace(c, stage=stages[c.key]) if c.key in stages else c for c in changes)
    return Proposal(name=name, changes=tuple(staged))


def room_of(topology: Topology, held: Numbers | None = None) -> dict[int, int]:
    """Bytes free on each broker that tells it; below 0 where it holds more than its disks take."""
    most = {n: b for n, b in enumerate(topology.brokers) if b.capacity_bytes is not None}
    if not most:
        return {}
    held = columns_of(topology).held() if held is None else held
    return {b.id: (b.capacity_bytes or 0) - int(held[number]) for number, b in most.items()}
