"""Plans on small clusters where the right answer is known."""

import json
from dataclasses import replace
from typing import Any

import pytest

from control.model.ids import TopicPartition
from planner.goals import Goal, GoalError, PlanRequest
from planner.optimizer import Alternative, plan, worth_offering
from planner.proposal import PartitionChange, Proposal
from planner.report import plan_document
from planner.topology import Topology, TopologyPartition
from planner.waves import LeaderTurn, SizeOrder, WaveRules, plan_waves
from tests.support.phrases import lacking
from tests.unit.planner.clusters import cluster, judged_as, single


def best(topology: Topology, **request: Any) -> Alternative:
    return plan(topology, PlanRequest(**request)).alternatives[0]


def test_an_even_cluster_stays_as_it_is() -> None:
    topology = cluster({1: None, 2: None, 3: None}, [(1, 2), (2, 3), (3, 1)])
    for alternative in plan(topology, PlanRequest()).alternatives:
        assert alternative.proposal.changes == ()
        assert alternative.lower_bound_bytes == 0


def test_an_alternative_that_allows_more_and_yet_moves_no_less_is_not_offered() -> None:
    topology = cluster({1: None, 2: None, 3: None}, [(1,)] * 6 + [(2,)] * 6)
    balanced, even, minimal = (t for t in PlanRequest().tolerances())
    (plan_,) = plan(topology, PlanRequest()).alternatives
    fuller = replace(plan_.balance, bytes=replace(plan_.balance.bytes, max=401))
    twice = replace(plan_.proposal, changes=plan_.proposal.changes * 2)
    plan_, dear = replace(plan_, balance=fuller), replace(plan_, proposal=twice)
    assert worth_offering({balanced: plan_, even: dear, minimal: dear}) == [plan_, dear]
    assert worth_offering({balanced: dear, even: dear, minimal: plan_}) == [dear, plan_]
    assert worth_offering({minimal: plan_, balanced: plan_}) == [plan_]
    relieved = PlanRequest(goal=Goal.RELIEVE).tolerances()[0]
    assert worth_offering({relieved: dear, minimal: plan_}) == [dear, plan_]


def test_what_another_one_dominates_is_not_offered_and_that_one_takes_its_place() -> None:
    topology = cluster({1: None, 2: None, 3: None}, [(1,)] * 6 + [(2,)] * 6)
    balanced, even, minimal = (t for t in PlanRequest().tolerances())
    (good,) = plan(topology, PlanRequest()).alternatives
    dear = replace(good, proposal=replace(good.proposal, changes=good.proposal.changes * 2))
    fuller = replace(good.balance, bytes=replace(good.balance.bytes, max=401))
    worse = replace(dear, balance=fuller)
    assert worth_offering({minimal: worse, even: good, balanced: dear}) == [good]


def test_a_joined_broker_gets_its_share_and_no_byte_more_moves() -> None:
    topology = cluster({1: None, 2: None, 3: None}, [(1,)] * 6 + [(2,)] * 6)
    alternative = best(topology)
    assert alternative.balance.replicas.max == alternative.balance.replicas.min == 4
    assert alternative.proposal.moved_replicas == 4
    assert alternative.proposal.moved_bytes == alternative.lower_bound_bytes == 400
    assert all(change.after == (3,) for change in alternative.proposal.changes)


def test_the_worked_example_of_the_bound() -> None:
    topology = cluster({1: None, 2: None, 3: None}, [(1,)] * 10 + [(2,)] * 10, size=10)
    targets = {TopicPartition("t", p): (3,) for p in (0, 1, 2, 10, 11, 12)}
    changes = tuple(
        PartitionChange(
            topic="t",
            partition=key.partition,
            before=topology.partitions[key.partition].replicas,
            after=after,
            size_bytes=10,
        )
        for key, after in targets.items()
    )
    judged = judged_as(topology, PlanRequest(), Proposal(name="hand", changes=changes))
    assert judged.balance.bytes.max == 70
    assert judged.lower_bound_bytes == judged.proposal.moved_bytes == 60


