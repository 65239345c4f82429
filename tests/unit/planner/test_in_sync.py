"""A plan never keeps the dead, nor what is out of sync in place of what is in sync."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from control.model.ids import TopicPartition
from planner.by_hand import NOTHING, HandError, LeaderOrder, edited, parse_edits
from planner.goals import Goal, GoalError, ImpossibleError, PlanRequest
from planner.in_sync import why_too_few, why_unsafe
from planner.optimizer import Plan, judged_plan, plan
from planner.search.placement import Placement, leave
from planner.topology import Topology, TopologyError, parse_topology, topology_document
from tests.support.phrases import lacking
from tests.unit.planner.clusters import cluster, judged_as


def told(
    placements: Mapping[Any, tuple[tuple[int, ...], int]],
    *,
    down: tuple[int, ...] = (),
    brokers: int = 4,
) -> Topology:
    """Replicas of each partition of ``t``, with who is in sync, and who leads."""
    before = cluster(dict.fromkeys(range(1, brokers + 1)), list(placements))
    facts = zip(before.partitions, placements.values(), strict=True)
    return replace(
        before,
        brokers=tuple(replace(b, is_running=b.id not in down) for b in before.brokers),
        partitions=tuple(replace(p, isr=isr, leader=leader) for p, (isr, leader) in facts),
    )


def replicated(topology: Topology, factor: int, **more: Any) -> Plan:
    return plan(topology, PlanRequest(goal=Goal.REPLICATION, replication_factor=factor, **more))


def targets(made: Plan) -> list[tuple[int, ...]]:
    found = made.alternatives[0].proposal.targets()
    return [found.get(p.key, p.replicas) for p in made.before.partitions]


def test_one_replica_is_left_on_a_broker_that_runs() -> None:
    """Broker 3 is dead."""
    before = told(
        {(3, 1): ((1,), 1), (1, 3): ((1,), 1), (2, 3): ((2,), 2), (3, 2): ((2,), 2)},
        down=(3,),
        brokers=3,
    )
    made = replicated(before, 1)
    assert targets(made) == [(1,), (1,), (2,), (2,)]
    for alternative in made.alternatives:
        assert alternative.violations == ()
        assert alternative.proposal.moved_bytes == 0
    assert not lacking(made.limits[0], "broker 3 does not run", "gets nothing; start it")


def test_the_dead_goes_also_where_nobody_tells_who_is_in_sync() -> None:
    before = told({(3, 1): ((1,), 1), (1, 2): ((1, 2), 1)}, down=(3,))
    untold = tuple(replace(p, isr=None, leader=None) for p in before.partitions)
    made = replicated(replace(before, partitions=untold), 1)
    assert targets(made)[0] == (1,)
    assert made.alternatives[0].proposal.moved_bytes == 0


def test_of_two_dead_none_is_kept_and_the_live_one_stays() -> None:
    before = told({(3, 4, 1): ((1,), 1), (1, 2, 3): ((1, 2), 2)}, down=(3, 4))
    assert targets(replicated(before, 2)) == [(1, 2), (1, 2)]
    assert targets(replicated(before, 1)) == [(1,), (2,)], "who leads now stays"


def test_what_cannot_do_without_the_dead_is_left_out_and_told() -> None:
    """[1, 2] are all that run, and three replicas are asked for."""
    before = told({(1, 3): ((1,), 1), (1, 2, 4): ((1, 2, 4), 1)}, down=(3,))
    made = replicated(before, 3, exclude_brokers=(4,))
    assert list(map(set, targets(made))) == [{1, 3}, {1, 2, 4}]
    assert not lacking(made.limits[0], "1 replica stays", "would wait")
    with pytest.raises(GoalError, match=r"t-0\b.* does not run and"):
        replicated(before, 3, exclude_brokers=(4,), partitions=("t-0",))


def test_out_of_sync_goes_before_in_sync_and_the_leader_stays() -> None:
    """All run; 101 lacks records."""
    before = told({(1, 2, 3): ((2, 3), 2)})
    assert targets(replicated(before, 2)) == [(2, 3)]
    assert targets(replicated(before, 1)) == [(2,)]
    whole = told({(1, 2, 3): ((1, 2, 3), 2)})
    assert targets(replicated(whole, 1)) == [(2,)], "not the preferred leader"


def test_excluded_brokers_do_not_make_the_slow_one_the_last() -> None:
    before = told({(1, 2): ((1,), 1), (1, 3): ((1, 3), 1)})
    with pytest.raises(ImpossibleError, match="t-0 on excluded brokers"):
        replicated(before, 1, exclude_brokers=(2,))


def test_of_a_partly_synced_partition_only_the_slow_replica_is_moved_for_balance() -> None:
    before = told({(1, 2): ((1,), 1), (1, 3): ((1,), 1), (1, 4): ((1,), 1)}, brokers=5)
    made = plan(before, PlanRequest())
    assert "3 partitions are only partly in sync: t-0, t-1, t-2" in " ".join(made.limits)
    for alternative in made.alternatives:
        for change in alternative.proposal.changes:
            assert change.after[0] == 1, change
    away = plan(before, PlanRequest(goal=Goal.RACKS, remove_brokers=(1,)))
    assert all(1 not in after for after in targets(away)), "a broker that goes is emptied"


@pytest.mark.parametrize("goal", [Goal.BALANCE, Goal.RACKS, Goal.LEADERS, Goal.MINIMAL])
def test_with_a_broker_down_its_partitions_stay_and_the_rest_is_planned(goal: Goal) -> None:
    placements = {(1, 2): ((1, 2), 1), (1, 4): ((1, 4), 1), (1, 3): ((1,), 1), (3, 1): ((1,), 1)}
    before = told(placements, down=(3,))
    made = plan(before, PlanRequest(goal=goal))
    for alternative in made.alternatives:
        assert {c.partition for c in alternative.proposal.changes} <= {0, 1}
        assert alternative.violations == ()
    assert any(
        not lacking(it, "broker 3 does not run", "gets nothing, and its 2") for it in made.limits
    )


def test_a_decommissioned_dead_broker_loses_its_replicas_and_nothing_else_moves() -> None:
    before = told({(1, 3): ((1,), 1), (3, 2): ((2,), 2), (1, 2): ((1, 2), 1)}, down=(3,))
    made = plan(before, PlanRequest(goal=Goal.RACKS, remove_brokers=(3,)))
    kept = ({1}, {2}, {1, 2})
    assert all(set(after) >= live for after, live in zip(targets(made), kept, strict=True))
    assert all(3 not in after for after in targets(made))
    assert made.alternatives[0].violations == ()


def test_one_that_is_being_reassigned_is_left_out_and_told() -> None:
    before = cluster(dict.fromkeys((1, 2)), [(1,)] * 4)
    first = replace(before.partitions[0], is_reassigning=True)
    made = plan(replace(before, partitions=(first, *before.partitions[1:])), PlanRequest())
    assert {c.partition for c in made.alternatives[0].proposal.changes} <= {1, 2, 3}
    (limit,) = made.limits
    assert not lacking(limit, "1 partition", "being reassigned", "leaves out t-0", "plan again")


def test_what_is_unknown_is_told() -> None:
    made = replicated(cluster(dict.fromkeys((1, 2)), [(1, 2)]), 1)
    (limit,) = made.limits
    assert not lacking(limit, "nobody tells", "t-0 are in sync", "brokers that run", "Look before")
    assert replicated(told({(1, 2): ((1, 2), 1)}, brokers=2), 1).limits == ()


def test_by_hand_the_last_in_sync_cannot_be_dropped() -> None:
    before = told({(1, 2, 3): ((2, 3), 2)})
    with pytest.raises(
        HandError,
        match=r"t-0: keeps 1\b.*not in sync\b.*drops 2, 3\b.*\[2\] would work",
    ):
        edited(before, NOTHING, parse_edits("t-0: 1"))
    assert edited(before, NOTHING, parse_edits("t-0: 2")).targets() == {
        TopicPartition("t", 0): (2,)
    }
    bad = edited(told({(1, 2, 3): ((1,), 1)}), NOTHING, parse_edits("t-0: 1"))
    (found,) = judged_as(before, PlanRequest(replication_factor=1), bad).violations
    assert found.rule == "in sync"


def test_leaders_keep_means_who_leads_now() -> None:
    before = told({(1, 2): ((1, 2), 2)})
    made = edited(before, NOTHING, parse_edits("t-0: 3,2"), leaders=LeaderOrder.KEEP)
    assert made.targets() == {TopicPartition("t", 0): (2, 3)}


@pytest.mark.parametrize(
    ("after", "in_sync", "is_safe"),
    [
        ((2,), (2, 3), True),
        ((4,), (2, 3), True),
        ((1, 4, 5), (2, 3), True),
        ((1,), (2, 3), False),
        ((1, 4), (2, 3), False),
        ((1,), (), True),
    ],
)
def test_the_worked_example(
    after: tuple[int, ...], in_sync: tuple[int, ...], is_safe: bool
) -> None:
    assert (why_unsafe((1, 2, 3), after, in_sync) == "") is is_safe


def test_fewer_than_min_isr_is_told_where_it_is_new() -> None:
    assert why_too_few((1, 2, 3), (1, 3), (1, 2), 2).startswith("would have 1 in sync, fewer than")
    assert why_too_few((1, 2, 3), (1, 4), (1, 2), 2) == "", "the copy counts"
    assert why_too_few((1, 2, 3), (1, 3), (1,), 2) == "", "no fewer than today"
    assert why_too_few((1, 2, 3), (1,), (1, 2), None) == ""


def test_a_topology_file_carries_it() -> None:
    before = told({(1, 2): ((2,), 2), (1, 3): ((1, 3), 1)}, down=(1,))
    first = replace(before.partitions[0], min_isr=2, is_reassigning=True)
    before = replace(before, partitions=(first, before.partitions[1]))
    assert parse_topology(topology_document(before)) == before
    document = topology_document(before)
    for wrong, words in (
        ({"leader": 9}, "leader 9 is not among its replicas"),
        ({"isr": [9]}, "isr [9] names others than its replicas"),
        ({"isr": "all"}, "isr must be a list"),
        ({"leaderless": True}, "leader 1 contradicts leaderless"),
        ({"min_isr": -1}, "min_isr must be a whole number"),
        ({"reassigning": 1}, "reassigning must be true or false"),
    ):
        bad = {**document, "partitions": [{**document["partitions"][1], **wrong}]}
        with pytest.raises(TopologyError) as error:
            parse_topology(bad)
        assert words in str(error.value)


def test_internal_topics_get_a_new_factor_only_where_they_are_named() -> None:
    before = cluster(dict.fromkeys((1, 2)), [(1,), (2,)])
    internal = replace(before.partitions[1], topic="__offsets")
    before = replace(before, partitions=(before.partitions[0], internal))
    assert {c.topic for c in replicated(before, 2).alternatives[0].proposal.changes} == {"t"}
    named = replicated(before, 2, topics=("__*",))
    assert {c.topic for c in named.alternatives[0].proposal.changes} == {"__offsets"}


def test_a_plan_by_hand_tells_what_nobody_knows() -> None:
    before = cluster(dict.fromkeys((1, 2)), [(1, 2)])
    proposal = edited(before, NOTHING, parse_edits("t-0: 1"))
    assert judged_plan(before, PlanRequest(), proposal).limits


def test_a_partition_that_is_left_is_where_it_was_and_figures_agree() -> None:
    before = told({(1, 2): ((1, 2), 1), (2, 3): ((2,), 2), (4,): ((4,), 4)})
    placement = Placement(before, PlanRequest())
    placement.add(0, 3)
    placement.drop(0, 0)
    placement.move(1, 2, 3)
    placement.move(2, 3, 0)
    for partition in range(3):
        leave(placement, partition)
    placement.check_invariants()
    assert placement.targets() == {}
    assert not placement.is_movable.any()
