"""The top of functions with kinks, however long and narrow their ridges are."""

import numpy as np
import pytest

from planner.columns import Floats
from planner.proofs.concave_maximum import Footing, climbed


@pytest.mark.parametrize("numbers", [2, 20, 60])
def test_it_comes_to_the_top_of_a_narrow_ridge(numbers: int) -> None:
    dice = np.random.default_rng(numbers)
    turned = np.linalg.qr(dice.normal(size=(numbers, numbers)))[0]
    steep = np.logspace(0, 3, numbers)[:, None] * turned
    top = dice.normal(size=numbers)

    def roof(point: Floats) -> tuple[float, Floats]:
        far = steep @ (point - top)
        return -float(np.abs(far).sum()), -np.sign(far) @ steep

    start = Footing(point=np.zeros(numbers), stretch=np.eye(numbers), step=0.2)
    begun, _ = roof(start.point)
    best, found = climbed(roof, start, rounds=900, enough=0.0)
    assert best == roof(found.point)[0]
    assert best > 1e-3 * begun
    soon, _ = climbed(roof, start, rounds=900, enough=begun / 2)
    assert begun / 2 <= soon < best


def test_it_goes_on_from_where_it_stood() -> None:
    def roof(point: Floats) -> tuple[float, Floats]:
        return -float(abs(point[0]) + 50 * abs(point[1])), -np.sign(point) * np.array([1.0, 50.0])

    start = Footing(point=np.array([9.0, 7.0]), stretch=np.eye(2), step=0.2)
    first, footing = climbed(roof, start, rounds=40, enough=0.0)
    assert first < climbed(roof, footing, rounds=40, enough=0.0)[0] <= 0.0


def test_flat_ground_has_no_way_up() -> None:
    start = Footing(point=np.ones(3), stretch=np.eye(3), step=0.2)
    best, footing = climbed(lambda point: (7.0, 0 * point), start, rounds=99, enough=np.inf)
    assert (best, footing.point.tolist()) == (7.0, [1.0, 1.0, 1.0])
