"""Intervals of time that hold eight times in ten, learned from the moves that have ended. Pure.

`eta` and `traffic.seconds_of` make an interval of what they know about Kafka. How often it holds is
up to the cluster: an idle one ends moves sooner than a busy one, Kafka sends copies in lumps. So
each move that has ended leaves behind where the truth lay in the intervals that it told, its
misses: -1 at the soonest, 0 in the middle, +1 at the latest. The next one stretches its intervals
to where eight in ten of the newest misses on that cluster lay. That is conformal prediction with
normalized scores (Lei et al. 2018, "Distribution-Free Predictive Inference For Regression"); until
enough have ended, intervals are taken to hold as they are, which counts as PRIOR_MOVES moves.

Worked example: 10 to 14 s were foreseen and 11 s it took: a miss of -0.5. If eight in ten lay
between -0.75 and 0, the next that would be foreseen as 20 to 28 s is told as 21 to 24 s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from control.move.results import Misses

HELD_SHARE: Final = 0.8
MOVES_MAX: Final = 30
"""The newest moves that are learned from; a cluster that has become busier is soon known."""
PRIOR_MOVES: Final = 1
_PRIOR_POINTS: Final = 9

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Where truths lie in intervals as they are made: (-1, 1) leaves them as they are."""

    foreseen: Interval = (-1.0, 1.0)
    left: Interval = (-1.0, 1.0)


def miss_of(interval: Interval, truth: float) -> float:
    """-1 at its low end, 0 in the middle, +1 at its high end; it must have some width."""
    low, high = interval
    return (2 * truth - low - high) / (high - low)


def stretched(interval: Interval, to: Interval) -> Interval:
    """The interval between two misses of it, never below zero."""
    middle, half = sum(interval) / 2, (interval[1] - interval[0]) / 2
    return max(0.0, middle + half * to[0]), max(0.0, middle + half * to[1])


def calibration_of(
    ended: Sequence[Misses], *, is_adaptive: bool, share: float = HELD_SHARE
) -> Calibration:
    """Learned from moves on one cluster, the oldest first, of the same kind of throttle."""
    newest = [misses for misses in ended if misses.is_adaptive is is_adaptive][-MOVES_MAX:]
    foreseen = [(misses.foreseen,) for misses in newest if misses.foreseen is not None]
    left = [misses.left for misses in newest if misses.left]
    return Calibration(foreseen=_middle(foreseen, share), left=_middle(left, share))


def _middle(by_move: Sequence[Sequence[float]], share: float) -> Interval:
    """Where this share of the misses to come will lie, as much of it below as above; moves count
    alike. Of n misses the k-th stands at k / (n + 1): the next may lie beyond all of them."""
    prior = NormalDist(sigma=1 / NormalDist().inv_cdf((1 + HELD_SHARE) / 2))
    if not by_move:
        return prior.inv_cdf((1 - share) / 2), prior.inv_cdf((1 + share) / 2)
    usual = [prior.inv_cdf((n + 0.5) / _PRIOR_POINTS) for n in range(_PRIOR_POINTS)]
    counted = [(PRIOR_MOVES, usual), *((1, misses) for misses in by_move)]
    misses = np.array([miss for _, of_one in counted for miss in of_one])
    weights = np.array([moves / len(of_one) for moves, of_one in counted for _ in of_one])
    order = np.argsort(misses)
    one = len(by_move) / sum(map(len, by_move))
    below = (np.cumsum(weights[order]) - weights[order] / 2 + one / 2) / (weights.sum() + one)
    low, high = np.interp([(1 - share) / 2, (1 + share) / 2], below, misses[order])
    return float(low), float(high)
