"""A recorded cluster of 8 brokers and 1,200 partitions: how good the plans are, kept from sliding.

What peers make of the same input: kafka-reassign-partitions moves 2,301 replicas (2,620 GB) to
reach 443 to 455 replicas a broker; topicmappr moves nothing.
"""

import json
from pathlib import Path

import pytest

from control.planner.goals import PlanRequest
from control.planner.optimizer import plan
from control.planner.topology import parse_topology
from tests.unit.control.planner.clusters import seeded

CASE = Path(__file__).parents[3] / "golden" / "norack_skew.json"


def test_the_recorded_case_is_balanced_with_few_moves() -> None:
    planned = plan(parse_topology(json.loads(CASE.read_text())), PlanRequest())
    by_name = {alternative.name: alternative for alternative in planned.alternatives}
    even = by_name["even"]
    assert (even.balance.replicas.min, even.balance.replicas.max) == (450, 450)
    assert (even.balance.leaders.min, even.balance.leaders.max) == (150, 150)
    assert even.proposal.moved_replicas <= 70
    balanced = by_name["balanced"]
    assert planned.alternatives[0] is balanced
    assert balanced.balance.bytes.max <= 1.0351 * balanced.balance.bytes.mean
    assert (balanced.balance.replicas.min, balanced.balance.replicas.max) == (437, 462)
    for alternative in planned.alternatives:
        bound = alternative.lower_bound_bytes
        assert bound is not None
        assert alternative.violations == ()
        assert bound <= alternative.proposal.moved_bytes <= 1.01 * bound + 10**6
    assert even.balance.bytes.max <= 1.0101 * even.balance.bytes.mean


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("racks", "factor", "brokers", "joined", "removed"),
    [
        (3, 3, 15, 0, ()),
        (3, 3, 15, 3, ()),
        (0, 3, 13, 4, (101,)),
        (0, 3, 13, 0, (101,)),
        (4, 3, 16, 4, (101,)),
        (4, 3, 16, 0, ()),
        (2, 2, 16, 4, ()),
    ],
)
def test_clusters_of_other_shapes_are_balanced_near_the_proven_minimum(
    seed: int, racks: int, factor: int, brokers: int, joined: int, removed: tuple[int, ...]
) -> None:
    before = seeded(
        seed, partitions=1500, racks=racks, factor=factor, brokers=brokers, joined=joined
    )
    made = plan(before, PlanRequest(remove_brokers=removed, alternatives=1))
    (first,) = made.alternatives
    assert first.violations == ()
    assert first.balance.bytes.max <= 1.0351 * first.balance.bytes.mean
    for spread in (first.balance.replicas, first.balance.leaders):
        assert spread.max <= 1.04 * spread.mean + 1
        assert spread.min >= 0.96 * spread.mean - 1
    assert first.lower_bound_bytes is not None
    moved = first.proposal.moved_bytes
    assert first.lower_bound_bytes <= moved <= 1.05 * first.lower_bound_bytes
