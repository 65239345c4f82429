import time
from uuid import UUID

import pytest

from broker.metadata import records
from broker.metadata.delta import ReplayError
from broker.metadata.image import (
    MetadataImage,
    broker_resource,
    topic_resource,
)
from broker.metadata.records import MetadataRecord
from broker.metadata.replay import replay, replay_batch
from tests.unit.broker.controller.images import apply, cluster, get, topic_id, with_topic


def test_registration_gives_a_broker_its_epoch_and_endpoint() -> None:
    image = cluster(1, racks={1: "a"}, fenced=(1,))
    broker = image.brokers[1]
    assert (broker.epoch, broker.rack) == (100, "a")
    assert broker.endpoint("PLAINTEXT") == records.BrokerEndpoint(
        name="PLAINTEXT", host="h", port=9001
    )
    assert broker.endpoint("SSL") is None
    assert broker.fenced
    assert not broker.is_active


def test_unfencing_and_shutdown_change_the_registration() -> None:
    image = cluster(1, fenced=(1,))
    unfence = records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=100, fenced=-1)
    image = replay(image, unfence)
    assert image.brokers[1].is_active
    leaving = records.BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=100, in_controlled_shutdown=1
    )
    image = replay(image, leaving)
    assert image.brokers[1].in_controlled_shutdown
    assert not image.brokers[1].is_active


def test_record_of_an_old_broker_epoch_does_not_fit() -> None:
    image = cluster(1)
    change = records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=99, fenced=1)
    with pytest.raises(ReplayError, match="broker 1 epoch 99"):
        replay(image, change)


def test_topic_and_partitions_appear_together_by_name_and_id() -> None:
    image = with_topic(cluster(), "orders", (1, 2), (2, 3))
    topic = image.topics["orders"]
    assert image.topics_by_id[topic_id("orders")] is topic
    assert topic.partitions[1].replicas == (2, 3)
    assert get(image, "orders").leader == 1


def test_partition_change_raises_epochs_as_kafka_does() -> None:
    image = with_topic(cluster(), "orders", (1, 2, 3))
    id_ = topic_id("orders")
    image = replay(image, records.PartitionChangeRecord(partition_id=0, topic_id=id_, isr=(1, 2)))
    shrunk = get(image, "orders")
    assert (shrunk.leader_epoch, shrunk.partition_epoch, shrunk.isr) == (0, 1, (1, 2))
    image = replay(image, records.PartitionChangeRecord(partition_id=0, topic_id=id_, leader=2))
    moved = get(image, "orders")
    assert (moved.leader, moved.leader_epoch, moved.partition_epoch) == (2, 1, 2)


def test_change_of_an_unknown_partition_does_not_fit() -> None:
    image = with_topic(cluster(), "orders", (1,))
    change = records.PartitionChangeRecord(partition_id=7, topic_id=topic_id("orders"))
    with pytest.raises(ReplayError, match="orders-7"):
        replay(image, change)


def test_topic_made_twice_does_not_fit() -> None:
    image = with_topic(cluster(), "orders", (1,))
    with pytest.raises(ReplayError, match="orders is created, but exists"):
        replay(image, records.TopicRecord(name="orders", topic_id=UUID(int=9)))


def test_removed_topic_takes_its_configs_along() -> None:
    image = with_topic(cluster(), "orders", (1,))
    config = records.ConfigRecord(
        resource_type=2, resource_name="orders", name="retention.ms", value="1"
    )
    image = replay(image, config)
    assert image.config(topic_resource("orders")) == {"retention.ms": "1"}
    image = replay(image, records.RemoveTopicRecord(topic_id=topic_id("orders")))
    assert image.topics == {}
    assert image.topics_by_id == {}
    assert image.configs == {}


def test_topic_deleted_and_made_again_in_one_batch_is_the_new_one() -> None:
    image = with_topic(cluster(), "orders", (1,))
    batch: list[MetadataRecord] = [
        records.RemoveTopicRecord(topic_id=topic_id("orders")),
        records.TopicRecord(name="orders", topic_id=UUID(int=9)),
        records.PartitionRecord(
            partition_id=0, topic_id=UUID(int=9), replicas=(2,), isr=(2,), leader=2
        ),
    ]
    replayed = replay_batch(image, batch, offset=20, epoch=3)
    assert replayed.image.topics["orders"].topic_id == UUID(int=9)
    assert [t.topic_id for t in replayed.changed.topics_deleted] == [topic_id("orders")]
    assert replayed.changed.topics_changed == {"orders"}
    assert replayed.changed.partitions_changed == {("orders", 0)}
    assert (replayed.image.offset, replayed.image.epoch) == (20, 3)


def test_configs_are_set_and_removed() -> None:
    image = cluster()

    def config(name: str, value: str | None) -> records.ConfigRecord:
        return records.ConfigRecord(resource_type=4, resource_name="1", name=name, value=value)

    image = apply(image, [config("a", "1"), config("b", "2")])
    image = replay(image, config("a", None))
    assert image.config(broker_resource(1)) == {"b": "2"}


def test_producer_ids_and_features_are_kept() -> None:
    image = apply(
        cluster(),
        [
            records.ProducerIdsRecord(broker_id=1, broker_epoch=100, next_producer_id=2000),
            records.FeatureLevelRecord(name="metadata.version", feature_level=27),
            records.NoOpRecord(),
        ],
    )
    assert image.next_producer_id == 2000
    assert image.features == {"metadata.version": 27}


def test_unchanged_parts_are_shared() -> None:
    image = with_topic(with_topic(cluster(), "a", (1,)), "b", (1,))
    after = replay(
        image, records.PartitionChangeRecord(partition_id=0, topic_id=topic_id("a"), isr=(1,))
    )
    assert after.brokers is image.brokers
    assert after.topics["b"] is image.topics["b"]
    assert image.topics["a"].partitions[0].partition_epoch == 0, "old images do not change"


def test_batch_costs_records_plus_topics_not_their_product() -> None:
    """20,000 topics changed in one batch take seconds if each record copied the map."""
    batch: list[MetadataRecord] = []
    for number in range(20_000):
        id_ = UUID(int=number + 1)
        batch.append(records.TopicRecord(name=f"t{number}", topic_id=id_))
        batch.append(
            records.PartitionRecord(partition_id=0, topic_id=id_, replicas=(1,), isr=(1,), leader=1)
        )
    started_s = time.process_time()
    image = apply(MetadataImage(cluster_id="c"), batch)
    assert len(image.topics) == 20_000
    assert time.process_time() - started_s < 9