def test_a_removed_broker_is_emptied_and_nothing_else_moves_without_need() -> None:
    topology = cluster({1: "a", 2: "b", 3: "a", 4: "b"}, [(1, 2), (3, 4), (1, 4), (3, 2)])
    alternative = best(topology, goal=Goal.RACKS, remove_brokers=(4,))
    assert alternative.violations == ()
    assert {c.key.partition for c in alternative.proposal.changes} == {1, 2}
    assert all(c.after[1] == 2 for c in alternative.proposal.changes)


def test_rack_violations_are_repaired_by_followers() -> None:
    topology = cluster({1: "a", 2: "a", 3: "b", 4: "b"}, [(1, 2), (3, 4)])
    alternative = best(topology, goal=Goal.RACKS)
    assert alternative.violations == ()
    assert alternative.proposal.moved_leaders == 0
    assert alternative.proposal.moved_bytes == alternative.lower_bound_bytes == 200


def test_an_emptied_broker_gives_to_the_only_one_left_even_on_a_used_rack() -> None:
    topology = cluster({1: "a", 2: "a", 3: "a", 4: "b"}, [(1, 2)])
    alternative = best(topology, remove_brokers=(1,), exclude_brokers=(2, 4))
    assert [c.after for c in alternative.proposal.changes] == [(3, 2)]
    assert [v.rule for v in alternative.violations] == ["racks"]


def test_leaders_are_evened_without_moving_data() -> None:
    topology = cluster(
        {1: None, 2: None, 3: None}, [(1, 2), (1, 3), (1, 2), (1, 3), (2, 1), (2, 1)]
    )
    alternative = best(topology, goal=Goal.LEADERS)
    assert alternative.proposal.moved_bytes == 0
    assert (alternative.balance.leaders.min, alternative.balance.leaders.max) == (2, 2)
    # Broker 1 gives two away; 3 is reached only through partitions that it holds.
    assert alternative.proposal.moved_leaders == 2


def test_leaders_leave_broken_racks_and_full_disks_and_say_which_goal_mends_them() -> None:
    racks = cluster({1: "a", 2: "a", 3: "b"}, [(1, 2)] * 4, size=2**30)
    sizes = (2**30, 2**40, 2**40)
    brokers = tuple(
        replace(broker, capacity_bytes=size)
        for broker, size in zip(racks.brokers, sizes, strict=True)
    )
    made = plan(replace(racks, brokers=brokers), PlanRequest(goal=Goal.LEADERS))
    (alternative,) = made.alternatives
    assert alternative.proposal.moved_bytes == 0
    assert alternative.proposal.moved_leaders == 2
    racks_told, disks_told = made.limits
    assert not lacking(racks_told, "4 partitions", "racks", "goal racks", "goal leaders")
    assert not lacking(disks_told, "1 broker", "disks", "goal relieve", "goal leaders")
    with pytest.raises(GoalError, match=r"moves no data.* cannot decommission broker 2"):
        plan(racks, PlanRequest(goal=Goal.LEADERS, remove_brokers=(2,)))


def test_leaders_travel_along_chains() -> None:
    topology = cluster({1: None, 2: None, 3: None}, [(1, 2), (1, 2), (2, 3)])
    alternative = best(topology, goal=Goal.LEADERS)
    assert (alternative.balance.leaders.min, alternative.balance.leaders.max) == (1, 1)


def test_excluded_brokers_and_topics_stay_untouched() -> None:
    topology = cluster({1: None, 2: None, 3: None, 4: None}, [(1,)] * 9 + [(2,)])
    alternative = best(topology, exclude_brokers=(4,))
    touched = {b for c in alternative.proposal.changes for b in (*c.adding, *c.removing)}
    assert touched == {1, 2, 3}
    with pytest.raises(GoalError, match="no topic matches"):
        plan(topology, PlanRequest(topics=("other*",)))


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (PlanRequest(remove_brokers=(9,)), "broker 9 to remove"),
        (PlanRequest(remove_brokers=(1, 2)), "no broker is left"),
        (PlanRequest(remove_brokers=(1,), add_brokers=(1,)), "both stay and be decommissioned"),
    ],
)
def test_requests_without_sense_are_refused(request_: PlanRequest, words: str) -> None:
    with pytest.raises(GoalError, match=words):
        plan(cluster({1: None, 2: None}, [(1,)]), request_)


