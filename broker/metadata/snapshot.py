"""An image as records, and back: what a snapshot of the metadata log holds."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar
from uuid import UUID

from broker.metadata.acls import Acl
from broker.metadata.image import ImageDelta, MetadataImage, PartitionImage, TopicImage
from broker.metadata.quotas import QuotaEntity
from broker.metadata.record_codec import decode_record
from broker.metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    QuotaEntityPart,
    RegisterBrokerRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from broker.metadata.replay import replay_batch

K = TypeVar("K", bound=Hashable)


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Records that make this image out of an empty one."""
    for name, level in image.features.items():
        yield FeatureLevelRecord(name=name, feature_level=level)
    for broker in image.brokers.values():
        yield RegisterBrokerRecord(
            broker_id=broker.id,
            incarnation_id=broker.incarnation_id,
            broker_epoch=broker.epoch,
            endpoints=broker.endpoints,
            rack=broker.rack,
            fenced=broker.fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            log_dirs=broker.log_dirs,
            cordoned_log_dirs=broker.cordoned_log_dirs,
        )
    for topic in image.topics.values():
        yield from _topic_records(topic)
    for resource, configs in image.configs.items():
        for name, value in configs.items():
            yield ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=name, value=value
            )
    for (mechanism, user), credential in image.scram.items():
        yield UserScramCredentialRecord(
            name=user,
            mechanism=mechanism,
            salt=credential.salt,
            stored_key=credential.stored_key,
            server_key=credential.server_key,
            iterations=credential.iterations,
        )
    yield from (acl_record(id_, acl) for id_, acl in image.acls.items())
    for entity, quotas in image.quotas.items():
        for key, quota in quotas.items():
            yield quota_record(entity, key, quota)
    if image.next_producer_id:
        yield ProducerIdsRecord(
            broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id
        )


def acl_record(id_: UUID, acl: Acl) -> AccessControlEntryRecord:
    """The record that makes an entry."""
    return AccessControlEntryRecord(
        id=id_,
        resource_type=acl.kind,
        resource_name=acl.name,
        pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def quota_record(entity: QuotaEntity, key: str, value: float | None) -> ClientQuotaRecord:
    """The record that sets a quota, or with None removes it."""
    parts = tuple(QuotaEntityPart(entity_type=kind, entity_name=name) for kind, name in entity)
    return ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None)


def build_image(
    cluster_id: str, values: Iterable[bytes], *, offset: int, epoch: int
) -> MetadataImage:
    """The image that a snapshot's record values make. Raises RecordError, ReplayError."""
    empty = MetadataImage(cluster_id=cluster_id)
    records = (decode_record(value) for value in values)
    return replay_batch(empty, records, offset=offset, epoch=epoch).image


def image_difference(old: MetadataImage, new: MetadataImage) -> ImageDelta:
    """Changes between two images that no batch connects."""
    topics = _changed(old.topics_by_id, new.topics_by_id)
    partitions = {
        (name, number)
        for topic_id in topics & new.topics_by_id.keys()
        for name, known in [_named_partitions(old, new, topic_id)]
        for number in _changed(known, new.topics_by_id[topic_id].partitions)
    }
    return ImageDelta(
        topics_changed=frozenset(
            new.topics_by_id[topic_id].name for topic_id in topics & new.topics_by_id.keys()
        ),
        topics_deleted=tuple(
            topic
            for topic_id, topic in old.topics_by_id.items()
            if topic_id in topics and topic_id not in new.topics_by_id
        ),
        partitions_changed=frozenset(partitions),
        brokers_changed=_changed(old.brokers, new.brokers),
        configs_changed=_changed(old.configs, new.configs),
        controller_changed=old.controller_id != new.controller_id,
    )


def _named_partitions(
    old: MetadataImage, new: MetadataImage, topic_id: UUID
) -> tuple[str, Mapping[int, PartitionImage]]:
    known = old.topics_by_id.get(topic_id)
    return new.topics_by_id[topic_id].name, {} if known is None else known.partitions


def _changed(old: Mapping[K, Any], new: Mapping[K, Any]) -> frozenset[K]:
    """Keys that came, went or mean something else."""
    return frozenset(key for key in {**old, **new} if old.get(key) != new.get(key))


def _topic_records(topic: TopicImage) -> Iterator[MetadataRecord]:
    yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
    for partition in topic.partitions.values():
        yield _partition_record(partition)


def _partition_record(partition: PartitionImage) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition.partition,
        topic_id=partition.topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing_replicas,
        adding_replicas=partition.adding_replicas,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )
