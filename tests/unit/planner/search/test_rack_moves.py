"""What racks let go, kept up to date, is what looking at all of it anew finds."""

import numpy as np
import pytest

from planner.goals import PlanRequest
from planner.search.placement import Placement, hold, release
from planner.search.rack_moves import Ways
from tests.unit.planner.clusters import seeded


@pytest.mark.parametrize(
    ("racks", "factor"), [((4, 3, 2, 1), 3), ((4, 3), 4), ((3, 3, 1), 1), (0, 2)]
)
def test_replicas_that_move_are_followed(racks: int | tuple[int, ...], factor: int) -> None:
    before = seeded(5, racks=racks, brokers=8, factor=factor, partitions=60)
    placement = Placement(before, PlanRequest())
    ways, dice = Ways(placement), np.random.default_rng(7)
    held: list[tuple[int, int]] = []
    for _ in range(400):
        source, target = dice.choice(placement.brokers, 2, replace=False).tolist()
        free = ways.let_go(source, target)
        assert free.tolist() == Ways(placement).let_go(source, target).tolist()
        partitions = [placement.partition_at[rank] for rank in free.tolist()]
        movable = [p for p in partitions if placement.may_move(p, source, target)]
        if movable and dice.random() < 0.8:
            placement.move(int(dice.choice(movable)), source, target)
        elif partitions and len(held) < 3:
            held.append((partitions[0], source))
            hold(placement, *held[-1])
        elif held:
            release(placement, *held.pop())
        everything = np.arange(len(placement.size))
        assert np.flatnonzero(ways.lets_go(source, target, everything)).tolist() == (
            ways.let_go(source, target).tolist()
        )
