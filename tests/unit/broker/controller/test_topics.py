import random
from collections.abc import Callable
from uuid import UUID

import pytest

from broker.controller.decision import Accepted
from broker.controller.errors import (
    ControllerError,
    InvalidConfigError,
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
from broker.controller.topics import (
    NewPartitions,
    NewTopic,
    TopicDefaults,
    decide_create_partitions,
    decide_create_topics,
    decide_delete_topics,
)
from broker.metadata.image import MetadataImage, topic_resource
from tests.unit.broker.controller.images import (
    cluster,
    decided,
    fence,
    get,
    topic_id,
    with_topic,
)


def defaults(*, deletion: bool = True) -> TopicDefaults:
    dice = random.Random(1)
    return TopicDefaults(
        partitions=4,
        replication_factor=2,
        dice=dice,
        new_id=lambda: UUID(int=dice.getrandbits(128)),
        is_deletion_enabled=deletion,
    )


def create(image: MetadataImage, *topics: NewTopic) -> tuple[MetadataImage, list[object]]:
    decision = decide_create_topics(topics, image, defaults())
    outcomes: list[object] = [
        verdict.value if isinstance(verdict, Accepted) else verdict.error
        for verdict in decision.response.values()
    ]
    return decided(image, decision), outcomes


def test_defaults_of_the_cluster_fill_what_is_left_open() -> None:
    image, _ = create(cluster(), NewTopic(name="t"))
    partitions = image.topics["t"].partitions
    assert sorted(partitions) == [0, 1, 2, 3]
    assert all(len(p.replicas) == 2 and p.isr == p.replicas for p in partitions.values())
    assert all(p.leader == p.replicas[0] for p in partitions.values())


def test_the_name_of_the_metadata_log_is_refused() -> None:
    before = cluster()
    image, (error,) = create(before, NewTopic(name="__cluster_metadata"))
    assert isinstance(error, TopicAuthorizationError)
    assert image is before


def test_configs_come_with_the_topic() -> None:
    configs = {"retention.ms": "1000", "cleanup.policy": "compact"}
    image, _ = create(cluster(), NewTopic(name="t", configs=configs))
    assert image.config(topic_resource("t")) == configs


def test_manual_assignment_with_a_fenced_replica_starts_without_it() -> None:
    image = fence(cluster(), 1)
    topic = NewTopic(name="t", assignments={0: (1, 2), 1: (3, 1)})
    image, _ = create(image, topic)
    assert (get(image, "t", 0).isr, get(image, "t", 0).leader) == ((2,), 2)
    assert get(image, "t", 1).replicas == (3, 1)


@pytest.mark.parametrize(
    ("topic", "error", "words"),
    [
        (NewTopic(name=""), InvalidTopicError, "empty string"),
        (NewTopic(name="."), InvalidTopicError, "'.' is not allowed"),
        (NewTopic(name="a b"), InvalidTopicError, "ASCII alphanumerics"),
        (NewTopic(name="ü"), InvalidTopicError, "ASCII alphanumerics"),
        (NewTopic(name="a\n"), InvalidTopicError, "ASCII alphanumerics"),
        (NewTopic(name="a" * 250), InvalidTopicError, "longer than the max"),
        (NewTopic(name="old"), TopicExistsError, "Topic 'old' already exists."),
        (NewTopic(name="a_b"), InvalidTopicError, "collides with existing topic: a.b"),
        (NewTopic(name="t", partitions=0), InvalidPartitionsError, "non-positive"),
        (NewTopic(name="t", partitions=-2), InvalidPartitionsError, "non-positive"),
        (NewTopic(name="t", partitions=10_001), PolicyViolationError, "Excessively"),
        (NewTopic(name="t", replication_factor=0), InvalidReplicationFactorError, "larger than 0"),
        (NewTopic(name="t", replication_factor=4), InvalidReplicationFactorError, "only 3 broker"),
        (
            NewTopic(name="t", configs={"x": "1"}),
            InvalidConfigError,
            "Unknown topic config name: x",
        ),
        (NewTopic(name="t", configs={"retention.ms": None}), InvalidConfigError, "Null value"),
        (NewTopic(name="t", configs={"retention.ms": "x"}), InvalidConfigError, "type LONG"),
        (
            NewTopic(name="t", assignments={0: (1,)}, partitions=1),
            InvalidConfigRequestError,
            "numPartitions was not set to -1",
        ),
        (
            NewTopic(name="t", assignments={0: (1,)}, replication_factor=1),
            InvalidConfigRequestError,
            "replication factor was not set to -1",
        ),
        (NewTopic(name="t", assignments={1: (1,)}), InvalidReplicaAssignmentError, "consecutive"),
        (NewTopic(name="t", assignments={0: ()}), InvalidReplicaAssignmentError, "empty replica"),
        (
            NewTopic(name="t", assignments={0: (1, 1)}),
            InvalidReplicaAssignmentError,
            "more than once",
        ),
        (NewTopic(name="t", assignments={0: (9,)}), InvalidReplicaAssignmentError, "broker 9"),
        (
            NewTopic(name="t", assignments={0: (1, 2), 1: (1,)}),
            InvalidReplicaAssignmentError,
            "not consistent",
        ),
    ],
)
def test_refusals_in_kafkas_words(
    topic: NewTopic, error: type[ControllerError], words: str
) -> None:
    image = with_topic(with_topic(cluster(), "old", (1,)), "a.b", (1,))
    after, outcomes = create(image, topic)
    assert isinstance(outcomes[0], error)
    assert words in str(outcomes[0])
    assert after is image


def test_assignment_to_fenced_brokers_only_is_refused() -> None:
    image = fence(cluster(), 1)
    _, outcomes = create(image, NewTopic(name="t", assignments={0: (1,)}))
    assert isinstance(outcomes[0], InvalidReplicaAssignmentError)


def test_refused_topic_does_not_harm_the_others() -> None:
    image, outcomes = create(cluster(), NewTopic(name="a"), NewTopic(name=""), NewTopic(name="b"))
    assert sorted(image.topics) == ["a", "b"]
    assert isinstance(outcomes[1], InvalidTopicError)


def test_topic_named_twice_is_refused_and_not_made() -> None:
    image, outcomes = create(cluster(), NewTopic(name="a"), NewTopic(name="a"))
    assert image.topics == {}
    assert len(outcomes) == 1
    assert isinstance(outcomes[0], InvalidConfigRequestError)


def test_delete_by_name_and_by_id() -> None:
    image = with_topic(with_topic(cluster(), "a", (1,)), "b", (1,))
    decision = decide_delete_topics(["a", topic_id("b")], image, defaults())
    assert [v.value for v in decision.response.values() if isinstance(v, Accepted)] == [
        ("a", topic_id("a")),
        ("b", topic_id("b")),
    ]
    assert decided(image, decision).topics == {}


def test_delete_refusals() -> None:
    image = with_topic(cluster(), "a", (1,))
    unknown = decide_delete_topics(["x", UUID(int=7)], image, defaults())
    assert [type(v.error) for v in unknown.response.values() if not isinstance(v, Accepted)] == [
        UnknownTopicError,
        UnknownTopicIdError,
    ]
    disabled = decide_delete_topics(["a"], image, defaults(deletion=False))
    (verdict,) = disabled.response.values()
    assert not isinstance(verdict, Accepted)
    assert isinstance(verdict.error, TopicDeletionDisabledError)
    assert disabled.records == ()


def add(image: MetadataImage, wanted: NewPartitions) -> tuple[MetadataImage, object]:
    decision = decide_create_partitions([wanted], image, defaults())
    (verdict,) = decision.response.values()
    outcome = verdict.value if isinstance(verdict, Accepted) else verdict.error
    return decided(image, decision), outcome


def test_partitions_are_added_behind_the_old_ones() -> None:
    image = with_topic(cluster(), "t", (1, 2), (2, 3))
    image, outcome = add(image, NewPartitions(topic="t", count=4))
    assert outcome == 4
    assert sorted(image.topics["t"].partitions) == [0, 1, 2, 3]
    assert len(get(image, "t", 3).replicas) == 2
    image, _ = add(image, NewPartitions(topic="t", count=5, assignments=[(3, 1)]))
    assert get(image, "t", 4).replicas == (3, 1)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (NewPartitions(topic="x", count=4), UnknownTopicError),
        (NewPartitions(topic="t", count=2), InvalidPartitionsError),
        (NewPartitions(topic="t", count=1), InvalidPartitionsError),
        (NewPartitions(topic="t", count=20_000), PolicyViolationError),
        (NewPartitions(topic="t", count=4, assignments=[(1, 2)]), InvalidReplicaAssignmentError),
        (NewPartitions(topic="t", count=3, assignments=[(1,)]), InvalidReplicaAssignmentError),
        (NewPartitions(topic="t", count=3, assignments=[(1, 9)]), InvalidReplicaAssignmentError),
    ],
)
def test_partition_refusals(wanted: NewPartitions, error: type[ControllerError]) -> None:
    image = with_topic(cluster(), "t", (1, 2), (2, 3))
    after, outcome = add(image, wanted)
    assert isinstance(outcome, error)
    assert after is image


def test_legal_names_are_taken() -> None:
    make: Callable[[str], object] = lambda name: create(cluster(), NewTopic(name=name))[1][0]  # noqa: E731
    for name in ("a", "A-b_c.d9", "...", "a" * 249):
        assert not isinstance(make(name), ControllerError)
