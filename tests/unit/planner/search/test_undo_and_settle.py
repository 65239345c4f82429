"""Looking again at what was moved: only ever fewer bytes, within the same bounds."""

import numpy as np
import pytest

from planner.goals import PlanRequest
from planner.optimizer import plan
from planner.proposal import proposal_of
from planner.search.bounds import Bounds
from planner.search.placement import Placement
from planner.search.undo_and_settle import rethink
from tests.unit.planner.clusters import seeded, single


def test_the_worked_example() -> None:
    """1 and 2 must lose 6 and 9 bytes; 1 gave its 6 to 2, which so had to give 15."""
    before = single(3, sizes=(10, 6, 10, 9, 6), on=(1, 1, 2, 2, 2))
    placement = Placement(before, PlanRequest())
    for partition, source, target in ((1, 0, 1), (3, 1, 2), (4, 1, 2)):
        placement.move(partition, source, target)
    bounds = Bounds(
        count_min=np.zeros(3),
        count_max=np.full(3, np.inf),
        bytes_max=np.array([10.0, 16.0, 15.0]),
        bytes_loosest=np.full(3, np.inf),
        alike=np.zeros(3, dtype=np.int64),
        unit=8.2,
    )
    rethink(placement, bounds)
    placement.check_invariants()
    assert proposal_of("settled", before, placement.targets()).moved_bytes == 15
    assert (placement.bytes <= bounds.bytes_max).all()


@pytest.mark.parametrize(
    ("racks", "factor", "brokers"),
    [(6, 2, 18), (6, 3, 18), ((3,) * 6, 4, None)],
)
def test_many_racks_are_evened_near_the_proven_minimum(
    racks: int | tuple[int, ...], factor: int, brokers: int | None
) -> None:
    before = seeded(1, partitions=1500, racks=racks, factor=factor, brokers=brokers or 0)
    first, *others = plan(before, PlanRequest()).alternatives
    assert first.proposal.moved_bytes <= 1.05 * (first.lower_bound_bytes or 0)
    for alternative in (first, *others):
        bound = alternative.lower_bound_bytes
        assert alternative.violations == ()
        assert bound is not None
        assert bound <= alternative.proposal.moved_bytes <= 1.06 * bound
