"""Replay: the only thing that changes metadata (Kafka's *ControlManager.replay methods)."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from broker.metadata import records
from broker.metadata.acls import Acl, Operation, PatternType, Permission, ResourceKind
from broker.metadata.delta import MetadataDelta, ReplayedBatch, ReplayError
from broker.metadata.image import (
    BrokerImage,
    ConfigResource,
    MetadataImage,
    PartitionImage,
    ResourceType,
    TopicImage,
    topic_resource,
)
from broker.metadata.quotas import quota_entity
from broker.metadata.records import NO_LEADER_CHANGE, MetadataRecord
from broker.protocol.scram import ScramCredential, ScramMechanism


def replay(image: MetadataImage, record: MetadataRecord) -> MetadataImage:
    """The image after one record, at the next offset. For many records take `replay_batch`."""
    return replay_batch(image, (record,), offset=image.offset + 1, epoch=image.epoch).image


def replay_batch(
    image: MetadataImage, batch: Iterable[MetadataRecord], *, offset: int, epoch: int
) -> ReplayedBatch:
    """The image after all records of a batch, whose last record is at `offset`.

    Raises ReplayError when a record does not fit the image.
    """
    delta = MetadataDelta(image)
    for record in batch:
        _REPLAY[type(record)](delta, record)
    return delta.build(offset=offset, epoch=epoch)


def _register_broker(delta: MetadataDelta, record: records.RegisterBrokerRecord) -> None:
    if not record.endpoints:
        raise ReplayError(f"broker {record.broker_id} is registered without an endpoint")
    delta.put_broker(
        record.broker_id,
        BrokerImage(
            id=record.broker_id,
            epoch=record.broker_epoch,
            endpoints=record.endpoints,
            rack=record.rack,
            fenced=record.fenced,
            incarnation_id=record.incarnation_id,
            in_controlled_shutdown=record.in_controlled_shutdown,
            log_dirs=record.log_dirs,
            cordoned_log_dirs=record.cordoned_log_dirs,
        ),
    )


def _unregister_broker(delta: MetadataDelta, record: records.UnregisterBrokerRecord) -> None:
    delta.broker(record.broker_id, record.broker_epoch)
    delta.put_broker(record.broker_id, None)


def _change_registration(
    delta: MetadataDelta, record: records.BrokerRegistrationChangeRecord
) -> None:
    broker = delta.broker(record.broker_id, record.broker_epoch)
    if record.fenced:
        broker = replace(broker, fenced=record.fenced > 0)
    if record.in_controlled_shutdown:
        broker = replace(broker, in_controlled_shutdown=True)
    if record.log_dirs:
        broker = replace(broker, log_dirs=record.log_dirs)
    if record.cordoned_log_dirs is not None:
        broker = replace(broker, cordoned_log_dirs=record.cordoned_log_dirs)
    delta.put_broker(record.broker_id, broker)


def _create_topic(delta: MetadataDelta, record: records.TopicRecord) -> None:
    delta.create_topic(
        TopicImage(name=record.name, topic_id=record.topic_id, partitions=MappingProxyType({}))
    )


def _remove_topic(delta: MetadataDelta, record: records.RemoveTopicRecord) -> None:
    topic = delta.remove_topic(record.topic_id)
    delta.config(topic_resource(topic.name)).clear()


def _create_partition(delta: MetadataDelta, record: records.PartitionRecord) -> None:
    delta.put_partition(
        PartitionImage(
            topic_id=record.topic_id,
            topic=delta.topic(record.topic_id).name,
            partition=record.partition_id,
            replicas=record.replicas,
            isr=record.isr,
            adding_replicas=record.adding_replicas,
            removing_replicas=record.removing_replicas,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
        )
    )


def _change_partition(delta: MetadataDelta, record: records.PartitionChangeRecord) -> None:
    old = delta.partition(record.topic_id, record.partition_id)
    delta.put_partition(merge_partition(old, record))


def merge_partition(old: PartitionImage, record: records.PartitionChangeRecord) -> PartitionImage:
    """The partition after a change (PartitionRegistration.merge)."""
    leader_named = record.leader != NO_LEADER_CHANGE
    return replace(
        old,
        replicas=old.replicas if record.replicas is None else record.replicas,
        isr=old.isr if record.isr is None else record.isr,
        adding_replicas=(
            old.adding_replicas if record.adding_replicas is None else record.adding_replicas
        ),
        removing_replicas=(
            old.removing_replicas if record.removing_replicas is None else record.removing_replicas
        ),
        leader=record.leader if leader_named else old.leader,
        leader_epoch=old.leader_epoch + 1 if leader_named else old.leader_epoch,
        partition_epoch=old.partition_epoch + 1,
    )


def _set_config(delta: MetadataDelta, record: records.ConfigRecord) -> None:
    resource = ConfigResource(type=ResourceType(record.resource_type), name=record.resource_name)
    configs = delta.config(resource)
    if record.value is None:
        configs.pop(record.name, None)
    else:
        configs[record.name] = record.value


def _set_scram(delta: MetadataDelta, record: records.UserScramCredentialRecord) -> None:
    credential = ScramCredential(
        salt=record.salt,
        stored_key=record.stored_key,
        server_key=record.server_key,
        iterations=record.iterations,
    )
    delta.put_scram((ScramMechanism(record.mechanism), record.name), credential)


def _remove_scram(delta: MetadataDelta, record: records.RemoveUserScramCredentialRecord) -> None:
    delta.put_scram((ScramMechanism(record.mechanism), record.name), None)


def _create_acl(delta: MetadataDelta, record: records.AccessControlEntryRecord) -> None:
    acl = Acl(
        kind=ResourceKind(record.resource_type),
        name=record.resource_name,
        pattern=PatternType(record.pattern_type),
        principal=record.principal,
        host=record.host,
        operation=Operation(record.operation),
        permission=Permission(record.permission_type),
    )
    delta.put_acl(record.id, acl)


def _remove_acl(delta: MetadataDelta, record: records.RemoveAccessControlEntryRecord) -> None:
    delta.put_acl(record.id, None)


def _set_quota(delta: MetadataDelta, record: records.ClientQuotaRecord) -> None:
    quotas = delta.quotas(quota_entity((it.entity_type, it.entity_name) for it in record.entity))
    if record.remove:
        quotas.pop(record.key, None)
    else:
        quotas[record.key] = record.value


def _set_producer_ids(delta: MetadataDelta, record: records.ProducerIdsRecord) -> None:
    delta.next_producer_id = record.next_producer_id


def _set_feature(delta: MetadataDelta, record: records.FeatureLevelRecord) -> None:
    delta.features[record.name] = record.feature_level or None


def _no_op(delta: MetadataDelta, record: records.NoOpRecord) -> None:
    """Only the offset moves."""


_REPLAY: Final[dict[type, Callable[[MetadataDelta, Any], None]]] = {
    records.RegisterBrokerRecord: _register_broker,
    records.UnregisterBrokerRecord: _unregister_broker,
    records.BrokerRegistrationChangeRecord: _change_registration,
    records.TopicRecord: _create_topic,
    records.RemoveTopicRecord: _remove_topic,
    records.PartitionRecord: _create_partition,
    records.PartitionChangeRecord: _change_partition,
    records.ConfigRecord: _set_config,
    records.UserScramCredentialRecord: _set_scram,
    records.RemoveUserScramCredentialRecord: _remove_scram,
    records.AccessControlEntryRecord: _create_acl,
    records.RemoveAccessControlEntryRecord: _remove_acl,
    records.ClientQuotaRecord: _set_quota,
    records.ProducerIdsRecord: _set_producer_ids,
    records.FeatureLevelRecord: _set_feature,
    records.NoOpRecord: _no_op,
}
