"""What racks leave to each broker, and the balance among those of the same share."""

import numpy as np
import pytest

from planner.figures import balance_of
from planner.goals import PlanRequest
from planner.optimizer import plan
from planner.search.shares import Reached, rack_shares
from tests.unit.planner.clusters import seeded


@pytest.mark.parametrize(
    ("brokers", "factor", "shares"),
    [
        ((2, 2, 1), 3, (50, 50, 100)),  # one replica of each partition on every rack
        ((4, 2), 3, (50, 50)),  # two on either rack or one: as the brokers are worth
        ((6, 3, 3, 2), 5, (100 / 3, 100 / 3, 100 / 3, 50)),  # the smallest holds one of each
        ((10, 1, 1), 5, (30, 100, 100)),  # a rack of one broker holds no more than one
        ((3, 3), 1, (100 / 6, 100 / 6)),
    ],
)
def test_shares_are_what_racks_leave(
    brokers: tuple[int, ...], factor: int, shares: tuple[float, ...]
) -> None:
    width, kept = np.full(100, factor), np.array(brokers)
    found = rack_shares(100.0 * factor, width, np.ones(100), kept, kept)
    assert found == pytest.approx(shares)
    assert found @ kept == pytest.approx(100 * factor)


def test_a_balance_is_among_brokers_of_the_same_share() -> None:
    count, held = np.array([4, 6, 9, 7, 1]), np.array([40, 60, 90, 70, 10])
    kept, share = np.arange(5) < 4, np.array([5.0, 5.0 + 1e-9, 8.0, 8.0, 0.0])
    reached = Reached.by_share(count, held, kept, share)
    assert reached.count_min.tolist() == [4, 4, 7, 7, 0]
    assert reached.count_max.tolist() == [6, 6, 9, 9, 0]
    assert reached.bytes_max.tolist() == [60, 60, 90, 90, 0]


@pytest.mark.parametrize("seed", [2, 3])
def test_a_tolerance_allows_nobody_more_than_somebody_had_before(seed: int) -> None:
    before = seeded(seed, brokers=6, racks=6, factor=3, partitions=250)
    had = balance_of(before).replicas
    for alternative in plan(before, PlanRequest()).alternatives:
        has = alternative.balance.replicas
        assert had.min <= has.min <= has.max <= had.max
