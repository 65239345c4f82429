"""Topics, traffic, disks and stopped brokers as goals."""

from collections import Counter
from dataclasses import replace

import pytest

from planner.by_hand import NOTHING
from planner.goals import Goal, GoalError, PlanRequest
from planner.optimizer import Plan, plan
from planner.topology import Topology, TopologyPartition
from planner.verify import verify_proposal
from tests.support.phrases import lacking
from tests.unit.planner.clusters import cluster, seeded

THREE: dict[int, str | None] = {1: None, 2: None, 3: None}


def with_capacity(topology: Topology, capacity: int) -> Topology:
    """Every broker's disks hold so much."""
    brokers = tuple(replace(broker, capacity_bytes=capacity) for broker in topology.brokers)
    return replace(topology, brokers=brokers)


def stopped(topology: Topology, broker: int) -> Topology:
    """One of its brokers is down."""
    brokers = tuple(replace(b, is_running=b.id != broker) for b in topology.brokers)
    return replace(topology, brokers=brokers)


def spreads(made: Plan, number: int = 0) -> tuple[set[int], set[int]]:
    """Most minus fewest replicas, and leaders, of each topic."""
    after = made.before.with_replicas(made.alternatives[number].proposal.targets())
    replicas, leaders = set(), set()
    for topic in {p.topic for p in after.partitions}:
        members = [p for p in after.partitions if p.topic == topic]
        held = Counter(b for p in members for b in p.replicas)
        led = Counter(p.replicas[0] for p in members)
        replicas.add(max(held.values()) - min(held[b] for b in after.broker_ids))
        leaders.add(max(led.values()) - min(led[b] for b in after.broker_ids))
    return replicas, leaders


@pytest.mark.parametrize(("racks", "factor", "joined"), [(3, 3, 3), (0, 2, 1), (2, 2, 2)])
def test_each_topic_is_spread_evenly_with_its_leaders(racks: int, factor: int, joined: int) -> None:
    before = seeded(3, racks=racks, factor=factor, joined=joined)
    made = plan(before, PlanRequest(goal=Goal.TOPICS))
    first = made.alternatives[0]
    assert (made.balance_before.topics_uneven or 0) > 50
    assert first.balance.topics_uneven == 0
    replicas, leaders = spreads(made)
    assert replicas <= {0, 1}
    assert leaders <= {0, 1}
    assert first.violations == ()
    assert first.balance.bytes.max <= 1.04 * first.balance.bytes.mean
    for alternative in made.alternatives:
        assert alternative.lower_bound_bytes is not None
        assert 0 < alternative.lower_bound_bytes <= alternative.proposal.moved_bytes


def test_a_topic_on_one_broker_moves_no_more_than_it_must() -> None:
    made = plan(cluster(THREE, [(1,)] * 6), PlanRequest(goal=Goal.TOPICS))
    first = made.alternatives[0]
    assert first.proposal.moved_replicas == 4
    assert first.proposal.moved_bytes == first.lower_bound_bytes == 400


@pytest.mark.parametrize("joined", [0, 3])
def test_traffic_in_and_out_is_evened_beside_the_rest(joined: int) -> None:
    before = seeded(5, joined=joined, has_traffic=True)
    made = plan(before, PlanRequest(goal=Goal.TRAFFIC))
    first, now = made.alternatives[0].balance, made.balance_before
    for after, was in ((first.bytes_in, now.bytes_in), (first.bytes_out, now.bytes_out)):
        assert after is not None
        assert was is not None
        assert after.max / after.mean < was.max / was.mean
        assert after.max <= 1.15 * after.mean
    assert first.bytes.max <= 1.091 * first.bytes.mean
    for alternative in made.alternatives:
        assert alternative.violations == ()
        assert alternative.proposal.moved_bytes >= (alternative.lower_bound_bytes or 0)


