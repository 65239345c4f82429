"""Whoever knows metadata tells of the partitions that nobody who lives holds."""

from dataclasses import replace
from typing import Any

from broker.metadata.image import MetadataImage, TopicImage, broker_resource
from broker.metrics.orphans import PARTITIONS_PER_SLICE, Orphans
from broker.metrics_schema import ReplicaSample, Row, UnchangedReplica
from tests.unit.broker.handlers.cluster_images import (
    broker_image,
    cluster_image,
    node_with,
    topic_image,
)


def held_by(topic: TopicImage, *replicas: int) -> TopicImage:
    """The topic with all its partitions on these brokers, without a leader."""
    moved = {
        number: replace(it, replicas=replicas, isr=replicas, leader=-1)
        for number, it in topic.partitions.items()
    }
    return replace(topic, partitions=moved)


def told(orphans: Orphans, image: MetadataImage) -> list[Any]:
    rows: list[Row] = [row for piece in orphans.slices(node_with(image)) for row in piece]
    return rows


LONELY = held_by(topic_image("lonely", [1, 1], number=2), 103)
ALL = topic_image("all", [101, 102])


def test_only_partitions_without_a_living_broker_are_told() -> None:
    pair = held_by(topic_image("pair", [1], number=3), 102, 103)
    orphans = Orphans()
    assert told(orphans, cluster_image(ALL, LONELY, pair)) == []
    rows = told(orphans, cluster_image(ALL, LONELY, pair, fenced=(103,)))
    assert [(it.topic, it.partition, it.leader, it.replicas) for it in rows] == [
        ("lonely", 0, -1, (103,)),
        ("lonely", 1, -1, (103,)),
    ]
    assert all(isinstance(it, ReplicaSample) and it.high_watermark is None for it in rows)
    rows = told(orphans, cluster_image(ALL, LONELY, pair, fenced=(102, 103)))
    assert {it.topic for it in rows} == {"lonely", "pair"}


def test_a_broker_that_is_not_registered_any_more_leaves_orphans_too() -> None:
    image = cluster_image(ALL, LONELY)
    left = replace(image, brokers={id_: broker_image(id_) for id_ in (101, 102)})
    assert {it.topic for it in told(Orphans(), left)} == {"lonely"}


def test_what_has_not_changed_is_told_as_such_until_it_must_be_told_in_full() -> None:
    image, orphans = cluster_image(ALL, LONELY, fenced=(103,)), Orphans()
    told(orphans, image)
    assert {type(it) for it in told(orphans, image)} == {UnchangedReplica}
    orphans.forget()
    assert {type(it) for it in told(orphans, image)} == {ReplicaSample}
    assert told(orphans, cluster_image(ALL, fenced=(103,))) == [], "the topic is deleted"


def test_the_least_in_sync_is_that_in_force_on_this_broker() -> None:
    image, orphans = cluster_image(ALL, LONELY, fenced=(103,)), Orphans()
    node = node_with(image, min_insync_replicas="2")
    assert {row.min_isr for piece in orphans.slices(node) for row in piece} == {2}  # type: ignore[union-attr]
    altered = replace(image, configs={broker_resource(None): {"min.insync.replicas": "3"}})
    assert {row.min_isr for row in told(orphans, altered)} == {3}


def test_a_topic_that_is_the_same_is_not_looked_at_again() -> None:
    count = 2 * PARTITIONS_PER_SLICE
    topics = [topic_image(f"t{n}", [101] * (count // 4), number=n + 2) for n in range(4)]
    image, orphans = cluster_image(*topics), Orphans()
    assert list(orphans.slices(node_with(image))) == [(), ()], "others are served between them"
    assert list(orphans.slices(node_with(image))) == []
