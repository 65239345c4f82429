"""A plan on the map: sums stay, cells change by what moves, kept plans are found again."""

from control.model.ids import TopicPartition
from control.views.plan_map import GROWS, SHRINKS, form_path, map_path, plan_map, plan_path
from planner.goals import PlanRequest
from planner.optimizer import Plan, judged_plan, plan
from planner.planned_map import MEASURES, PLANS_MAX, KeptPlans, plan_name, planned_map_of
from planner.proposal import Proposal, proposal_of
from tests.unit.planner.clusters import cluster, seeded

BEFORE = cluster({1: None, 2: None, 3: None}, [(1, 2), (1, 2), (2, 1)], size=100)


def moved(*replicas: int) -> Proposal:
    """Partition 0 goes there."""
    return proposal_of("hand", BEFORE, {TopicPartition("t", 0): replicas})


def judged(proposal: Proposal) -> Plan:
    return judged_plan(BEFORE, PlanRequest(), proposal)


def test_cells_change_by_what_moves() -> None:
    kept = KeptPlans()
    proposal = moved(3, 1)
    kept.keep(judged(proposal), {"goal": "balance", "by_hand": "t-0: 3,1\n" * 900})
    found = kept.find(plan_name(proposal))
    assert found is not None
    shown = plan_map(found, "size_bytes")
    assert [row[0].sign for row in shown.cells] == ["", SHRINKS, GROWS]
    assert [(row[0].before, row[0].after) for row in shown.cells] == [
        (300, 300), (300, 200), (0, 100)
    ]  # fmt: skip
    assert shown.cells[2][0].difference == "+100 B"
    leaders = plan_map(found, "leaders")
    assert [(row[0].before, row[0].after) for row in leaders.cells] == [(2, 1), (1, 1), (0, 1)]
    assert str(plan_path(found)) == f"plan?goal=balance&made={plan_name(proposal)}"
    on_map = map_path(plan_name(proposal), "leaders", found.values)
    assert str(on_map) == f"map?plan={plan_name(proposal)}&measure=leaders&goal=balance"
    assert str(form_path(on_map)) == "plan?goal=balance"


def test_the_map_of_a_real_plan_says_what_brokers_hold_afterwards() -> None:
    before = seeded(5, joined=3)
    (first,) = plan(before, PlanRequest(alternatives=1)).alternatives
    after = before.with_replicas(first.proposal.targets())
    for measure in MEASURES:
        planned = planned_map_of(before, first.proposal, measure)
        assert planned.topics_left_out == 0
        again = planned_map_of(after, first.proposal.inverse(), measure)
        held = dict(zip(planned.topics, zip(*planned.after, strict=True), strict=True))
        assert held == dict(zip(again.topics, zip(*again.before, strict=True), strict=True))


def test_only_the_newest_plans_are_kept() -> None:
    kept = KeptPlans()
    proposals = [
        proposal_of("hand", BEFORE, {TopicPartition("t", p): r})
        for p in range(3)
        for r in [(1, 3), (3, 1), (2, 3), (3, 2), (3,), (1,)]
    ]
    names = [plan_name(proposal) for proposal in proposals]
    assert len(set(names)) == len(names) > PLANS_MAX
    for proposal in proposals:
        kept.keep(judged(proposal), {})
    assert kept.find(names[0]) is None
    assert all(kept.find(name) is not None for name in names[-PLANS_MAX:])
