"""What the plan of a finding costs, asked of a real cluster as the plan view asks it."""

from dataclasses import replace
from typing import Final

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from control.model.finding import Finding, Operation
from control.model.status import Severity
from control.model.units import bytes_text
from control.model.watched_cluster import WatchedCluster
from control.operations.catalogue.moves.reassign import Reassign
from control.operations.operation_session import OperationSession
from control.views.next_steps import plan_values
from control.views.plan_costs import PARTITIONS_MAX, PlacementKey, PlanCosts
from control.views.tables.findings import FindingRow, finding_row
from tests.contract.operations_rig import topic_with_data, unique
from tests.support.cluster import LocalCluster
from tests.support.patience import WAIT_S
from tests.support.silent import hung_listener

PLACEMENT: Final = PlacementKey(
    partitions=4, replicas=1, brokers=(1, 2, 3), down=(), size_bytes=1000.0
)


class Asked(PlanCosts):
    """Counts how often it asks the planner."""

    times = 0

    async def _answer_all(self) -> None:
        self.times += 1
        await super()._answer_all()


def uneven(topic: str, **given: str) -> FindingRow:
    """A finding that a plan for this topic mends, with these fields beside."""
    finding = Finding(
        kind="uneven",
        severity=Severity.WARNING,
        subject=f"topics/{topic}",
        label=topic,
        title="uneven",
        reason="",
        next_step="Plan moves",
        operation=Operation.REASSIGN,
        given=tuple(given.items()),
    )
    return finding_row(finding, now_ms=0)


def told(costs: PlanCosts, row: FindingRow, placement: PlacementKey | None = PLACEMENT) -> str:
    """The row's next step once the planner has answered what was asked."""
    costs.on(row, lambda: placement)
    costs.wait(WAIT_S)
    return costs.on(row, lambda: placement).next_step.text


async def test_a_finding_tells_what_the_plan_view_would(our_cluster: LocalCluster) -> None:
    first, *_ = our_cluster.ids
    async with KafkaAdmin.to(our_cluster.bootstrap) as admin:
        topic = await topic_with_data(admin, dict.fromkeys(range(4), (first,)), records=200)
    watched = WatchedCluster(bootstrap=our_cluster.bootstrap)
    # Other topics of the cluster decide how even it is; from a broker that goes, all moves.
    row = uneven(topic, remove_brokers=str(first))
    async with OperationSession(watched, bus=None) as session:
        plan = await session.plan(plan_values(row))
        proposal = plan.alternatives[0].proposal
        run = Reassign.of_plan(proposal, plan_values(row))
        review = await session.planning.preview(proposal, throttle=run.throttle, rules=run.waves)
    assert proposal.moved_bytes > 200_000
    assert review.seconds_max

    step = told(PlanCosts(watched), row)

    assert step.startswith(f"Plan moves (plan: {bytes_text(proposal.moved_bytes)}, ≈ ")
    assert plan_values(row) == {
        "goal": "balance", "topics": topic, "remove_brokers": str(first)
    }  # fmt: skip


async def test_the_planner_is_asked_once_until_the_placement_changes(
    our_cluster: LocalCluster,
) -> None:
    first, second, *_ = our_cluster.ids
    rows = []
    async with KafkaAdmin.to(our_cluster.bootstrap) as admin:
        for _ in range(2):
            name = unique("plan-cost")
            placement = {0: (first, second), 1: (second, first)}
            await admin.create_topic(NewTopic(name=name, assignment=placement))
            rows.append(uneven(name))
    costs = Asked(WatchedCluster(bootstrap=our_cluster.bootstrap), pause_s=0.0)
    for row in rows:
        costs.on(row, lambda: PLACEMENT)
    costs.wait(WAIT_S)
    grown = PLACEMENT._replace(size_bytes=1050.0)

    assert [told(costs, row) for row in rows] == [told(costs, row, grown) for row in rows]
    assert costs.times == 1, "both findings are answered together, and kept"
    moved = PLACEMENT._replace(replicas=2)
    row = rows[0]
    assert costs.on(row, lambda: moved).next_step.text == "Plan moves", "another placement's cost"
    assert costs.on(row, lambda: None).next_step.text == "Plan moves"


@pytest.mark.thorough  # it takes a request's time-out
def test_who_does_not_answer_leaves_the_finding_as_it_was() -> None:
    with hung_listener() as address:
        costs = Asked(WatchedCluster(bootstrap=address), pause_s=0.0)
        assert told(costs, uneven("orders")) == "Plan moves"
        assert told(costs, uneven("orders")) == "Plan moves"
    assert costs.times == 1, "an error is not asked for again at once"


def test_nothing_is_asked_without_a_plan_or_of_a_large_cluster() -> None:
    costs = Asked(WatchedCluster(bootstrap="127.0.0.1:1"), pause_s=0.0)
    row = uneven("orders")
    opens = row.with_cells(operation=replace(row.operation, text="open"))
    assert told(costs, opens) == "Plan moves"
    assert told(PlanCosts(None), row) == "Plan moves"
    large = PLACEMENT._replace(partitions=PARTITIONS_MAX + 1)
    assert told(costs, row, large) == "Plan moves"
    assert costs.times == 0