def test_busy_replicas_are_exchanged_for_quiet_ones() -> None:
    quiet = cluster(THREE, [(1,), (1,), (2,), (2,), (3,), (3,)])
    partitions = tuple(
        replace(p, in_bytes_per_s=1000 if p.partition < 2 else 10) for p in quiet.partitions
    )
    made = plan(replace(quiet, partitions=partitions), PlanRequest(goal=Goal.TRAFFIC))
    first = made.alternatives[0]
    assert first.balance.bytes_in is not None
    assert first.balance.bytes_in.max == 1010
    assert (first.balance.replicas.min, first.balance.replicas.max) == (2, 2)
    # One of 2,010 B/s may keep 1,010: it gives at least half of what 1,000 B/s lie on.
    assert 0 < (first.lower_bound_bytes or 0) <= first.proposal.moved_bytes == 200


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_traffic_comes_first_where_numbers_are_uneven_beyond_the_scope(seed: int) -> None:
    """Brokers 101 and 102 hold most of what may not move, 105 most of the traffic that may."""
    before = seeded(seed, brokers=6, racks=0, partitions=240, factor=2, has_traffic=True)
    busy = ("t0", "t1", "t2")
    placed = []
    for number, p in enumerate(before.partitions):
        if p.topic in busy:
            homes, rate = ((105, 106), (106, 105), (105, 103))[number % 3], 20 * p.in_bytes_per_s
        elif number % 2:
            homes, rate = (101, 102), 10
        else:
            homes, rate = (p.replicas[0], p.replicas[1]), p.in_bytes_per_s
        placed.append(replace(p, replicas=homes, in_bytes_per_s=rate, out_bytes_per_s=0))
    made = plan(
        replace(before, partitions=tuple(placed)), PlanRequest(goal=Goal.TRAFFIC, topics=busy)
    )
    now, first = made.balance_before, made.alternatives[0].balance
    assert now.bytes_in is not None
    assert first.bytes_in is not None
    assert first.bytes_in.max < 0.75 * now.bytes_in.max
    assert first.replicas.max <= now.replicas.max
    assert first.replicas.min >= now.replicas.min
    assert first.leaders.max <= now.leaders.max
    assert first.bytes.max <= now.bytes.max
    assert made.alternatives[0].violations == ()


def test_traffic_that_nobody_knows_is_refused() -> None:
    with pytest.raises(GoalError, match="no rate is known"):
        plan(cluster(THREE, [(1,)]), PlanRequest(goal=Goal.TRAFFIC))


def test_leadership_of_busy_partitions_is_handed_over_without_moving_data() -> None:
    led = cluster({1: None, 2: None}, [(1, 2), (1, 2), (2, 1), (2, 1)])
    partitions = tuple(
        replace(p, out_bytes_per_s=900 if p.partition < 2 else 100) for p in led.partitions
    )
    made = plan(replace(led, partitions=partitions), PlanRequest(goal=Goal.TRAFFIC))
    first = made.alternatives[0]
    assert first.proposal.moved_bytes == 0
    assert first.balance.bytes_out is not None
    assert (first.balance.bytes_out.min, first.balance.bytes_out.max) == (1000, 1000)
    assert (first.balance.leaders.min, first.balance.leaders.max) == (2, 2)


def test_no_broker_gets_more_than_its_disks_hold() -> None:
    before = cluster({1: None, 2: None, 3: None}, [(1,)] * 9 + [(2,)] * 3)
    small = tuple(replace(b, capacity_bytes=200 if b.id == 3 else 5000) for b in before.brokers)
    for goal in (Goal.BALANCE, Goal.TOPICS, Goal.MINIMAL):
        made = plan(replace(before, brokers=small), PlanRequest(goal=goal))
        for alternative in made.alternatives:
            after = before.with_replicas(alternative.proposal.targets())
            assert sum(p.replicas == (3,) for p in after.partitions) <= 2
            assert alternative.violations == ()


def test_a_full_disk_is_relieved_whatever_the_goal() -> None:
    before = with_capacity(cluster(THREE, [(1,)] * 6), 300)
    made = plan(before, PlanRequest(goal=Goal.RACKS))
    assert made.alternatives[0].violations == ()
    assert made.alternatives[0].proposal.moved_replicas == 3


