"""Every move says why."""

import pytest

from planner.explain import Reasons
from planner.goals import PlanRequest
from planner.proposal import PartitionChange
from planner.topology import Topology, TopologyBroker, TopologyPartition

BEFORE = Topology(
    brokers=tuple(TopologyBroker(id=b, rack=rack) for b, rack in ((1, "a"), (2, "a"), (3, "b"))),
    partitions=tuple(
        TopologyPartition(topic="t", partition=p, replicas=(1, 2), size_bytes=100) for p in range(3)
    ),
)


def change(*after: int) -> PartitionChange:
    return PartitionChange(topic="t", partition=0, before=(1, 2), after=after, size_bytes=100)


@pytest.mark.parametrize(
    ("after", "request_", "why"),
    [
        ((1, 2, 3), PlanRequest(), "2 replicas become 3"),
        ((3, 2), PlanRequest(remove_brokers=(1,)), "leaves 1, which is removed"),
        ((3, 4), PlanRequest(remove_brokers=(1, 2)), "leaves 1, 2, which are removed"),
        ((3, 2), PlanRequest(), "on 2 racks instead of 1"),
        ((2, 1), PlanRequest(), "1 leads 3, 2 leads 0"),
    ],
)
def test_the_first_reason_counts(after: tuple[int, ...], request_: PlanRequest, why: str) -> None:
    assert Reasons(BEFORE, request_).why(change(*after)) == why


def test_balance_is_told_in_percent_of_the_mean() -> None:
    without_racks = Topology(
        brokers=tuple(TopologyBroker(id=id_) for id_ in (1, 2, 3)), partitions=BEFORE.partitions
    )
    words = Reasons(without_racks, PlanRequest()).why(change(3, 2))
    assert words == "1 holds +50 % → 3 holds −100 %"


def test_one_replica_is_told_in_the_singular() -> None:
    assert change(2).factor_words == "2 replicas become 1"
    assert change(2).inverse().factor_words == "1 replica becomes 2"
    assert change(2, 3).factor_words == ""
