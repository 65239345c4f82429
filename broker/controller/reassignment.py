"""Moving replicas (KIP-455; the replication factor guard of KIP-860).

While a reassignment runs, `replicas` = target followed by the removing ones; adding = target -
current, removing = current - target. It completes with an ISR change (partition_change). A new
request during a move replaces it: its "current" is what the partition had before that move.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.controller.assignments import check_assignment
from broker.controller.decision import Accepted, Decision, Rejected, Verdict
from broker.controller.elections import TopicPartition, active_in
from broker.controller.errors import (
    ControllerError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    NoReassignmentInProgressError,
    UnknownTopicError,
)
from broker.controller.image import MetadataImage, PartitionImage
from broker.controller.partition_change import PartitionChange, build_change
from broker.controller.records import MetadataRecord, PartitionChangeRecord


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
    command: AlterReassignments, image: MetadataImage
) -> Decision[dict[TopicPartition, Verdict[None]]]:
    """Begin, replace or cancel the move of each partition."""
    records: list[MetadataRecord] = []
    verdicts: dict[TopicPartition, Verdict[None]] = {}
    for wanted in command.reassignments:
        key = (wanted.topic, wanted.partition)
        try:
            record = _alter_one(wanted, image, command.allow_replication_factor_change)
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
    """The replicas before the move in flight; the assignment itself when there is none."""
    return tuple(r for r in partition.replicas if r not in partition.adding_replicas)


def _alter_one(
    wanted: Reassignment, image: MetadataImage, allow_factor_change: bool
) -> PartitionChangeRecord | None:
    partition = image.partition(wanted.topic, wanted.partition)
    if partition is None:
        raise UnknownTopicError(
            f"Unable to find a topic named {wanted.topic} with partition {wanted.partition}."
        )
    if wanted.replicas is None:
        return _cancel(partition, image)
    check_assignment(image, wanted.replicas, None)
    _check_factor(partition, wanted.replicas, allow_factor_change)
    return _reassign(partition, wanted.replicas, image)


def _check_factor(
    partition: PartitionImage, target: tuple[int, ...], allow_factor_change: bool
) -> None:
    """Compared with what the partition is heading for, which a move in flight may have changed."""
    current = len(set(partition.replicas) - set(partition.removing_replicas))
    if not allow_factor_change and len(target) != current:
        raise InvalidReplicationFactorError(
            f"The replication factor is changed from {current} to {len(target)}"
        )


def _reassign(
    partition: PartitionImage, target: tuple[int, ...], image: MetadataImage
) -> PartitionChangeRecord | None:
    current = original_replicas(partition)
    adding = tuple(replica for replica in target if replica not in current)
    removing = tuple(replica for replica in current if replica not in target)
    replicas = (*target, *removing)
    isr = tuple(replica for replica in partition.isr if replica in replicas)
    change = PartitionChange(
        isr=isr, replicas=replicas, adding_replicas=adding, removing_replicas=removing
    )
    if not isr:
        raise InvalidReplicaAssignmentError(
            f"The ISR {partition.isr} of {partition.topic}-{partition.partition} would be empty."
        )
    return build_change(partition, change, active_in(image))


def _cancel(partition: PartitionImage, image: MetadataImage) -> PartitionChangeRecord | None:
    """Back to the replicas before the move; the adding ones leave ISR and assignment."""
    if not partition.is_reassigning:
        raise NoReassignmentInProgressError("No partition reassignment is in progress.")
    replicas = original_replicas(partition)
    isr = tuple(replica for replica in partition.isr if replica in replicas)
    if not isr:
        raise InvalidReplicaAssignmentError(
            f"Can't cancel: none of the original replicas {replicas} of "
            f"{partition.topic}-{partition.partition} is in sync."
        )
    change = PartitionChange(isr=isr, replicas=replicas, adding_replicas=(), removing_replicas=())
    return build_change(partition, change, active_in(image))
