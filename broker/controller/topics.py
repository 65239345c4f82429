"""Creating and deleting topics, adding partitions (Kafka's ReplicationControlManager)."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from broker.controller.assignments import (
    Replicas,
    check_assignment,
    check_count,
    check_new_topic,
    initial_isr,
    usable_brokers,
)
from broker.controller.config_control import check_topic_configs, check_topic_name
from broker.controller.decision import Accepted, Decision, Rejected, Verdict, named_twice
from broker.controller.elections import active_in
from broker.controller.errors import (
    ControllerError,
    InvalidConfigRequestError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    PolicyViolationError,
    TopicAuthorizationError,
    TopicDeletionDisabledError,
    TopicExistsError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from broker.controller.placement import place_replicas
from broker.metadata.image import MetadataImage, ResourceType
from broker.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from broker.metadata.topic_names import METADATA_TOPIC, Collisions
from broker.raft.ports import Dice

DEFAULT: Final = -1
PARTITIONS_PER_REQUEST_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDefaults:
    """Defaults that a request leaves to the cluster, and the source of chance and ids."""

    partitions: int
    replication_factor: int
    dice: Dice
    new_id: Callable[[], UUID]
    is_deletion_enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to be; -1 asks for the default, assignments (by partition) exclude both counts."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Mapping[int, Replicas] = field(default_factory=dict)
    assigned_twice: AbstractSet[int] = frozenset()
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    """A created topic, as its request's answer needs it."""

    topic_id: UUID
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartitions:
    """A topic's wanted total of partitions; `assignments` None leaves the placing to us."""

    topic: str
    count: int
    assignments: Sequence[Replicas] | None = None


Charge = Callable[[int], None]
"""Counts partitions against a quota; raises ThrottlingQuotaExceededError."""


def _free(partitions: int) -> None:
    """Nobody has a quota."""


def decide_create_topics(
    topics: Sequence[NewTopic],
    image: MetadataImage,
    defaults: TopicDefaults,
    charge: Charge = _free,
) -> Decision[dict[str, Verdict[CreatedTopic]]]:
    """Create each topic that can be; a refused one does not harm the others."""
    doubled = named_twice(topic.name for topic in topics)
    records: list[MetadataRecord] = []
    verdicts: dict[str, Verdict[CreatedTopic]] = {}
    partitions_total = 0
    collisions = Collisions(image.topics)
    for topic in topics:
        if topic.name in verdicts:
            continue
        try:
            if topic.name in doubled:
                raise InvalidConfigRequestError("Duplicate topic name.")
            _check_name(topic.name, image, collisions)
            created, made = _create(topic, image, defaults)
            partitions_total += created.partitions
            if partitions_total > PARTITIONS_PER_REQUEST_MAX:
                raise PolicyViolationError("Excessively large number of partitions per request.")
            charge(created.partitions)
            records += made
            verdicts[topic.name] = Accepted(created)
        except ControllerError as error:
            verdicts[topic.name] = Rejected(error)
    return Decision(tuple(records), verdicts)


def decide_delete_topics(
    wanted: Sequence[str | UUID],
    image: MetadataImage,
    defaults: TopicDefaults,
    charge: Charge = _free,
) -> Decision[dict[str | UUID, Verdict[tuple[str, UUID]]]]:
    """Delete topics by name or id; answers with both."""
    verdicts: dict[str | UUID, Verdict[tuple[str, UUID]]] = {}
    doubled = named_twice(wanted)
    for key in wanted:
        try:
            if key in doubled:
                kind = "id" if isinstance(key, UUID) else "name"
                raise InvalidConfigRequestError(f"Duplicate topic {kind}.")
            verdicts[key] = Accepted(_find_for_deletion(key, image, defaults))
        except ControllerError as error:
            verdicts[key] = Rejected(error)
    found = {key: each.value[1] for key, each in verdicts.items() if isinstance(each, Accepted)}
    both = named_twice(found.values())
    for key in [key for key, topic_id in found.items() if topic_id in both]:
        words = "The provided topic name maps to an ID that was already supplied."
        verdicts[key] = Rejected(InvalidConfigRequestError(words))
    records = []
    for key, topic_id in found.items():
        if topic_id in both:
            continue
        try:
            charge(len(image.topics_by_id[topic_id].partitions))
            records.append(RemoveTopicRecord(topic_id=topic_id))
        except ControllerError as error:
            verdicts[key] = Rejected(error)
    return Decision(tuple(records), verdicts)


def decide_create_partitions(
    topics: Sequence[NewPartitions],
    image: MetadataImage,
    defaults: TopicDefaults,
    charge: Charge = _free,
) -> Decision[dict[str, Verdict[int]]]:
    """Raise the number of partitions; answers with the new total."""
    records: list[MetadataRecord] = []
    verdicts: dict[str, Verdict[int]] = {}
    doubled = named_twice(topic.topic for topic in topics)
    for topic in topics:
        try:
            if topic.topic in doubled:
                raise InvalidConfigRequestError("Duplicate topic name.")
            made = _add_partitions(topic, image, defaults)
            charge(len(made))
            records += made
            verdicts[topic.topic] = Accepted(topic.count)
        except ControllerError as error:
            verdicts[topic.topic] = Rejected(error)
    return Decision(tuple(records), verdicts)


