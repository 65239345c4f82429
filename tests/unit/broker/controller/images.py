"""Images for tests: brokers 1..n in racks, and topics from compact descriptions."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from broker.controller.decision import Decision
from broker.metadata import records
from broker.metadata.image import MetadataImage, PartitionImage
from broker.metadata.records import MetadataRecord
from broker.metadata.replay import replay_batch

CLUSTER_ID = "test-cluster"


def never(topic: str) -> bool:
    """No topic allows unclean elections."""
    return False


def always(topic: str) -> bool:
    """Every topic allows unclean elections."""
    return True


def topic_id(name: str) -> UUID:
    """A topic's id, the same in every test."""
    return UUID(bytes=name.encode().rjust(16, b"\0"))


def apply(image: MetadataImage, batch: list[MetadataRecord]) -> MetadataImage:
    """The image after a batch."""
    if not batch:
        return image
    offset = image.offset + len(batch)
    return replay_batch(image, batch, offset=offset, epoch=1).image


def decided(image: MetadataImage, decision: Decision[object]) -> MetadataImage:
    """The image after a decision."""
    return apply(image, list(decision.records))


def cluster(
    brokers: int = 3, *, racks: Mapping[int, str] | None = None, fenced: tuple[int, ...] = ()
) -> MetadataImage:
    """Brokers 1..n, registered and unfenced but for `fenced`; broker 1 has epoch 100, and so on."""
    image = MetadataImage(cluster_id=CLUSTER_ID)
    for id_ in range(1, brokers + 1):
        register = records.RegisterBrokerRecord(
            broker_id=id_,
            incarnation_id=UUID(int=id_),
            broker_epoch=100 * id_,
            endpoints=(records.BrokerEndpoint(name="PLAINTEXT", host="h", port=9000 + id_),),
            rack=(racks or {}).get(id_),
            fenced=id_ in fenced,
        )
        image = apply(image, [register])
    return image


def with_topic(image: MetadataImage, name: str, *partitions: tuple[int, ...]) -> MetadataImage:
    """A topic whose partitions have these replicas, all in sync, led by the first."""
    batch: list[MetadataRecord] = [records.TopicRecord(name=name, topic_id=topic_id(name))]
    batch += [
        records.PartitionRecord(
            partition_id=number,
            topic_id=topic_id(name),
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
        )
        for number, replicas in enumerate(partitions)
    ]
    return apply(image, batch)


def with_partition(
    image: MetadataImage, partition: PartitionImage, **changes: object
) -> MetadataImage:
    """The image with one partition's fields set as they are, epochs untouched."""
    topic = image.topics[partition.topic]
    changed = replace(partition, **changes)  # type: ignore[arg-type]
    new = replace(topic, partitions={**topic.partitions, partition.partition: changed})
    return replace(
        image,
        topics={**image.topics, topic.name: new},
        topics_by_id={**image.topics_by_id, topic.topic_id: new},
    )


def get(image: MetadataImage, topic: str, partition: int = 0) -> PartitionImage:
    """A partition that must exist."""
    found = image.partition(topic, partition)
    assert found is not None
    return found


def fence(image: MetadataImage, broker_id: int) -> MetadataImage:
    """The broker fenced, its partitions untouched."""
    record = records.BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=image.brokers[broker_id].epoch, fenced=1
    )
    return apply(image, [record])
