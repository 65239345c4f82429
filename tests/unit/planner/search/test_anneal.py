"""Chance: only ever fewer bytes, within the same bounds, and the same each time."""

import numpy as np
import pytest

from planner.goals import PlanRequest
from planner.optimizer import plan
from planner.proposal import proposal_of
from planner.search.anneal import anneal
from planner.search.bounds import Bounds, bounds_of
from planner.search.even import even_out
from planner.search.placement import Placement
from tests.unit.planner.clusters import seeded, single


def test_the_worked_example() -> None:
    """1 must lose 6 bytes, 2 has room for 7 and no replica fits: 10 went to 3, which gave 4 to 2.
    Nine to 2 and its three to 1 are fewer."""
    before = single(3, sizes=(10, 9, 3, 4, 9), on=(1, 1, 2, 3, 3))
    bounds = Bounds(
        count_min=np.zeros(3),
        count_max=np.full(3, np.inf),
        bytes_max=np.array([13.0, 10.0, 19.0]),
        bytes_loosest=np.full(3, np.inf),
        alike=np.zeros(3, dtype=np.int64),
        unit=7.0,
    )
    placement = Placement(before, PlanRequest())
    placement.move(0, 0, 2)
    placement.move(3, 2, 1)
    assert (placement.bytes <= bounds.bytes_max).all()
    anneal(placement, bounds, enough=0)
    placement.check_invariants()
    assert proposal_of("by chance", before, placement.targets()).moved_bytes == 12
    assert (placement.bytes <= bounds.bytes_max).all()


@pytest.mark.parametrize(
    ("brokers", "racks", "factor"), [(20, 0, 1), (0, (7, 3, 2, 1), 2), (0, (16, 6), 5)]
)
def test_few_replicas_a_broker_are_evened_near_the_proven_minimum(
    brokers: int, racks: int | tuple[int, ...], factor: int
) -> None:
    before = seeded(1, brokers=brokers, racks=racks, partitions=600 // factor, factor=factor)
    (found,) = plan(before, PlanRequest(alternatives=1)).alternatives
    assert found.violations == ()
    assert found.lower_bound_bytes is not None
    assert found.lower_bound_bytes <= found.proposal.moved_bytes <= 1.05 * found.lower_bound_bytes


def test_the_dice_always_fall_alike() -> None:
    """And what they find moves less than what is found without."""
    before = seeded(1, racks=(5, 3, 2), partitions=100, factor=2)
    bounds = bounds_of(Placement(before, PlanRequest()), PlanRequest().tolerances()[0])
    found = []
    for enough in (10**18, 0, 0):
        placement = Placement(before, PlanRequest())
        even_out(placement, bounds)
        assert bounds.is_settled(placement)
        anneal(placement, bounds, enough)
        placement.check_invariants()
        assert bounds.is_settled(placement)
        found.append(proposal_of("by chance", before, placement.targets()))
    assert found[1] == found[2]
    assert found[1].moved_bytes < 0.95 * found[0].moved_bytes
