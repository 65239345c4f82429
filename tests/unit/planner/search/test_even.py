"""Evening: who gives what."""

import numpy as np
import pytest

from planner.goals import PlanRequest
from planner.search.bounds import Bounds
from planner.search.even import even_out
from planner.search.placement import Placement
from tests.unit.planner.clusters import single


@pytest.mark.parametrize(("gives_small", "moved"), [(False, [30, 5, 5, 5]), (True, [8, 8, 8, 8])])
def test_what_is_too_much_goes_in_many_small_replicas_to_who_lacks_replicas(
    gives_small: bool, moved: list[int]
) -> None:
    sizes, on = [30, 8, 8, 8, 8, 5, 5, 5, 5], [1] * 5 + [2] * 4
    placement = Placement(single(3, sizes, on), PlanRequest())
    bounds = Bounds(
        count_min=np.array([0.0, 0.0, 4.0]),
        count_max=np.full(3, np.inf),
        bytes_max=np.array([32.0, 20.0, 45.0]),
        bytes_loosest=np.full(3, np.inf),
        alike=np.arange(3),
        unit=10.0,
    )
    even_out(placement, bounds, gives_small=gives_small)
    assert bounds.is_settled(placement)
    came = [placement.size[p] for p, replicas in enumerate(placement.replicas) if replicas == (2,)]
    assert sorted(came, reverse=True) == moved
