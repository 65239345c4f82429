"""What one request names twice is not done at all, and nothing that was done is told as refused."""

import random
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from broker.controller.alter_partition import (
    AlterPartition,
    IsrChange,
    IsrMember,
    decide_alter_partition,
)
from broker.controller.config_control import (
    AlterOperation,
    AlterResource,
    ConfigChange,
    decide_alter_configs,
)
from broker.controller.decision import Accepted, Decision, Rejected
from broker.controller.elections import ElectLeaders, decide_elect_leaders
from broker.controller.reassignment import (
    AlterReassignments,
    Reassignment,
    decide_alter_reassignments,
)
from broker.controller.topics import (
    NewPartitions,
    NewTopic,
    TopicDefaults,
    decide_create_partitions,
    decide_create_topics,
    decide_delete_topics,
)
from broker.metadata.image import topic_resource
from tests.unit.broker.controller.images import (
    cluster,
    decided,
    get,
    never,
    topic_id,
    with_partition,
    with_topic,
)

DEFAULTS = TopicDefaults(
    partitions=1, replication_factor=1, dice=random.Random(1), new_id=lambda: UUID(int=99)
)
IMAGE = with_topic(with_topic(cluster(5), "a", (1, 2), (2, 3)), "b", (3, 4))


def only(decision: Decision[Any], done: object) -> str:
    """The reason of those refused; of all that was asked, only `done` was accepted."""
    verdicts: Mapping[Any, Any] = decision.response
    assert [key for key, each in verdicts.items() if isinstance(each, Accepted)] == [done]
    (reason,) = {each.error.reason for each in verdicts.values() if isinstance(each, Rejected)}
    return str(reason)


def test_topics_that_are_created() -> None:
    asked = [NewTopic(name="x"), NewTopic(name="y"), NewTopic(name="x")]
    decision = decide_create_topics(asked, IMAGE, DEFAULTS)
    assert only(decision, "y") == "Duplicate topic name."
    assert decided(IMAGE, decision).topics.keys() == {"a", "b", "y"}


def test_topics_that_are_deleted() -> None:
    decision = decide_delete_topics(["a", "b", "a"], IMAGE, DEFAULTS)
    assert only(decision, "b") == "Duplicate topic name."
    assert decided(IMAGE, decision).topics.keys() == {"a"}
    decision = decide_delete_topics([topic_id("a"), "b", topic_id("a")], IMAGE, DEFAULTS)
    assert only(decision, "b") == "Duplicate topic id."
    assert decided(IMAGE, decision).topics.keys() == {"a"}
    decision = decide_delete_topics(["a", "b", topic_id("a")], IMAGE, DEFAULTS)
    assert "already supplied" in only(decision, "b")
    assert decided(IMAGE, decision).topics.keys() == {"a"}


def test_topics_that_get_partitions() -> None:
    asked = [NewPartitions(topic=name, count=n) for name, n in (("a", 5), ("b", 2), ("a", 3))]
    decision = decide_create_partitions(asked, IMAGE, DEFAULTS)
    assert only(decision, "b") == "Duplicate topic name."
    assert {n: len(t.partitions) for n, t in decided(IMAGE, decision).topics.items()} == {
        "a": 2,
        "b": 2,
    }


def test_resources_whose_configs_are_altered() -> None:
    asked = [
        AlterResource(
            resource=topic_resource(name),
            changes=[ConfigChange(name="retention.ms", operation=AlterOperation.SET, value=value)],
        )
        for name, value in (("a", "1"), ("b", "2"), ("a", "3"))
    ]
    decision = decide_alter_configs(asked, IMAGE, is_unclean_enabled=never)
    assert "at most once" in only(decision, topic_resource("b"))
    assert decided(IMAGE, decision).config(topic_resource("a")) == {}


def test_partitions_that_are_reassigned() -> None:
    asked = [
        Reassignment(topic=topic, partition=0, replicas=replicas)
        for topic, replicas in (("a", (1, 4)), ("b", (3, 5)), ("a", (1, 2, 5)))
    ]
    command = AlterReassignments(reassignments=asked)
    decision = decide_alter_reassignments(command, IMAGE, is_unclean_enabled=never)
    assert "twice" in only(decision, ("b", 0))
    assert get(decided(IMAGE, decision), "a") == get(IMAGE, "a")


def test_partitions_that_elect_are_elected_once() -> None:
    image = with_partition(IMAGE, get(IMAGE, "a"), leader=2)
    command = ElectLeaders(is_unclean=False, partitions=[("a", 0), ("a", 0)])
    decision = decide_elect_leaders(command, image)
    assert decision.response == {("a", 0): Accepted(1)}
    assert get(decided(image, decision), "a").leader_epoch == get(image, "a").leader_epoch + 1


def test_partitions_whose_isr_is_changed() -> None:
    def change(isr: tuple[int, ...], name: str, partition: int) -> IsrChange:
        return IsrChange(
            topic_id=topic_id(name),
            partition=partition,
            leader_epoch=0,
            partition_epoch=0,
            new_isr=tuple(IsrMember(broker_id=each) for each in isr),
        )

    image = with_topic(cluster(), "c", (1, 2, 3), (1, 2))
    changes = [change((1,), "c", 0), change((1,), "c", 1), change((1, 2), "c", 0)]
    command = AlterPartition(broker_id=1, broker_epoch=100, changes=changes)
    decision = decide_alter_partition(command, image)
    assert "twice" in only(decision, (topic_id("c"), 1))
    assert get(decided(image, decision), "c") == get(image, "c")