def test_a_removal_for_which_disks_lack_is_refused_with_the_proof() -> None:
    before = with_capacity(cluster(THREE, [(1,), (2,), (3,)] * 3), 400)
    request = PlanRequest(remove_brokers=(3,))
    with pytest.raises(GoalError, match=r"300 B .* brokers 1, 2, where 200 B is free"):
        plan(before, request)
    assert plan(with_capacity(before, 500), request).alternatives[0].violations == ()


def test_a_stopped_broker_gets_nothing_and_can_be_emptied() -> None:
    before = stopped(cluster(THREE, [(1, 2)] * 6 + [(3, 1)]), 3)
    made = plan(before, PlanRequest())
    assert not lacking(made.limits[0], "broker 3 does not run", "gets nothing", "1 replica stays")
    for alternative in made.alternatives:
        assert not any(3 in change.adding for change in alternative.proposal.changes)
    emptied = plan(before, PlanRequest(remove_brokers=(3,))).alternatives[0]
    assert emptied.violations == ()
    (change,) = (change for change in emptied.proposal.changes if change.adding)
    assert (change.before, set(change.after)) == ((3, 1), {1, 2})
    with pytest.raises(GoalError, match=r"broker 3 does not run.*start it first"):
        plan(before, PlanRequest(add_brokers=(3,)))


def test_names_that_do_not_exist_are_refused_with_what_is_like_them() -> None:
    before = cluster(THREE, [(1,)])
    for request, words in (
        (PlanRequest(topics=("tt",)), "no topic matches tt; t exists"),
        (PlanRequest(exclude_topics=("tt",)), "no topic matches tt; t exists"),
        (PlanRequest(keep_partitions=("t-1",)), r"to keep: t has no partition 1 \(0\)"),
        (PlanRequest(partitions=("t-1",)), r"partition t-1 to move: t has no partition 1 \(0\)"),
        (PlanRequest(partitions=("t-0",), keep_partitions=("t-0",)), "no partition is left"),
    ):
        with pytest.raises(GoalError, match=words):
            plan(before, request)
    assert plan(before, PlanRequest(exclude_topics=("__*",))).alternatives


def test_a_plan_without_sizes_says_so() -> None:
    empty = cluster(THREE, [(1,)] * 6, size=0)
    made = plan(empty, PlanRequest())
    assert made.alternatives[0].balance.replicas.max == 2
    assert "only numbers are evened" in made.limits[0]
    assert plan(cluster(THREE, [(1,)] * 6), PlanRequest()).limits == ()


def test_four_replicas_lie_two_and_two_on_two_racks() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "b"}
    before = cluster(racks, [(1, 2, 3, 4), (4, 5, 6, 1), (1, 2, 4, 5)])
    assert [v.where for v in verify_proposal(before, PlanRequest(), NOTHING)] == ["t-0", "t-1"]
    for goal in Goal.RACKS, Goal.BALANCE, Goal.TOPICS:
        for alternative in plan(before, PlanRequest(goal=goal)).alternatives:
            assert alternative.violations == ()
            after = before.with_replicas(alternative.proposal.targets())
            assert all(sum(b <= 3 for b in p.replicas) == 2 for p in after.partitions)
    one_left = PlanRequest(remove_brokers=(5, 6))
    assert plan(before, one_left).alternatives[0].violations == ()


def test_what_is_kept_is_not_exchanged_within_its_topic() -> None:
    names = [(topic, number) for number in range(4) for topic in ("t0", "t1", "t2")][:-1]
    placed = {("t0", 1): (100, 101), ("t0", 2): (100, 101), ("t1", 3): (100, 101, 102)}
    sizes = {("t0", 0): 1, ("t0", 1): 2, ("t0", 2): 3}
    topology = Topology(
        brokers=cluster(dict.fromkeys(range(100, 104)), []).brokers,
        partitions=tuple(
            TopologyPartition(
                topic=topic,
                partition=number,
                replicas=placed.get((topic, number), (100,)),
                size_bytes=sizes.get((topic, number), 0),
            )
            for topic, number in names
        ),
    )
    made = plan(topology, PlanRequest(goal=Goal.TOPICS, keep_partitions=("t0-1",)))
    for alternative in made.alternatives:
        assert not alternative.violations


