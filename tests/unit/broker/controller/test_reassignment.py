import pytest

from broker.controller.decision import Rejected
from broker.controller.elections import IsUncleanEnabled
from broker.controller.errors import (
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    NoReassignmentInProgressError,
    UnknownTopicError,
)
from broker.controller.reassignment import (
    AlterReassignments,
    Reassignment,
    decide_alter_reassignments,
    list_reassignments,
)
from broker.metadata.image import MetadataImage
from tests.unit.broker.controller.images import (
    always,
    cluster,
    decided,
    fence,
    get,
    never,
    with_partition,
    with_topic,
)


def alter(
    image: MetadataImage,
    replicas: tuple[int, ...] | None,
    *,
    name: str = "t",
    guard: bool = False,
    is_unclean_enabled: IsUncleanEnabled = never,
) -> tuple[MetadataImage, type[Exception] | None]:
    command = AlterReassignments(
        reassignments=(Reassignment(topic=name, partition=0, replicas=replicas),),
        allow_replication_factor_change=not guard,
    )
    decision = decide_alter_reassignments(command, image, is_unclean_enabled=is_unclean_enabled)
    (verdict,) = decision.response.values()
    error = type(verdict.error) if isinstance(verdict, Rejected) else None
    return decided(image, decision), error


def test_move_keeps_the_removing_replicas_behind_the_target() -> None:
    image, error = alter(with_topic(cluster(5), "t", (1, 2, 3)), (4, 2, 5))
    partition = get(image, "t")
    assert error is None
    assert partition.replicas == (4, 2, 5, 1, 3)
    assert (partition.adding_replicas, partition.removing_replicas) == ((4, 5), (1, 3))
    assert (partition.isr, partition.leader, partition.leader_epoch) == ((1, 2, 3), 1, 0)


def test_new_order_of_the_same_replicas_is_done_at_once() -> None:
    image, _ = alter(with_topic(cluster(), "t", (1, 2, 3)), (3, 1, 2))
    partition = get(image, "t")
    assert partition.replicas == (3, 1, 2)
    assert not partition.is_reassigning
    assert partition.leader == 1, "the leader moves with a preferred election"


def test_only_removing_is_done_at_once_when_the_target_is_in_sync() -> None:
    image, _ = alter(with_topic(cluster(), "t", (1, 2, 3)), (2, 3))
    partition = get(image, "t")
    assert (partition.replicas, partition.isr, partition.leader) == ((2, 3), (2, 3), 2)


def test_shrinking_waits_until_the_whole_target_is_in_sync() -> None:
    image = with_topic(cluster(), "t", (1, 2, 3))
    image = with_partition(image, get(image, "t"), isr=(1, 2))
    image, _ = alter(image, (2, 3))
    assert get(image, "t").removing_replicas == (1,)
    assert get(image, "t").replicas == (2, 3, 1)


def test_cancel_returns_to_the_original_replicas() -> None:
    image, _ = alter(with_topic(cluster(5), "t", (1, 2)), (4, 5))
    image = with_partition(image, get(image, "t"), isr=(1, 2, 4))
    image, error = alter(image, None)
    partition = get(image, "t")
    assert error is None
    assert (set(partition.replicas), set(partition.isr)) == ({1, 2}, {1, 2})
    assert not partition.is_reassigning


def test_cancel_moves_a_leader_that_was_being_added() -> None:
    image, _ = alter(with_topic(cluster(), "t", (1, 2)), (3,))
    image = with_partition(image, get(image, "t"), isr=(1, 3), leader=3)
    image, _ = alter(image, None)
    assert get(image, "t").leader == 1


def test_cancel_is_refused_when_no_original_replica_is_in_sync() -> None:
    image, _ = alter(with_topic(cluster(), "t", (1,)), (2, 3))
    image = with_partition(image, get(image, "t"), isr=(2,), leader=2)
    after, error = alter(image, None)
    assert error is InvalidReplicaAssignmentError
    assert after is image


def test_nothing_to_cancel() -> None:
    assert alter(with_topic(cluster(), "t", (1,)), None)[1] is NoReassignmentInProgressError


def moving_to_456(isr: tuple[int, ...], *, leader: int = 1) -> MetadataImage:
    """A move of 1,2,3 in flight."""
    image, error = alter(with_topic(cluster(7), "t", (1, 2, 3)), (4, 5, 6))
    assert error is None
    return with_partition(image, get(image, "t"), isr=isr, leader=leader)


def state(image: MetadataImage) -> tuple[tuple[int, ...], ...]:
    """Replicas, adding, removing, ISR."""
    found = get(image, "t")
    return found.replicas, found.adding_replicas, found.removing_replicas, found.isr


