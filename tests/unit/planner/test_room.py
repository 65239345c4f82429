"""What disks cannot take is refused with the proof, or told; it is never called reached."""

import pytest

from control.views.plans import nothing_to_move
from planner.goals import Goal, GoalError, PlanRequest
from planner.optimizer import judged_plan, plan
from planner.proposal import Proposal
from planner.topology import Topology, TopologyBroker, TopologyPartition
from tests.support.phrases import lacking


def one_large(*, capacity: int) -> Topology:
    """800 bytes on broker 1, and two others that may hold so many."""
    disks = {1: 2000, 2: capacity, 3: capacity}
    partition = TopologyPartition(topic="big", partition=0, replicas=(1,), size_bytes=800)
    small = TopologyPartition(topic="small", partition=0, replicas=(2,), size_bytes=300)
    return Topology(
        brokers=tuple(TopologyBroker(id=b, capacity_bytes=most) for b, most in disks.items()),
        partitions=(partition, small),
    )


REPLICATE = PlanRequest(goal=Goal.REPLICATION, replication_factor=2, topics=("big",))
REMOVE = PlanRequest(remove_brokers=(1,), topics=("big",))


@pytest.mark.parametrize("request_", [REPLICATE, REMOVE])
def test_a_replica_that_no_disk_takes_is_refused_with_the_largest(request_: PlanRequest) -> None:
    with pytest.raises(GoalError, match=r"big-0 holds 800 B.*broker 3 takes most: 700 B"):
        plan(one_large(capacity=700), request_)


@pytest.mark.parametrize("request_", [REPLICATE, REMOVE])
def test_one_disk_that_takes_it_is_enough(request_: PlanRequest) -> None:
    """What stays on broker 2 leaves it too little."""
    (change,) = plan(one_large(capacity=1000), request_).alternatives[0].proposal.changes
    assert 3 in change.after
    assert 2 not in change.after


def test_a_factor_that_was_not_reached_is_told_and_nothing_is_called_proven() -> None:
    nothing = Proposal(name="nothing")
    (judged,) = judged_plan(one_large(capacity=1000), REPLICATE, nothing).alternatives
    (violation,) = judged.violations
    assert str(violation) == "big-0: has 1 replica where 2 are asked for"
    assert judged.lower_bound_bytes is None
    title, broken = nothing_to_move(judged.violations)
    assert "reached" not in title
    assert broken == (str(violation),)
    assert nothing_to_move(())[0].endswith("the goal is reached already")


def test_a_limit_is_no_goal_that_is_reached() -> None:
    """What a broker that is down holds stays there, and the goal is not called reached."""
    brokers = (TopologyBroker(id=1), TopologyBroker(id=2), TopologyBroker(id=3, is_running=False))
    partition = TopologyPartition(topic="t", partition=0, replicas=(1, 3), size_bytes=1)
    before = Topology(brokers=brokers, partitions=(partition,))
    made = plan(before, PlanRequest(goal=Goal.MINIMAL))
    (minimal,) = made.alternatives
    assert not minimal.proposal.changes
    title, broken = nothing_to_move(minimal.violations, made.limits)
    assert not lacking(title, "Nothing to move", "goal is reached")
    assert broken == ()
    assert made.limits[0].startswith("broker 3 does not run")


def test_an_overfull_disk_gives_nothing_to_a_broker_that_is_down() -> None:
    brokers = (
        TopologyBroker(id=1, capacity_bytes=683),
        TopologyBroker(id=2, capacity_bytes=9000),
        TopologyBroker(id=3, capacity_bytes=9000, is_running=False),
    )
    partitions = tuple(
        TopologyPartition(topic="t", partition=n, replicas=(1,), size_bytes=300) for n in range(3)
    )
    topology = Topology(brokers=brokers, partitions=partitions)
    for alternative in plan(topology, PlanRequest(goal=Goal.RACKS)).alternatives:
        assert alternative.violations == ()
        assert {broker for c in alternative.proposal.changes for broker in c.adding} == {2}
