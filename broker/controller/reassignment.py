"""Moving replicas (KIP-455; the replication factor guard of KIP-860).

While a reassignment runs, `replicas` = target followed by the removing ones; adding = target -
current, removing = current - target. It completes with an ISR change (partition_change).

A new request during a move starts from all that the partition has then, as Kafka's does and
KIP-455 does not: what is being added counts as current, leaves the ISR only at the end, and a
cancellation goes back to less than was there at first or to more. Example: 1,2,3 -> 4,5,6 has
4,5,6,1,2,3. Retargeted to 4,2,6: 4,2,6,1,3,5, removing 1,3,5, and still adding 4,5,6, for nothing
new is added; cancelled: 2,1,3. Retargeted to 7 instead, adding 7: cancelled it is 1,2,3,4,5,6.
Source: org.apache.kafka.controller.PartitionReassignment{Replicas,Revert} (Kafka 4.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.controller.assignments import check_assignment
from broker.controller.decision import Accepted, Decision, Rejected, Verdict, named_twice
from broker.controller.elections import IsUncleanEnabled, TopicPartition, active_in
from broker.controller.errors import (
    ControllerError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    NoReassignmentInProgressError,
    UnknownTopicError,
)
from broker.controller.partition_change import Election, PartitionChange, build_change
from broker.metadata.image import MetadataImage, PartitionImage
from broker.metadata.records import MetadataRecord, PartitionChangeRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """A partition's target replicas, preferred leader first; None cancels a move in flight."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterReassignments:
    """Reassign, and whether a target may have another number of replicas than now."""

    reassignments: Sequence[Reassignment]
    allow_replication_factor_change: bool = True


def decide_alter_reassignments(
    command: AlterReassignments, image: MetadataImage, *, is_unclean_enabled: IsUncleanEnabled
) -> Decision[dict[TopicPartition, Verdict[None]]]:
    """Begin, replace or cancel the move of each partition."""
    records: list[MetadataRecord] = []
    verdicts: dict[TopicPartition, Verdict[None]] = {}
    doubled = named_twice((wanted.topic, wanted.partition) for wanted in command.reassignments)
    for wanted in command.reassignments:
        key = (wanted.topic, wanted.partition)
        try:
            if key in doubled:
                raise InvalidReplicaAssignmentError("The request names the partition twice.")
            record = _alter_one(wanted, image, command, is_unclean_enabled)
            if record is not None:
                records.append(record)
            verdicts[key] = Accepted(None)
        except ControllerError as error:
            verdicts[key] = Rejected(error)
    return Decision(tuple(records), verdicts)


def list_reassignments(
    image: MetadataImage, wanted: Sequence[TopicPartition] | None
) -> list[PartitionImage]:
    """The partitions that are being reassigned, of those wanted (None for all)."""
    if wanted is not None:
        found = (image.partition(*key) for key in wanted)
        return [partition for partition in found if partition and partition.is_reassigning]
    return [
        partition
        for topic in image.topics.values()
        for partition in topic.partitions.values()
        if partition.is_reassigning
    ]


def original_replicas(partition: PartitionImage) -> tuple[int, ...]:
    """The assignment to which a cancelled move goes back; without a move the assignment itself."""
    return tuple(r for r in partition.replicas if r not in partition.adding_replicas)


def _alter_one(
    wanted: Reassignment,
    image: MetadataImage,
    command: AlterReassignments,
    is_unclean_enabled: IsUncleanEnabled,
) -> PartitionChangeRecord | None:
    partition = image.partition(wanted.topic, wanted.partition)
    if partition is None:
        raise UnknownTopicError(
            f"Unable to find a topic named {wanted.topic} with partition {wanted.partition}."
        )
    if wanted.replicas is None:
        return _cancel(partition, image, is_unclean_enabled(partition.topic))
    check_assignment(image, wanted.replicas, None)
    if not command.allow_replication_factor_change:
        _check_factor(partition, wanted.replicas)
    return _reassign(partition, wanted.replicas, image)


def _check_factor(partition: PartitionImage, target: tuple[int, ...]) -> None:
    """Compared with what the partition is heading for, which a move in flight may have changed."""
    current = len(set(partition.replicas) - set(partition.removing_replicas))
    if len(target) != current:
        raise InvalidReplicationFactorError(
            f"The replication factor is changed from {current} to {len(target)}"
        )


def _reassign(
    partition: PartitionImage, target: tuple[int, ...], image: MetadataImage
) -> PartitionChangeRecord | None:
    current = partition.replicas
    adding = tuple(sorted(set(target) - set(current)))
    removing = tuple(sorted(set(current) - set(target)))
    change = PartitionChange(
        replicas=(*target, *removing),
        adding_replicas=adding or None,
        removing_replicas=removing or None,
    )
    return build_change(partition, change, active_in(image))


def _cancel(
    partition: PartitionImage, image: MetadataImage, is_unclean_enabled: bool
) -> PartitionChangeRecord | None:
    """Without the adding replicas, in ISR and assignment. When nobody is left in the ISR, the first
    of the others becomes it with all that it lacks, where the topic allows that."""
    if not partition.is_reassigning:
        raise NoReassignmentInProgressError("No partition reassignment is in progress.")
    replicas = original_replicas(partition)
    isr = tuple(replica for replica in partition.isr if replica in replicas)
    if not isr and not is_unclean_enabled:
        raise InvalidReplicaAssignmentError(
            f"Unable to revert partition assignment for {partition.topic}:{partition.partition} "
            "because it would require an unclean leader election."
        )
    if not replicas:
        raise InvalidReplicaAssignmentError(
            "Invalid replica assignment: addingReplicas contains all replicas."
        )
    change = PartitionChange(
        isr=isr or replicas[:1],
        replicas=replicas,
        adding_replicas=(),
        removing_replicas=(),
        election=Election.UNCLEAN if is_unclean_enabled else Election.ONLINE,
    )
    return build_change(partition, change, active_in(image))
