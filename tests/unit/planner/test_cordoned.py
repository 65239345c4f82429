"""A cordoned broker receives nothing and keeps what it has unless a plan empties it."""

from dataclasses import replace

import pytest

from planner.by_hand import NOTHING, HandError, edited, parse_edits
from planner.goals import Goal, GoalError, PlanRequest
from planner.optimizer import judged_plan, plan
from planner.proposal import PartitionChange, Proposal
from planner.topology import Topology, parse_topology, topology_document
from tests.support.phrases import lacking
from tests.unit.planner.clusters import cluster


def cordoned(*ids: int) -> Topology:
    """Brokers 1 to 4; every partition of 0 to 3 is on broker 3, partitions 4 to 9 are not."""
    before = cluster(dict.fromkeys((1, 2, 3, 4)), [(1, 3)] * 4 + [(1, 2)] * 6)
    brokers = tuple(replace(b, is_cordoned=b.id in ids) for b in before.brokers)
    return replace(before, brokers=brokers)


@pytest.mark.parametrize("goal", [Goal.BALANCE, Goal.TOPICS, Goal.LEADERS])
def test_what_stands_there_stays_and_the_rest_is_planned(goal: Goal) -> None:
    made = plan(cordoned(3), PlanRequest(goal=goal))
    changes = made.alternatives[0].proposal.changes
    assert changes
    assert {change.key.partition for change in changes} <= set(range(4, 10))
    assert all(3 not in change.after for change in changes)
    assert not lacking(
        made.limits[0],
        *("broker 3 is cordoned", "4 replicas stay", "leaves out", "uncordon it"),
        "decommission it",
    )


def test_it_is_emptied_when_it_is_removed() -> None:
    made = plan(cordoned(3), PlanRequest(goal=Goal.RACKS, remove_brokers=(3,)))
    (racks, *_) = made.alternatives
    assert {change.key.partition for change in racks.proposal.changes} == {0, 1, 2, 3}
    assert racks.violations == ()
    assert not [words for words in made.limits if "cordoned" in words]


@pytest.mark.parametrize(
    ("ids", "request_", "refusal"),
    [
        ((3,), PlanRequest(add_brokers=(3,)), "broker 3 is cordoned .* uncordon it first"),
        (
            (3,),
            PlanRequest(goal=Goal.RELIEVE, relieve_brokers=(3,)),
            "broker 3 is cordoned, .* or decommission it",
        ),
        (
            (1, 3),
            PlanRequest(goal=Goal.RACKS, remove_brokers=(3,)),
            r"broker 3 cannot .*: broker 1, cordoned,",
        ),
        (
            (3,),
            PlanRequest(partitions=("t-0", "t-1")),
            "no partition is left: t-0, t-1 .* cordoned",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(
    ids: tuple[int, ...], request_: PlanRequest, refusal: str
) -> None:
    with pytest.raises(GoalError, match=refusal):
        plan(cordoned(*ids), request_)


def test_by_hand_it_is_refused_with_what_would_work() -> None:
    with pytest.raises(HandError, match=r"t-4: broker 3 is cordoned; \[1, 2\] would work"):
        edited(cordoned(3), NOTHING, parse_edits("t-4: 1,3"))


def test_the_judge_sees_it_also_where_the_replica_is_there_already() -> None:
    change = PartitionChange(topic="t", partition=0, before=(1, 3), after=(3, 1), size_bytes=100)
    made = judged_plan(cordoned(3), PlanRequest(), Proposal(name="x", changes=(change,)))
    (found,) = made.alternatives[0].violations
    assert (found.rule, str(found)) == (
        "brokers",
        "t-0: Kafka refuses cordoned broker 3",
    )


def test_a_topology_file_tells_it() -> None:
    document = topology_document(cordoned(3))
    assert [b.get("cordoned", False) for b in document["brokers"]] == [False, False, True, False]
    assert parse_topology(document) == cordoned(3)
