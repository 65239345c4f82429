"""How far a broker is drained: from holding replicas to being unregistered.

Each step is read from the cluster and the bus, and none is remembered. So a drain goes on after
whatever interrupted it, by whoever asks for it again.

    EMPTY (cordon, move away) → MOVING → STOP → UNREGISTER → DONE

The supervisor stops a bundled broker; elsewhere the operator does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from control.kafka.ports import PartitionMetadata
from control.model.ids import TopicPartition
from control.move.state import OperationState
from control.operations.reassignment.drained_brokers import NAMES_MAX, drained_by
from planner.proposal import Proposal
from planner.topology import Topology


class DrainStep(StrEnum):
    """The next step of a drain."""

    EMPTY = "empty"
    """It holds replicas, or could still receive some."""
    MOVING = "moving"
    """A reassignment empties it."""
    STOP = "stop"
    """It is empty, and runs."""
    UNREGISTER = "unregister"
    """It is empty and stopped."""
    DONE = "done"
    """The cluster does not know it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainState:
    """Facts about one broker on which the next step rests."""

    broker: int
    is_alive: bool
    is_registered: bool
    """True also where the cluster does not tell (before Kafka 4.0)."""
    replicas: int
    """Of all partitions, internal topics included, those that are being added included."""
    may_receive: bool
    """It runs, is not cordoned, and could be."""
    other_voters: int | None = None
    """Nodes that vote in the controller quorum beside it; None: it does not vote."""
    voters_running: int = 0
    """Those of them that run as brokers too, as all of the bundled cluster do."""
    move: str = ""
    """The running reassignment that empties it."""

    @property
    def has_majority_beside(self) -> bool:
        """Whether the quorum of a bundled cluster goes on without the broker."""
        return self.other_voters is None or self.voters_running > (self.other_voters + 1) // 2

    @property
    def step(self) -> DrainStep:
        """The next step."""
        if self.move:
            return DrainStep.MOVING
        if self.replicas or self.may_receive:
            return DrainStep.EMPTY
        if self.is_alive:
            return DrainStep.STOP
        return DrainStep.UNREGISTER if self.is_registered else DrainStep.DONE


def replicas_on(broker: int, partitions: Iterable[PartitionMetadata]) -> int:
    """How many partitions name the broker."""
    return sum(broker in partition.replicas for partition in partitions)


def staying_on(broker: int, before: Topology, proposal: Proposal) -> str:
    """Which partitions a plan leaves on the broker; empty where it leaves none."""
    targets = proposal.targets()
    staying = [
        str(partition.key)
        for partition in before.partitions
        if broker in targets.get(partition.key, partition.replicas)
    ]
    if not staying:
        return ""
    more = f" and {len(staying) - NAMES_MAX:,} more" if len(staying) > NAMES_MAX else ""
    stay = "stays" if len(staying) == 1 else "stay"
    return (
        f"{', '.join(staying[:NAMES_MAX])}{more} {stay} on broker {broker}, as nothing moves them"
    )


def emptying_move(
    broker: int,
    states: Iterable[OperationState],
    partitions: Mapping[TopicPartition, PartitionMetadata],
) -> str:
    """The unfinished reassignment after which the broker holds nothing; empty: there is none."""
    for state in states:
        if not state.is_finished and (
            broker in state.empties or broker in drained_by(state.changes, partitions)
        ):
            return state.operation_id
    return ""