def test_the_document_has_the_keys_of_the_contract() -> None:
    topology = cluster({1: "a", 2: "b"}, [(1,), (1,), (1,), (1,)])
    document = json.loads(json.dumps(plan_document(plan(topology, PlanRequest()), seconds=0.5)))
    assert set(document) >= {"alternatives", "seconds", "before"}
    first = document["alternatives"][0]
    assert set(first) >= {
        *("name", "moved_replicas", "moved_bytes", "moved_leaders", "lower_bound_bytes"),
        *("violations", "balance", "assignment"),
    }
    assert first["balance"]["replicas"] == {"max": 2, "min": 2, "mean": 2.0}
    assert first["assignment"]["version"] == 1
    assert len(first["assignment"]["partitions"]) == 2


def test_waves_begin_with_what_moves_no_data_and_then_the_small() -> None:
    def change(partition: int, after: tuple[int, ...], size: int) -> PartitionChange:
        return PartitionChange(
            topic="t", partition=partition, before=(1, 2), after=after, size_bytes=size
        )

    changes = [change(0, (3, 2), 900), change(1, (2, 1), 5000), change(2, (3, 2), 10)]
    waves = plan_waves(changes, WaveRules(partitions=1))
    assert [[c.partition for c in wave] for wave in waves] == [[1], [2], [0]]
    with pytest.raises(ValueError, match="at least one"):
        plan_waves(changes, WaveRules(partitions=0))


def test_waves_heed_the_order_asked_for_and_what_a_broker_may_bear() -> None:
    def change(partition: int, before: tuple[int, ...], after: tuple[int, ...]) -> PartitionChange:
        return PartitionChange(
            topic="t", partition=partition, before=before, after=after, size_bytes=10 + partition
        )

    led_by_3, follows_4 = change(0, (1, 2), (3, 2)), change(1, (1, 2), (1, 4))
    from_2, order_only = change(2, (2, 5), (2, 6)), change(3, (1, 2), (2, 1))
    changes = [led_by_3, follows_4, from_2, order_only]

    def cut(**rules: Any) -> list[list[int]]:
        return [[c.partition for c in wave] for wave in plan_waves(changes, WaveRules(**rules))]

    assert cut(order=SizeOrder.LARGE, partitions=2) == [[3], [2, 1], [0]]
    assert cut(leaders=LeaderTurn.LAST, partitions=1) == [[1], [2], [0], [3]]
    assert cut(leaders=LeaderTurn.FIRST, order=SizeOrder.LARGE, partitions=1) == [
        *([3], [0], [2], [1])
    ]
    assert cut(per_broker=1) == [[3], [0, 2], [1]]  # broker 1 sends one at a time


def test_a_higher_replication_factor_adds_copies_on_other_racks_and_moves_nothing_else() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    topology = cluster(racks, [(1, 3), (2, 4), (3, 1), (4, 2)])
    alternative = best(topology, goal=Goal.REPLICATION, replication_factor=3)
    assert alternative.violations == ()
    assert all(c.after == (*c.before, 5) for c in alternative.proposal.changes)
    assert alternative.proposal.moved_bytes == alternative.lower_bound_bytes == 400


