"""How the image's topics and brokers look in Metadata and DescribeTopicPartitions; pure."""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.metadata.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from broker.metadata.topic_names import INTERNAL_TOPICS

OPERATIONS_OMITTED: Final = -(2**31)
"""What Kafka sends when authorized operations were not asked for."""
TOPIC_OPERATIONS: Final = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
"""READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS: all, as without ACLs."""
CLUSTER_OPERATIONS: Final = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
"""CREATE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE."""


def is_alive(image: MetadataImage, broker_id: int) -> bool:
    """Whether clients may be sent to this broker."""
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced


def view_controller(image: MetadataImage) -> int:
    """The broker that clients take for the controller: the active one, or any that is alive."""
    if image.controller_id is not None and is_alive(image, image.controller_id):
        return image.controller_id
    return next((id_ for id_ in sorted(image.brokers) if is_alive(image, id_)), -1)


def view_brokers(image: MetadataImage) -> list[dict[str, Any]]:
    """node_id, host, port and rack of the brokers that are alive, by id."""
    return [
        {"node_id": broker.id, "host": broker.host, "port": broker.port, "rack": broker.rack}
        for _, broker in sorted(image.brokers.items())
        if not broker.fenced
    ]


def view_partition(image: MetadataImage, partition: PartitionImage) -> dict[str, Any]:
    """One partition; a leader that is dead or missing shows as LEADER_NOT_AVAILABLE."""
    has_leader = partition.leader != NO_LEADER and is_alive(image, partition.leader)
    return {
        "error_code": ErrorCode.none if has_leader else ErrorCode.leader_not_available,
        "partition_index": partition.partition,
        "leader_id": partition.leader if has_leader else NO_LEADER,
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": partition.replicas,
        "isr_nodes": partition.isr,
        "offline_replicas": [id_ for id_ in partition.replicas if not is_alive(image, id_)],
    }


def view_topic(
    image: MetadataImage, topic: TopicImage, *, with_operations: bool = False
) -> dict[str, Any]:
    """One topic with all its partitions in order."""
    return {
        **view_topic_head(topic, with_operations=with_operations),
        "partitions": [view_partition(image, p) for _, p in sorted(topic.partitions.items())],
    }


def asked_topic_name(image: MetadataImage, topic: Any) -> str | None:
    """The name of a topic of a request that names it, or gives its id; None for an unknown id."""
    return str(topic.name) if hasattr(topic, "name") else image.topic_name(topic.topic_id)


def view_topic_head(topic: TopicImage, *, with_operations: bool) -> dict[str, Any]:
    """One topic without its partitions."""
    return {
        "error_code": ErrorCode.none,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.name in INTERNAL_TOPICS,
        "topic_authorized_operations": TOPIC_OPERATIONS if with_operations else OPERATIONS_OMITTED,
    }
