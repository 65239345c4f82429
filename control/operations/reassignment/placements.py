"""Where partitions are and where they are going, as one reading shows it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from control.kafka.ports import AdminPort, OngoingReassignment, PartitionMetadata
from control.model.ids import TopicPartition
from planner.proposal import PartitionChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Placements:
    """Answers what an operation asks of its changes. Partitions that do not exist are absent."""

    placed: Mapping[TopicPartition, PartitionMetadata] = field(default_factory=dict)
    moving: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    is_settled: bool = False
    """Whether every broker has heard of the end of the operation to roll back."""

    def is_there(self, change: PartitionChange) -> bool:
        """Whether the partition is where it should be, and not moving."""
        placed = self.placed.get(change.key)
        return (
            placed is not None and change.key not in self.moving and placed.replicas == change.after
        )

    def is_moving(self, change: PartitionChange) -> bool:
        """Whether it is on its way to where it should be."""
        moving = self.moving.get(change.key)
        return moving is not None and set(moving.target_replicas) == set(change.after)

    def is_disordered(self, change: PartitionChange) -> bool:
        """Whether it rests on the replicas of before in another order, not the wanted one."""
        placed = self.placed.get(change.key)
        if placed is None or placed.replicas in (change.before, change.after):
            return False
        return change.key not in self.moving and set(placed.replicas) == set(change.before)

    def orders_found(self, changes: Iterable[PartitionChange]) -> dict[int, tuple[int, ...]]:
        """By place in ``changes`` the replicas of partitions that rest on those of before in
        another order, which a rollback is to restore."""
        return {
            place: self.placed[change.key].replicas
            for place, change in enumerate(changes)
            if self.is_disordered(change)
        }

    def is_reordered(self, change: PartitionChange) -> bool:
        """Whether it rests on the new replicas in another order than the wanted one."""
        placed = self.placed.get(change.key)
        if placed is None or change.key in self.moving or placed.replicas == change.after:
            return False
        return set(placed.replicas) == set(change.after) != set(change.before)

    def why_others(self, change: PartitionChange, *, is_asked: bool) -> str | None:
        """Why it is somebody else's to move now. What was asked for already (`is_asked`) may still
        be told of on the replicas of before and after together."""
        placed = self.placed.get(change.key)
        if change.key in self.moving:
            return None if self.is_moving(change) else "is being moved elsewhere by somebody else"
        ours = (set(change.before), set(change.after))
        if placed is None or set(placed.replicas) in ours or (is_asked and self.is_between(change)):
            return None
        return f"is on {list(placed.replicas)} now: somebody else has moved it"

    def why_left(self, change: PartitionChange, *, rolled_back: str) -> str | None:
        """Why a rollback leaves a partition alone: it is neither where the operation
        `rolled_back` left it or found it, nor on its way to either."""
        moving, placed = self.moving.get(change.key), self.placed.get(change.key)
        ours = (set(change.before), set(change.after))
        if moving is not None:
            target = moving.target_replicas
            is_ours = set(target) in ours
            return None if is_ours else f"is on its way to {list(target)} by now: left as it is"
        if placed is None or set(placed.replicas) in ours:
            return None
        now = list(placed.replicas)
        return f"is on {now} by now, not where {rolled_back} left it: left as it is"

    def is_between(self, change: PartitionChange) -> bool:
        """Whether it rests on the replicas of before and after together: somebody added some, or
        the broker that was asked has not heard of the end of a move."""
        placed = self.placed.get(change.key)
        if placed is None or change.key in self.moving:
            return False
        before, after, now = set(change.before), set(change.after), set(placed.replicas)
        return now == before | after and now not in (before, after)

    def leaders(self) -> dict[TopicPartition, int]:
        """Present leaders."""
        return {key: partition.leader for key, partition in self.placed.items()}


def left_as_they_are(
    places: Placements, changes: Iterable[PartitionChange], *, rolled_back: str | None
) -> dict[TopicPartition, str]:
    """Partitions that others have moved since the operation `rolled_back`, with a reason; none
    without one."""
    if rolled_back is None:
        return {}
    told = {
        c.key: places.why_left(c, rolled_back=rolled_back)
        for c in changes
        if places.is_settled or not places.is_between(c)
    }
    return {key: why for key, why in told.items() if why is not None}


async def read_placements(admin: AdminPort, names: Iterable[str]) -> Placements:
    """Placements of the partitions of these topics that exist.

    :raises KafkaPortError: the cluster refuses or does not answer.
    """
    # Order matters: a move that ends between the two is seen as done, not as lost.
    moving = await admin.list_reassignments()
    topics = await admin.topics(sorted(set(names)), leaves_out_unknown=True)
    return Placements(
        placed={partition.key: partition for topic in topics for partition in topic.partitions},
        moving={reassignment.key: reassignment for reassignment in moving},
    )
