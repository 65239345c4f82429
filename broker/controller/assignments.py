"""Manual assignments of replicas: what Kafka refuses, in its words."""

from collections.abc import Mapping, Sequence

from broker.controller.errors import InvalidReplicaAssignmentError
from broker.controller.partition_change import IsActive
from broker.controller.placement import UsableBroker
from broker.metadata.image import MetadataImage

Replicas = tuple[int, ...]


def usable_brokers(image: MetadataImage) -> list[UsableBroker]:
    """Registered brokers, as the placement wants them: none that is shutting down or cordoned."""
    return [
        UsableBroker(id=broker.id, rack=broker.rack, is_active=broker.is_active)
        for broker in image.brokers.values()
        if not broker.in_controlled_shutdown and not broker.is_cordoned
    ]


def check_assignment(
    image: MetadataImage, replicas: Replicas, replication_factor: int | None
) -> None:
    """Raise InvalidReplicaAssignmentError; a factor of None is not checked."""
    if not replicas:
        raise InvalidReplicaAssignmentError(
            "The manual partition assignment includes an empty replica list."
        )
    for replica in sorted(set(replicas)):
        if replica not in image.brokers:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes broker {replica}, but no such broker "
                "is registered."
            )
        if image.brokers[replica].is_cordoned:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes broker {replica}, but all its log "
                "directories are cordoned."
            )
        if replicas.count(replica) > 1:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes the broker {replica} more than once."
            )
    if replication_factor is not None and len(replicas) != replication_factor:
        raise InvalidReplicaAssignmentError(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{replication_factor} replica(s)."
        )


def check_new_topic(image: MetadataImage, assignments: Mapping[int, Replicas]) -> list[Replicas]:
    """The assignments in order. Raises InvalidReplicaAssignmentError."""
    ordered = [assignments.get(number) for number in range(len(assignments))]
    factor: int | None = None
    checked: list[Replicas] = []
    for replicas in ordered:
        if replicas is None:
            raise InvalidReplicaAssignmentError(
                "partitions should be a consecutive 0-based integer sequence"
            )
        check_assignment(image, replicas, factor)
        factor = len(replicas)
        checked.append(replicas)
    return checked


def initial_isr(replicas: Replicas, is_active: IsActive, partition: int) -> Replicas:
    """The active replicas. Raises InvalidReplicaAssignmentError when there is none."""
    isr = tuple(replica for replica in replicas if is_active(replica))
    if not isr:
        raise InvalidReplicaAssignmentError(
            f"All brokers specified in the manual partition assignment for partition {partition} "
            "are fenced or in controlled shutdown."
        )
    return isr


def check_count(assignments: Sequence[Replicas], additional: int) -> None:
    """Raise InvalidReplicaAssignmentError when not each new partition has its assignment."""
    if len(assignments) != additional:
        raise InvalidReplicaAssignmentError(
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(assignments)} assignment(s) were specified."
        )
