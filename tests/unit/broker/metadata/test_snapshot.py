from uuid import UUID

from broker.metadata import records
from broker.metadata.image import MetadataImage
from broker.metadata.record_codec import encode_record
from broker.metadata.replay import replay_batch
from broker.metadata.snapshot import build_image, image_difference, image_records
from tests.unit.broker.controller.images import (
    CLUSTER_ID,
    apply,
    cluster,
    get,
    topic_id,
    with_partition,
    with_topic,
)


def rich_image() -> MetadataImage:
    """One of everything."""
    image = with_topic(cluster(4, racks={1: "a", 2: "b"}, fenced=(3,)), "t", (1, 2), (2, 1))
    image = with_topic(image, "u", (2,))
    image = with_partition(
        image,
        get(image, "t", 1),
        replicas=(3, 2, 1),
        adding_replicas=(3,),
        removing_replicas=(1,),
        isr=(2,),
        leader=-1,
        leader_epoch=7,
        partition_epoch=9,
    )
    return apply(
        image,
        [
            records.RegisterBrokerRecord(
                broker_id=5,
                incarnation_id=UUID(int=5),
                broker_epoch=500,
                endpoints=(
                    records.BrokerEndpoint(name="SSL", host="five", port=1, security_protocol=1),
                    records.BrokerEndpoint(name="INTERNAL", host="within", port=2),
                ),
            ),
            records.BrokerRegistrationChangeRecord(
                broker_id=4, broker_epoch=400, in_controlled_shutdown=1
            ),
            records.BrokerRegistrationChangeRecord(
                broker_id=2,
                broker_epoch=200,
                log_dirs=(topic_id("dir"),),
                cordoned_log_dirs=(topic_id("dir"),),
            ),
            records.ConfigRecord(
                resource_type=2, resource_name="t", name="retention.ms", value="1"
            ),
            records.ConfigRecord(
                resource_type=4, resource_name="", name="min.insync.replicas", value="2"
            ),
            records.ProducerIdsRecord(broker_id=1, broker_epoch=100, next_producer_id=3_000),
            records.FeatureLevelRecord(name="metadata.version", feature_level=27),
            *(
                records.UserScramCredentialRecord(
                    name=name,
                    mechanism=mechanism,
                    salt=b"salt",
                    stored_key=b"stored",
                    server_key=b"server",
                    iterations=8_192,
                )
                for name in ("alice", "bob")
                for mechanism in (1, 2)
            ),
            records.RemoveUserScramCredentialRecord(name="bob", mechanism=1),
            *(
                records.AccessControlEntryRecord(
                    id=topic_id(name),
                    resource_type=2,
                    resource_name=name,
                    pattern_type=4,
                    principal="User:alice",
                    host="*",
                    operation=3,
                    permission_type=2,
                )
                for name in ("kept", "gone")
            ),
            records.RemoveAccessControlEntryRecord(id=topic_id("gone")),
            *(
                records.ClientQuotaRecord(
                    entity=(records.QuotaEntityPart(entity_type="user", entity_name=name),),
                    key=key,
                    value=12.5,
                )
                for name in ("kept", "gone")
                for key in ("producer_byte_rate", "request_percentage")
            ),
            *(
                records.ClientQuotaRecord(
                    entity=(records.QuotaEntityPart(entity_type="user", entity_name="gone"),),
                    key=key,
                    remove=True,
                )
                for key in ("producer_byte_rate", "request_percentage")
            ),
            records.RemoveTopicRecord(topic_id=topic_id("u")),
        ],
    )


def test_image_comes_back_from_its_snapshot() -> None:
    image = rich_image()
    values = [encode_record(record) for record in image_records(image)]
    back = build_image(CLUSTER_ID, values, offset=image.offset, epoch=image.epoch)
    assert back == image


def test_difference_of_two_images_is_what_the_records_between_them_change() -> None:
    old = rich_image()
    between: list[records.MetadataRecord] = [
        records.RemoveTopicRecord(topic_id=topic_id("t")),
        records.TopicRecord(name="t", topic_id=topic_id("t again")),
        records.PartitionRecord(
            partition_id=0,
            topic_id=topic_id("t again"),
            replicas=(1,),
            isr=(1,),
            removing_replicas=(),
            adding_replicas=(),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
        ),
        records.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=200, fenced=1),
        records.ConfigRecord(
            resource_type=4, resource_name="", name="min.insync.replicas", value=None
        ),
    ]
    replayed = replay_batch(old, between, offset=old.offset + 5, epoch=old.epoch)
    assert image_difference(old, replayed.image) == replayed.changed
    assert image_difference(old, old).is_empty


def test_empty_image_has_no_records() -> None:
    assert list(image_records(MetadataImage(cluster_id="c"))) == []
