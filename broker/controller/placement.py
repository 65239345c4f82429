"""Where new replicas go.

Goals, the first first: no broker twice in a partition; active brokers before fenced ones, and an
active preferred leader; the replicas of a partition on as many racks as possible; as many
leaders on each broker; followers that take turns in each position, which also evens the replicas
and spreads the load of a dead leader; another start for every topic. Kafka's
StripedReplicaPlacer has the same goals and turns rings of racks and brokers; counting instead of
turning stays even when racks differ in size.

Worked example, brokers 1,2,3 without racks, two replicas, order 1,2,3:
    partition 0: 1,2   partition 1: 3,1   partition 2: 2,3   partition 3: 1,3   ...
Racks a = {1,2} and b = {3,4}, two replicas:
    partition 0: 1,3   partition 1: 2,4   partition 2: 3,1   partition 3: 4,2   ...
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from broker.controller.errors import InvalidReplicationFactorError
from broker.raft.ports import Dice


@dataclass(frozen=True, slots=True, kw_only=True)
class UsableBroker:
    """A broker that may get replicas."""

    id: int
    rack: str | None
    is_active: bool


def place_replicas(
    brokers: Sequence[UsableBroker], *, partitions: int, replication_factor: int, dice: Dice
) -> list[tuple[int, ...]]:
    """The replicas of each of `partitions` new partitions, preferred leader first.

    Raises InvalidReplicationFactorError when there are too few brokers or none is active.
    """
    _check(brokers, replication_factor)
    placer = _Placer(brokers, dice)
    return [placer.place(replication_factor) for _ in range(partitions)]


class _Placer:
    """Counts what it has given to each broker; ties go by a random order."""

    def __init__(self, brokers: Sequence[UsableBroker], dice: Dice) -> None:
        self._brokers = _shuffled(brokers, dice)
        self._leaders: Counter[int] = Counter()
        self._replicas: Counter[int] = Counter()
        self._followers: Counter[tuple[int, int, int]] = Counter()

    def place(self, replication_factor: int) -> tuple[int, ...]:
        """The replicas of one more partition."""
        leader = min(
            (broker for broker in self._brokers if broker.is_active),
            key=lambda broker: (self._leaders[broker.id], self._replicas[broker.id]),
        )
        placed = [leader]
        while len(placed) < replication_factor:
            placed.append(self._next_follower(placed))
        self._leaders[leader.id] += 1
        for position, broker in enumerate(placed):
            self._replicas[broker.id] += 1
            self._followers[leader.id, position, broker.id] += 1
        return tuple(broker.id for broker in placed)

    def _next_follower(self, placed: Sequence[UsableBroker]) -> UsableBroker:
        """Positions count, because the first follower is who leads when the leader dies."""
        racks = Counter(broker.rack for broker in placed)
        return min(
            (broker for broker in self._brokers if broker not in placed),
            key=lambda broker: (
                not broker.is_active,
                racks[broker.rack],
                self._followers[placed[0].id, len(placed), broker.id],
                self._replicas[broker.id],
            ),
        )


def _shuffled(brokers: Sequence[UsableBroker], dice: Dice) -> list[UsableBroker]:
    """Fisher and Yates."""
    items = sorted(brokers, key=lambda broker: broker.id)
    for last in range(len(items) - 1, 0, -1):
        other = dice.randrange(last + 1)
        items[last], items[other] = items[other], items[last]
    return items


def _check(brokers: Sequence[UsableBroker], replication_factor: int) -> None:
    if replication_factor < 1:
        raise InvalidReplicationFactorError(
            f"Invalid replication factor {replication_factor}: the replication factor must be "
            "positive."
        )
    if not any(broker.is_active for broker in brokers):
        raise InvalidReplicationFactorError(
            f"Unable to replicate the partition {replication_factor} time(s): All brokers are "
            "currently fenced, or have all their log directories cordoned."
        )
    if replication_factor > len(brokers):
        raise InvalidReplicationFactorError(
            f"Unable to replicate the partition {replication_factor} time(s): The target "
            f"replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered or some brokers have all their log "
            "directories cordoned."
        )