def _create(
    topic: NewTopic, image: MetadataImage, defaults: TopicDefaults
) -> tuple[CreatedTopic, list[MetadataRecord]]:
    configs = {name: value for name, value in topic.configs.items() if value is not None}
    check_topic_configs(topic.configs)
    assignments = _assign(topic, image, defaults)
    topic_id = defaults.new_id()
    records: list[MetadataRecord] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    records += [
        ConfigRecord(
            resource_type=ResourceType.TOPIC, resource_name=topic.name, name=name, value=value
        )
        for name, value in configs.items()
    ]
    records += _partition_records(topic_id, assignments, image, first=0)
    created = CreatedTopic(
        topic_id=topic_id,
        partitions=len(assignments),
        replication_factor=len(assignments[0]),
    )
    return created, records


def _check_name(name: str, image: MetadataImage, collisions: Collisions) -> None:
    if name == METADATA_TOPIC:
        raise TopicAuthorizationError("Authorization failed.")
    check_topic_name(name)
    if name in image.topics:
        raise TopicExistsError(f"Topic '{name}' already exists.")
    collision = collisions.find(name)
    if collision is not None:
        raise InvalidTopicError(f"Topic '{name}' collides with existing topic: {collision}")


def _assign(topic: NewTopic, image: MetadataImage, defaults: TopicDefaults) -> Sequence[Replicas]:
    if topic.assignments:
        if topic.replication_factor != DEFAULT:
            raise InvalidConfigRequestError(
                "A manual partition assignment was specified, but replication factor was not set "
                "to -1."
            )
        if topic.partitions != DEFAULT:
            raise InvalidConfigRequestError(
                "A manual partition assignment was specified, but numPartitions was not set to -1."
            )
        for number in sorted(topic.assigned_twice):
            raise InvalidReplicaAssignmentError(
                f"Found multiple manual partition assignments for partition {number}"
            )
        return check_new_topic(image, topic.assignments)
    if topic.replication_factor == 0 or topic.replication_factor < DEFAULT:
        raise InvalidReplicationFactorError(
            "Replication factor must be larger than 0, or -1 to use the default value."
        )
    if topic.partitions == 0 or topic.partitions < DEFAULT:
        raise InvalidPartitionsError(
            "Number of partitions was set to an invalid non-positive value."
        )
    partitions = defaults.partitions if topic.partitions == DEFAULT else topic.partitions
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        raise PolicyViolationError("Excessively large number of partitions per request.")
    factor = topic.replication_factor
    return place_replicas(
        usable_brokers(image),
        partitions=partitions,
        replication_factor=defaults.replication_factor if factor == DEFAULT else factor,
        dice=defaults.dice,
    )


def _partition_records(
    topic_id: UUID, assignments: Sequence[Replicas], image: MetadataImage, *, first: int
) -> list[MetadataRecord]:
    is_active = active_in(image)
    records: list[MetadataRecord] = []
    for number, replicas in enumerate(assignments, first):
        isr = initial_isr(replicas, is_active, number)
        records.append(
            PartitionRecord(
                partition_id=number,
                topic_id=topic_id,
                replicas=replicas,
                isr=isr,
                leader=isr[0],
            )
        )
    return records


def _find_for_deletion(
    key: str | UUID, image: MetadataImage, defaults: TopicDefaults
) -> tuple[str, UUID]:
    if not defaults.is_deletion_enabled:
        raise TopicDeletionDisabledError("Topic deletion is disabled.")
    if isinstance(key, UUID):
        topic = image.topics_by_id.get(key)
        if topic is None:
            raise UnknownTopicIdError("This server does not host this topic ID.")
        return topic.name, key
    topic = image.topics.get(key)
    if topic is None:
        raise UnknownTopicError("This server does not host this topic-partition.")
    return key, topic.topic_id


def _add_partitions(
    wanted: NewPartitions, image: MetadataImage, defaults: TopicDefaults
) -> list[MetadataRecord]:
    topic = image.topics.get(wanted.topic)
    if topic is None:
        raise UnknownTopicError("This server does not host this topic-partition.")
    current = len(topic.partitions)
    if wanted.count == current:
        raise InvalidPartitionsError(f"Topic already has {current} partition(s).")
    if wanted.count < current:
        raise InvalidPartitionsError(
            f"The topic {wanted.topic} currently has {current} partition(s); {wanted.count} would "
            "not be an increase."
        )
    additional = wanted.count - current
    if additional > PARTITIONS_PER_REQUEST_MAX:
        raise PolicyViolationError("Excessively large number of partitions per request.")
    factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        assignments: Sequence[Replicas] = place_replicas(
            usable_brokers(image),
            partitions=additional,
            replication_factor=factor,
            dice=defaults.dice,
        )
    else:
        check_count(wanted.assignments, additional)
        for replicas in wanted.assignments:
            check_assignment(image, replicas, factor)
        assignments = wanted.assignments
    return _partition_records(topic.topic_id, assignments, image, first=current)
