"""What is asked for is done wholly, within disks at every stage, or refused."""

from collections.abc import Sequence

import pytest

from control.model.ids import TopicPartition
from planner.disks.wholly import Asked
from planner.goals import Goal, ImpossibleError, PlanRequest
from planner.optimizer import plan
from planner.proposal import proposal_of
from planner.search.placement import Placement
from planner.topology import Topology, parse_topology
from tests.support.phrases import lacking


def tight(
    brokers: Sequence[tuple[int, int, str | None]], partitions: Sequence[tuple[list[int], int]]
) -> Topology:
    """Brokers: (id, bytes that its disks take, rack); partitions of ``t``: (replicas, bytes)."""
    return parse_topology(
        {
            "brokers": [{"id": id_, "capacity": most, "rack": rack} for id_, most, rack in brokers],
            "partitions": [
                {"topic": "t", "partition": number, "replicas": replicas, "size": size}
                for number, (replicas, size) in enumerate(partitions)
            ],
        }
    )


FULL = tight([(1, 30, None), (2, 30, None), (3, 25, None)], [([1], 30), ([2], 20)])
"""p (30) must leave 1: broker 2 has 10 free, broker 3 has 25 and takes q (20) of broker 2."""


@pytest.mark.parametrize("goal", [Goal.MINIMAL, Goal.RACKS, Goal.BALANCE, Goal.TOPICS])
def test_a_replica_makes_room_for_one_that_must_leave(goal: Goal) -> None:
    made = plan(FULL, PlanRequest(goal=goal, remove_brokers=(1,)))
    for alternative in made.alternatives:
        changes = {c.partition: (c.after, c.stage) for c in alternative.proposal.changes}
        assert changes == {0: ((2,), 1), 1: ((3,), 0)}
        assert any(f"plan {alternative.name} has 2 stages" in limit for limit in made.limits)
        assert alternative.violations == ()


def test_a_replica_makes_room_for_one_more() -> None:
    topology = tight([(1, 60, None), (2, 40, None), (3, 25, None)], [([1], 30), ([2, 1], 20)])
    request = PlanRequest(goal=Goal.REPLICATION, replication_factor=2)
    for alternative in plan(topology, request).alternatives:
        after = {c.partition: set(c.after) for c in alternative.proposal.changes}
        assert after == {0: {1, 2}, 1: {1, 3}}


def test_what_cannot_be_done_wholly_is_refused_with_what_stands_in_the_way() -> None:
    topology = tight(
        [(1, 90, None), (2, 30, None), (3, 30, None)],
        [([1], 20), ([1], 20), ([2], 15), ([3], 15)],
    )
    with pytest.raises(ImpossibleError) as refused:
        plan(topology, PlanRequest(goal=Goal.MINIMAL, remove_brokers=(1,)))
    assert "no disk room" in str(refused.value)
    topology = tight(
        [(1, 90, None), (2, 30, None), (3, 30, None)],
        [([1], 12), ([1], 12), ([2], 16), ([3], 16), ([2], 3)],
    )
    with pytest.raises(ImpossibleError) as refused:
        plan(topology, PlanRequest(goal=Goal.MINIMAL, remove_brokers=(1,)))
    for words in ("empties broker 1:", "no plan was found", "t-", "broker 2", "12 B", "lacks"):
        assert words in str(refused.value)


def test_a_rack_is_not_given_up_for_room() -> None:
    """The only room for t-0 is on the rack of its other replica."""
    topology = tight(
        [(1, 30, "a"), (2, 30, "b"), (3, 30, "a"), (4, 60, "b")],
        [([1, 2], 30), ([3], 20)],
    )
    with pytest.raises(ImpossibleError, match="t-0"):
        plan(
            topology,
            PlanRequest(goal=Goal.RACKS, remove_brokers=(1,), keep_partitions=("t-1",)),
        )
    made = plan(topology, PlanRequest(goal=Goal.RACKS, remove_brokers=(1,)))
    (first, second) = made.alternatives[0].proposal.changes
    assert (first.after, second.after) == ((3, 2), (4,))


def test_a_relieved_broker_is_within_its_disks_or_that_is_refused() -> None:
    over = tight([(1, 30, None), (2, 30, None), (3, 25, None)], [([1], 20), ([1], 15), ([2], 20)])
    made = plan(over, PlanRequest(goal=Goal.RELIEVE, relieve_brokers=(1,)))
    assert all(len(a.proposal.changes) >= 1 for a in made.alternatives)
    assert all(a.balance.bytes.max <= 30 for a in made.alternatives)
    full = tight([(1, 30, None), (2, 30, None)], [([1], 20), ([1], 15), ([2], 20)])
    with pytest.raises(ImpossibleError, match=r"broker 1.*5 B more"):
        plan(full, PlanRequest(goal=Goal.RELIEVE, relieve_brokers=(1,)))


def test_an_empty_replica_finds_a_place_where_every_disk_is_full() -> None:
    topology = tight([(1, 99, None), (2, 19, None)], [([1], 0), ([2], 20)])
    made = plan(topology, PlanRequest(goal=Goal.MINIMAL, remove_brokers=(1,)))
    assert [c.after for c in made.alternatives[0].proposal.changes] == [(2,)]


def test_a_relieved_broker_that_keeps_more_than_its_share_is_told() -> None:
    topology = tight([(1, 99, None), (2, 99, None)], [([1], 60), ([2], 20)])
    made = plan(topology, PlanRequest(goal=Goal.RELIEVE, relieve_brokers=(1,)))
    assert any("broker 1 keeps 20 B above its share" in limit for limit in made.limits)


def test_a_broker_that_has_room_for_no_replica_is_not_added() -> None:
    topology = tight([(1, 99, None), (2, 9, None)], [([1], 20), ([1], 10)])
    with pytest.raises(ImpossibleError, match=r"broker 2 .* t-1"):
        plan(topology, PlanRequest(add_brokers=(2,)))


def test_what_finds_no_room_is_left_out_and_told() -> None:
    """Two full brokers cannot change places; the third partition can go."""
    topology = tight(
        [(1, 60, None), (2, 20, None), (3, 99, None)], [([1], 40), ([2], 20), ([1], 20)]
    )
    original = Placement(topology, PlanRequest())
    targets = {("t", 0): (2,), ("t", 1): (1,), ("t", 2): (3,)}
    wanted = proposal_of(
        "swapped", topology, {TopicPartition(*key): to for key, to in targets.items()}
    )
    asked = Asked(original)
    made = asked.within_disks(wanted, original.copied)
    assert [c.partition for c in made.changes] == [1, 2]
    assert [c.stage for c in made.changes] == [1, 0]
    told = asked.told[made]
    assert not lacking(told, "swapped", "1 partition", "t-0", "broker 2", "0 B", "40 B")
    assert asked.within_disks(made, original.copied) is made