def test_request_in_flight_starts_from_all_that_the_partition_has() -> None:
    image, _ = alter(moving_to_456((1, 4, 5)), (4, 2, 6))
    assert state(image) == ((4, 2, 6, 1, 3, 5), (4, 5, 6), (1, 3, 5), (1, 4, 5)), "5 stays in sync"
    image, _ = alter(image, None)
    assert state(image) == ((2, 1, 3), (), (), (1,))


def test_request_in_flight_for_new_replicas_makes_the_earlier_ones_original() -> None:
    image, _ = alter(moving_to_456((1, 4)), (7, 1))
    assert state(image) == ((7, 1, 2, 3, 4, 5, 6), (7,), (2, 3, 4, 5, 6), (1, 4))
    image, _ = alter(image, None)
    assert state(image) == ((1, 2, 3, 4, 5, 6), (), (), (1, 4))


def test_request_in_flight_for_all_of_them_changes_their_order_only() -> None:
    image, _ = alter(moving_to_456((1, 4)), (1, 2, 3, 4, 5, 6))
    assert state(image) == ((1, 2, 3, 4, 5, 6), (4, 5, 6), (1, 2, 3), (1, 4))


def test_request_back_to_the_original_ends_when_those_are_in_sync() -> None:
    image, _ = alter(moving_to_456((1, 4)), (1, 2, 3))
    assert state(image) == ((1, 2, 3, 4, 5, 6), (4, 5, 6), (4, 5, 6), (1, 4))
    image, _ = alter(moving_to_456((1, 2, 3, 4)), (1, 2, 3))
    assert state(image) == ((1, 2, 3), (), (), (1, 2, 3))


def test_request_without_those_in_sync_is_taken_and_waits() -> None:
    image, error = alter(moving_to_456((4, 5), leader=4), (1, 2, 6))
    assert error is None
    assert state(image) == ((1, 2, 6, 3, 4, 5), (4, 5, 6), (3, 4, 5), (4, 5))
    assert get(image, "t").leader == 4


def test_cancel_without_an_original_in_sync_takes_the_first_where_unclean_is_allowed() -> None:
    image, error = alter(moving_to_456((4, 5), leader=4), None, is_unclean_enabled=always)
    assert error is None
    assert state(image) == ((1, 2, 3), (), (), (1,))
    assert get(image, "t").leader == 1
    gone = fence(moving_to_456((4, 5), leader=4), 1)
    image, _ = alter(gone, None, is_unclean_enabled=always)
    assert (get(image, "t").isr, get(image, "t").leader) == ((2,), 2), "the first that lives"


@pytest.mark.parametrize("target", [(), (1, 1), (1, 9)])
def test_impossible_targets_are_refused(target: tuple[int, ...]) -> None:
    image = with_topic(cluster(), "t", (1, 2))
    assert alter(image, target)[1] is InvalidReplicaAssignmentError


def test_unknown_partition() -> None:
    assert alter(cluster(), (1,), name="t")[1] is UnknownTopicError


def test_guard_refuses_another_replication_factor_even_during_a_move() -> None:
    image = with_topic(cluster(5), "t", (1, 2))
    assert alter(image, (1, 2, 3), guard=True)[1] is InvalidReplicationFactorError
    moving, error = alter(image, (3, 4), guard=True)
    assert error is None
    assert alter(moving, (3, 4, 1, 2), guard=True)[1] is InvalidReplicationFactorError
    assert alter(moving, (1, 5), guard=True)[1] is None


def test_guard_goes_by_the_factor_that_a_move_in_flight_heads_for() -> None:
    image, _ = alter(with_topic(cluster(5), "t", (1, 2)), (3, 4, 5))
    assert alter(image, (1, 2), guard=True)[1] is InvalidReplicationFactorError
    assert alter(image, (1, 2, 3), guard=True)[1] is None


def test_fenced_target_is_taken_and_waits() -> None:
    image = fence(with_topic(cluster(), "t", (1, 2)), 3)
    image, error = alter(image, (1, 3))
    assert error is None
    assert get(image, "t").adding_replicas == (3,)


def test_list_of_moves() -> None:
    image = with_topic(with_topic(cluster(), "t", (1,)), "u", (1,))
    image, _ = alter(image, (2,))
    assert [p.topic for p in list_reassignments(image, None)] == ["t"]
    assert list_reassignments(image, [("u", 0), ("x", 1)]) == []
    assert [p.topic for p in list_reassignments(image, [("t", 0)])] == ["t"]
