"""How the image's topics and brokers look in Metadata and DescribeTopicPartitions; pure."""

from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from broker.metadata.authorization import OPERATIONS_OMITTED
from broker.metadata.image import (
    NO_LEADER,
    BrokerImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from broker.metadata.records import BrokerEndpoint
from broker.metadata.topic_names import INTERNAL_TOPICS


def is_alive(image: MetadataImage, broker_id: int, listener_name: str) -> bool:
    """Whether clients of this listener may be sent to this broker."""
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced and broker.endpoint(listener_name) is not None


def view_controller(image: MetadataImage, listener_name: str) -> int:
    """The broker that clients take for the controller: the active one, or any that is alive."""
    if image.controller_id is not None and is_alive(image, image.controller_id, listener_name):
        return image.controller_id
    alive = (id_ for id_ in sorted(image.brokers) if is_alive(image, id_, listener_name))
    return next(alive, -1)


def view_brokers(
    image: MetadataImage, listener_name: str, *, with_fenced: bool = False
) -> list[tuple[BrokerImage, BrokerEndpoint]]:
    """Brokers that have this listener, by id, each with its address there."""
    found = ((it, it.endpoint(listener_name)) for _, it in sorted(image.brokers.items()))
    return [
        (broker, endpoint)
        for broker, endpoint in found
        if endpoint is not None and (with_fenced or not broker.fenced)
    ]


def _leader_error(image: MetadataImage, leader: int, listener_name: str) -> ErrorCode:
    broker = image.brokers.get(leader)
    if broker is None or broker.fenced:
        return ErrorCode.leader_not_available
    has_listener = broker.endpoint(listener_name) is not None
    return ErrorCode.none if has_listener else ErrorCode.listener_not_found


def view_partition(
    image: MetadataImage, partition: PartitionImage, listener_name: str
) -> dict[str, Any]:
    """One partition; a leader that is dead or missing shows as LEADER_NOT_AVAILABLE, one without
    the listener as LISTENER_NOT_FOUND.
    """
    error = _leader_error(image, partition.leader, listener_name)
    has_leader = error is ErrorCode.none
    return {
        "error_code": error,
        "partition_index": partition.partition,
        "leader_id": partition.leader if has_leader else NO_LEADER,
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": partition.replicas,
        "isr_nodes": partition.isr,
        "offline_replicas": [
            id_ for id_ in partition.replicas if not is_alive(image, id_, listener_name)
        ],
    }


def view_topic(
    image: MetadataImage,
    topic: TopicImage,
    listener_name: str,
    operations: int = OPERATIONS_OMITTED,
) -> dict[str, Any]:
    """One topic with all its partitions in order."""
    return {
        **view_topic_head(topic, operations),
        "partitions": [
            view_partition(image, partition, listener_name)
            for _, partition in sorted(topic.partitions.items())
        ],
    }


def asked_topic_name(image: MetadataImage, topic: Any) -> str | None:
    """The name of a topic of a request that names it, or gives its id; None for an unknown id."""
    return str(topic.name) if hasattr(topic, "name") else image.topic_name(topic.topic_id)


def topic_name(image: MetadataImage, key: str | bytes) -> str | None:
    """The name of a topic that a request names, or whose id's bytes it gives."""
    return key if isinstance(key, str) else image.topic_name(UUID(bytes=key))


def view_topic_head(topic: TopicImage, operations: int) -> dict[str, Any]:
    """One topic without its partitions."""
    return {
        "error_code": ErrorCode.none,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.name in INTERNAL_TOPICS,
        "topic_authorized_operations": operations,
    }
