"""Brokers without a rack beside others that have one: no rule is switched off by them."""

from dataclasses import replace
from itertools import product

import pytest

from planner.explain import Reasons
from planner.goals import Goal, GoalError, PlanRequest
from planner.nearest import Nearest
from planner.optimizer import plan
from planner.proposal import PartitionChange, Proposal
from planner.racks import Racks
from planner.topology import Topology, TopologyBroker
from planner.verify import verify_proposal
from tests.support.phrases import lacking
from tests.unit.planner.clusters import cluster, seeded

TRUE = {id_: "abc"[(id_ - 1) // 3] for id_ in range(1, 10)}
"""Three racks of three."""


def spread_out(unknown: tuple[int, ...]) -> Topology:
    """90 partitions, 30 replicas on each broker, one on each rack; some racks are not told."""
    homes = [[b for b in TRUE if TRUE[b] == rack] for rack in "abc"]
    placed = [
        tuple(homes[(at + p) % 3][(p // 3 + p // 9 * at) % 3] for at in range(3)) for p in range(90)
    ]
    told = {b: None if b in unknown else rack for b, rack in TRUE.items()}
    return cluster(told, placed, size=10**9)


@pytest.mark.parametrize("unknown", [(), (9,), (8, 9), (4, 9)])
@pytest.mark.parametrize("goal", [Goal.BALANCE, Goal.RACKS])
def test_no_partition_loses_a_rack_whatever_the_unknown_ones_are(
    unknown: tuple[int, ...], goal: Goal
) -> None:
    before = spread_out(unknown)
    made = plan(before, PlanRequest(goal=goal, remove_brokers=(2,)))
    for alternative in made.alternatives:
        assert alternative.violations == ()
        for change in alternative.proposal.changes:
            for racks in product("abc", repeat=len(unknown)):
                of = {**TRUE, **dict(zip(unknown, racks, strict=True))}
                was, now = ({of[b] for b in ids} for ids in (change.before, change.after))
                assert len(now) >= len(was), f"{change} where racks are {of}"
    words = f"{'brokers' if len(unknown) > 1 else 'broker'} {', '.join(map(str, unknown))} ha"
    assert any(limit.startswith(words) for limit in made.limits) == bool(unknown)


def test_an_unknown_rack_asks_for_nothing() -> None:
    """Broker 9 would get a replica of every partition if its rack counted as a third one."""
    before = cluster({1: "a", 2: "a", 3: "b", 4: "b", 9: None}, [(1, 3, 2), (3, 1, 4)] * 10)
    for goal in (Goal.RACKS, Goal.BALANCE):
        first = plan(before, PlanRequest(goal=goal)).alternatives[0]
        held = before.with_replicas(first.proposal.targets())
        assert first.violations == ()
        assert sum(9 in p.replicas for p in held.partitions) <= 13


def test_racks_are_mended_among_the_known_ones() -> None:
    before = cluster({1: "a", 2: "a", 3: "b", 9: None}, [(1, 2), (1, 9)])
    made = plan(before, PlanRequest(goal=Goal.RACKS)).alternatives[0]
    assert [c.after for c in made.proposal.changes] in ([(1, 3)], [(3, 2)])
    assert made.violations == ()


def test_a_dropped_replica_is_one_of_an_unknown_rack() -> None:
    before = cluster({1: "a", 2: "b", 9: None}, [(9, 1, 2)])
    request = PlanRequest(goal=Goal.REPLICATION, replication_factor=2)
    (change,) = plan(before, request).alternatives[0].proposal.changes
    assert change.after == (1, 2)


def test_a_known_rack_left_for_an_unknown_one_is_a_violation() -> None:
    before = cluster({1: "a", 2: "b", 3: "c", 9: None}, [(1, 2, 3)])
    change = PartitionChange(
        topic="t", partition=0, before=(1, 2, 3), after=(1, 2, 9), size_bytes=1
    )
    (found,) = verify_proposal(before, PlanRequest(), Proposal(name="x", changes=(change,)))
    assert found.is_new
    assert not lacking(str(found), "t-0", "leaves rack c", "rack of broker 9", "unknown")


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ((1, 2, 9), (1, 2, 3), ["on 3 racks", "2 racks and 1 unknown"]),
        ((1, 4, 9), (1, 2, 9), ["on 2 racks and 1 unknown", "1 rack and 1 unknown"]),
        ((1, 2, 3), (1, 2, 9), ["3 holds +100 % → 9 holds −100 %"]),
    ],
)
def test_why_counts_the_known_racks(
    before: tuple[int, ...], after: tuple[int, ...], why: list[str]
) -> None:
    topology = cluster({1: "a", 4: "a", 2: "b", 3: "c", 9: None}, [(3,), (3,), (1,), (2,), (4,)])
    change = PartitionChange(topic="t", partition=0, before=before, after=after, size_bytes=1)
    assert Reasons(topology, PlanRequest()).why(change).split(" instead of ") == why


def test_racks_may_be_required() -> None:
    before = spread_out((8, 9))
    request = PlanRequest(require_racks=True)
    with pytest.raises(GoalError, match=r"racks are required.* brokers 8, 9 have no rack"):
        plan(before, request)
    plan(before, replace(request, exclude_brokers=(8, 9)))
    plan(spread_out(()), request)


def test_a_cluster_without_racks_has_no_rack_rules() -> None:
    before = cluster(dict.fromkeys((1, 2, 3)), [(1, 2)] * 6)
    made = plan(before, PlanRequest())
    assert made.limits == ()
    assert Racks(of=dict.fromkeys((1, 2), None)).unknown == ()


def test_the_nearest_assignment_prefers_a_known_rack() -> None:
    topology = cluster({1: "a", 2: "a", 3: "b", 9: None}, [(1, 2)])
    assert Nearest(topology).working(topology.partitions[0], (1, 77)) == (1, 3)


def test_a_balance_is_reached_beside_an_unknown_rack() -> None:
    """Rules hold, and yet the others are evened."""
    before = seeded(7, racks=3, brokers=12, joined=3, partitions=240)
    brokers = (replace(before.brokers[0], rack=None), *before.brokers[1:])
    made = plan(replace(before, brokers=brokers), PlanRequest())
    first = made.alternatives[0]
    assert not any(violation.is_new for violation in first.violations)
    assert first.balance.bytes.max / first.balance.bytes.mean < 1.3


def test_one_disk_of_unknown_size_does_not_hide_that_others_are_too_small() -> None:
    brokers = (
        *(TopologyBroker(id=id_) for id_ in (1, 2)),
        TopologyBroker(id=3, capacity_bytes=10),
        TopologyBroker(id=4),
    )
    before = replace(cluster(dict.fromkeys((1, 2, 3, 4)), [(1, 2)]), brokers=brokers)
    with pytest.raises(GoalError, match="broker 3 takes most: 10 B"):
        plan(before, PlanRequest(goal=Goal.RACKS, remove_brokers=(1, 2)))
