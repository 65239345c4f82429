"""ISR changes that partition leaders ask for (AlterPartition, KIP-497 and KIP-903)."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from broker.controller.brokers import check_epoch
from broker.controller.decision import Accepted, Decision, Rejected, Verdict, named_twice
from broker.controller.elections import active_in
from broker.controller.errors import (
    ControllerError,
    FencedLeaderEpochError,
    IneligibleReplicaError,
    InvalidIsrError,
    InvalidUpdateVersionError,
    NewLeaderElectedError,
    NotControllerError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from broker.controller.partition_change import PartitionChange, build_change, changed_partition
from broker.metadata.image import MetadataImage, PartitionImage
from broker.metadata.records import MetadataRecord

UNKNOWN_BROKER_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrMember:
    """A broker wanted in the ISR; with epoch -1 its epoch is not checked."""

    broker_id: int
    broker_epoch: int = UNKNOWN_BROKER_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChange:
    """The ISR that a leader wants, and the state it knows."""

    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    new_isr: tuple[IsrMember, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartition:
    """ISR changes of partitions that one broker leads."""

    broker_id: int
    broker_epoch: int
    changes: Sequence[IsrChange]


IsrVerdicts = dict[tuple[UUID, int], Verdict[PartitionImage]]


def decide_alter_partition(command: AlterPartition, image: MetadataImage) -> Decision[IsrVerdicts]:
    """For each partition its new state, or why it was refused.

    A reassignment that the new ISR completes ends here; when that moves the leader away, the
    asker gets NewLeaderElectedError though the change is made.

    Raises BrokerNotRegisteredError, StaleBrokerEpochError.
    """
    check_epoch(image, command.broker_id, command.broker_epoch)
    records: list[MetadataRecord] = []
    verdicts: IsrVerdicts = {}
    doubled = named_twice((change.topic_id, change.partition) for change in command.changes)
    for change in command.changes:
        key = (change.topic_id, change.partition)
        try:
            if key in doubled:
                raise InvalidIsrError("the request names the partition twice")
            verdicts[key] = _alter_one(command.broker_id, change, image, records)
        except ControllerError as error:
            verdicts[key] = Rejected(error)
    return Decision(tuple(records), verdicts)


def _alter_one(
    broker_id: int, change: IsrChange, image: MetadataImage, records: list[MetadataRecord]
) -> Verdict[PartitionImage]:
    partition = _find(image, change)
    _check_epochs(partition, change, broker_id)
    isr = tuple(member.broker_id for member in change.new_isr)
    _check_isr(partition, isr)
    _check_eligible(image, change)
    record = build_change(partition, PartitionChange(isr=isr), active_in(image))
    after = changed_partition(partition, record)
    if record is not None:
        records.append(record)
    if after.leader != broker_id:
        return Rejected(
            NewLeaderElectedError(f"The reassignment ended; the leader is now {after.leader}")
        )
    return Accepted(after)


def _find(image: MetadataImage, change: IsrChange) -> PartitionImage:
    if change.topic_id not in image.topics_by_id:
        raise UnknownTopicIdError(f"No topic with id {change.topic_id}")
    partition = image.partition_by_id(change.topic_id, change.partition)
    if partition is None:
        raise UnknownTopicError(f"No partition {change.partition} of topic id {change.topic_id}")
    return partition


def _check_epochs(partition: PartitionImage, change: IsrChange, broker_id: int) -> None:
    """A state older than ours is fenced; a later one means that we are an old controller."""
    if change.leader_epoch < partition.leader_epoch:
        raise FencedLeaderEpochError(
            f"leader epoch {change.leader_epoch} is fenced by {partition.leader_epoch}"
        )
    if change.leader_epoch > partition.leader_epoch:
        raise NotControllerError(f"leader epoch {change.leader_epoch} is not known here")
    if partition.leader != broker_id:
        raise InvalidIsrError(f"broker {broker_id} does not lead; {partition.leader} does")
    if change.partition_epoch < partition.partition_epoch:
        raise InvalidUpdateVersionError(
            f"partition epoch {change.partition_epoch} is older than {partition.partition_epoch}"
        )
    if change.partition_epoch > partition.partition_epoch:
        raise NotControllerError(f"partition epoch {change.partition_epoch} is not known here")


def _check_isr(partition: PartitionImage, isr: tuple[int, ...]) -> None:
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas):
        raise InvalidIsrError(f"ISR {isr} does not consist of replicas {partition.replicas}")
    if partition.leader not in isr:
        raise InvalidIsrError(f"ISR {isr} lacks the leader {partition.leader}")


def _check_eligible(image: MetadataImage, change: IsrChange) -> None:
    for member in change.new_isr:
        broker = image.brokers.get(member.broker_id)
        if broker is None or not broker.is_active:
            raise IneligibleReplicaError(f"broker {member.broker_id} is not active")
        if member.broker_epoch not in (UNKNOWN_BROKER_EPOCH, broker.epoch):
            raise IneligibleReplicaError(
                f"broker {member.broker_id} has restarted: epoch {broker.epoch}, not "
                f"{member.broker_epoch}"
            )
