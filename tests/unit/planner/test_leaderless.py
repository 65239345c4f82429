"""Partitions without a leader stay, and the rest is planned."""

from dataclasses import replace

import pytest

from planner.goals import Goal, GoalError, PlanRequest
from planner.optimizer import judged_plan, plan
from planner.proposal import PartitionChange, Proposal
from planner.topology import Topology, parse_topology, topology_document
from tests.support.phrases import lacking
from tests.unit.planner.clusters import cluster


def half_dead() -> Topology:
    """Broker 3 is down: partitions 4 and 5 were only there."""
    before = cluster(dict.fromkeys((1, 2, 3, 4)), [(1, 3)] * 4 + [(3,)] * 2)
    brokers = tuple(replace(b, is_running=b.id != 3) for b in before.brokers)
    partitions = tuple(replace(p, has_leader=len(p.replicas) > 1) for p in before.partitions)
    return replace(before, brokers=brokers, partitions=partitions)


@pytest.mark.parametrize("goal", [Goal.BALANCE, Goal.RACKS, Goal.REPLICATION])
def test_a_plan_leaves_them_out_and_says_so(goal: Goal) -> None:
    factor = 2 if goal is Goal.REPLICATION else None
    request = PlanRequest(goal=goal, remove_brokers=(3,), replication_factor=factor)
    made = plan(half_dead(), request)
    for alternative in made.alternatives:
        assert {c.key.partition for c in alternative.proposal.changes} == {0, 1, 2, 3}
        stuck = {v.where for v in alternative.violations if v.rule == "removed"}
        assert stuck == {"t-4", "t-5"}
    assert not lacking(
        made.limits[0], "2 partitions", "no leader", "leaves out t-4, t-5", "bring back broker 3"
    )


def test_asked_for_alone_they_are_refused() -> None:
    with pytest.raises(GoalError, match="no partition is left: t-4, t-5"):
        plan(half_dead(), PlanRequest(partitions=("t-4", "t-5")))


def test_placed_by_hand_they_are_a_violation() -> None:
    change = PartitionChange(topic="t", partition=4, before=(3,), after=(4,), size_bytes=100)
    made = judged_plan(half_dead(), PlanRequest(), Proposal(name="x", changes=(change,)))
    (found,) = made.alternatives[0].violations
    assert (found.rule, str(found)) == ("leader", "t-4: has no leader and cannot move")


def test_a_topology_file_tells_them() -> None:
    document = topology_document(half_dead())
    assert [p.get("leaderless", False) for p in document["partitions"]] == [False] * 4 + [True] * 2
    assert parse_topology(document) == half_dead()