def test_a_lower_replication_factor_drops_from_crowded_racks_and_keeps_the_leader() -> None:
    topology = cluster({1: "a", 2: "a", 3: "b"}, [(1, 2, 3), (2, 1, 3), (3, 2, 1)])
    alternative = best(topology, goal=Goal.REPLICATION, replication_factor=2)
    assert alternative.violations == ()
    assert alternative.proposal.moved_bytes == 0
    assert [set(c.after) >= {3} and len(c.after) == 2 for c in alternative.proposal.changes]
    assert (alternative.balance.leaders.min, alternative.balance.leaders.max) == (1, 1)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (
            PlanRequest(goal=Goal.REPLICATION, replication_factor=4),
            "factor 4 is impossible: .* only 3 .*t-0.*At most 3",
        ),
        (
            PlanRequest(remove_brokers=(1,)),
            r"broker 1 cannot.*brokers 2, 3.* t-0.*lower",
        ),
        (PlanRequest(goal=Goal.RELIEVE), "name the brokers to relieve"),
        (PlanRequest(goal=Goal.REPLICATION), "replication factor goes with the goal"),
    ],
)
def test_impossible_wishes_are_answered_with_the_proof(request_: PlanRequest, words: str) -> None:
    with pytest.raises(GoalError, match=words):
        plan(cluster({1: None, 2: None, 3: None}, [(1, 2, 3)]), request_)


@pytest.mark.parametrize("factor", [4, 1 << 20, 1 << 70])
def test_a_factor_above_the_brokers_is_refused_where_nothing_is_there_to_move(factor: int) -> None:
    request = PlanRequest(goal=Goal.REPLICATION, replication_factor=factor)
    with pytest.raises(GoalError, match=f"{factor} is impossible"):
        plan(cluster({1: None, 2: None, 3: None}, []), request)


def test_a_relieved_broker_goes_down_to_the_mean_and_nobody_else_above_it() -> None:
    topology = cluster({1: None, 2: None, 3: None}, [(1,)] * 8 + [(2,)] * 3 + [(3,)])
    alternative = best(topology, goal=Goal.RELIEVE, relieve_brokers=(1,))
    assert alternative.proposal.moved_replicas == 4
    assert all(c.before == (1,) for c in alternative.proposal.changes)
    assert (alternative.balance.bytes.min, alternative.balance.bytes.max) == (400, 400)


def test_a_broker_is_relieved_of_no_more_than_it_must() -> None:
    """27 too many: 21 would not do, 37 does; 21 and 37 were one step after the other."""
    topology = single(3, [100, 37, 21, 200, 34], on=[1, 1, 1, 2, 3])
    alternative = best(topology, goal=Goal.RELIEVE, relieve_brokers=(1,))
    assert alternative.proposal.moved_bytes == 37
    assert alternative.lower_bound_bytes in (27, 28)


def test_kept_partitions_and_excluded_topics_stay() -> None:
    topology = cluster({1: None, 2: None}, [(1,)] * 6)
    request = PlanRequest(keep_partitions=("t-0", "t-1"))
    moved = {c.partition for c in plan(topology, request).alternatives[0].proposal.changes}
    assert len(moved) == 3
    assert moved <= {2, 3, 4, 5}
    request = PlanRequest(partitions=("t-3", "t-4", "t-5"), keep_partitions=("t-4",))
    moved = {c.partition for c in plan(topology, request).alternatives[0].proposal.changes}
    assert moved == {3, 5}
    nothing = plan(topology, PlanRequest(exclude_topics=("t*",)))
    assert nothing.alternatives[0].proposal.changes == ()


def test_what_no_plan_can_reach_is_said_with_its_reason() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b"}
    small_rack = plan(cluster(racks, [(1, 3), (2, 3), (1, 3), (2, 3)]), PlanRequest())
    assert small_rack.alternatives[0].proposal.moved_replicas == 0
    (limit,) = small_rack.limits
    assert "rack b has 1 of 3 brokers" in limit
    assert "fewer than 4 (mean 3)" in limit
    topology = cluster({1: None, 2: None}, [(1,), (2,)])
    big = Topology(
        brokers=topology.brokers,
        partitions=(
            topology.partitions[0],
            TopologyPartition(topic="t", partition=1, replicas=(2,), size_bytes=900),
        ),
    )
    (limit,) = plan(big, PlanRequest()).limits
    assert not lacking(limit, "t-1 has 900 B", "share of 500 B")