def test_the_fewest_moves_that_decommission_a_broker_are_offered() -> None:
    before = seeded(5, racks=0, factor=2, joined=0)
    removed = before.broker_ids[-1]
    made = plan(before, PlanRequest(goal=Goal.MINIMAL, remove_brokers=(removed,)))
    offered = {alternative.name: alternative for alternative in made.alternatives}
    assert made.alternatives[0].name == "minimal"
    bare = offered["decommission only"].proposal
    stood = [p for p in before.partitions if removed in p.replicas]
    assert {change.key for change in bare.changes} == {p.key for p in stood}
    assert bare.moved_bytes == sum(p.size_bytes for p in stood)
    assert bare.moved_bytes < offered["minimal"].proposal.moved_bytes
    without = plan(before, PlanRequest(goal=Goal.MINIMAL))
    assert "decommission only" not in {it.name for it in without.alternatives}


CROWDED: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}
"""Racks beside which a partition on brokers 1 and 2 is crowded."""


def test_a_decommission_alone_leaves_racks_of_other_partitions_and_proves_its_bytes() -> None:
    topology = cluster(CROWDED, [(1, 2), (1, 3), (2, 5), (4, 1)])
    made = plan(topology, PlanRequest(goal=Goal.MINIMAL, remove_brokers=(5,)))
    (bare,) = [it for it in made.alternatives if it.name == "decommission only"]
    assert [change.partition for change in bare.proposal.changes] == [2]
    assert bare.proposal.moved_bytes == bare.lower_bound_bytes == 100
    assert [(it.where, it.is_new) for it in bare.violations] == [("t-0", False)]
    assert made.alternatives[0].violations == ()


def test_what_leaves_from_a_crowded_partition_is_proven_too() -> None:
    topology = cluster(CROWDED, [(3, 4), (1, 3), (2, 5), (4, 1)])
    request = PlanRequest(goal=Goal.MINIMAL, remove_brokers=(4,), exclude_brokers=(1, 2))
    made = plan(topology, request)
    (bare,) = [it for it in made.alternatives if it.name == "decommission only"]
    assert [it.where for it in bare.violations] == ["t-0"]
    assert bare.proposal.moved_bytes == bare.lower_bound_bytes == 200


@pytest.mark.parametrize(
    "request_",
    [
        PlanRequest(goal=Goal.RELIEVE, relieve_brokers=(3,), alternatives=1),
        PlanRequest(goal=Goal.REPLICATION, replication_factor=2, alternatives=1),
    ],
)
def test_racks_that_nobody_asked_about_stay_and_are_told(request_: PlanRequest) -> None:
    topology = cluster(CROWDED, [(1, 2), (3, 1), (3, 2), (3, 1), (3, 2, 4), (3, 1)])
    made = plan(topology, request_)
    (first,) = made.alternatives
    assert 0 not in {change.partition for change in first.proposal.changes if change.adding}
    assert {it.where for it in first.violations} == {"t-0"}
    assert any(not lacking(told, "1 partition", "racks", "goal racks") for told in made.limits)


@pytest.mark.parametrize(
    ("request_", "phrase"),
    [
        (PlanRequest(goal=Goal.RELIEVE, relieve_brokers=(1,)), "relieved brokers 1"),
        (PlanRequest(goal=Goal.TOPICS), "each topic"),
        (PlanRequest(), ""),
    ],
)
def test_demands_of_a_proven_minimum_beside_the_balance_are_told(
    request_: PlanRequest, phrase: str
) -> None:
    made = plan(cluster(THREE, [(1,), (1,), (1,), (1,), (2,)]), request_)
    told = [limit for limit in made.limits if "proven minimum" in limit]
    assert [phrase in limit for limit in told] == [True] * bool(phrase)
