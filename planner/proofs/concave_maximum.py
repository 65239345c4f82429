"""The top of a concave function that has kinks: Shor's r-algorithm.

Near its top such a function is a ridge, and slopes point across it, to and fro, hardly along. So
after each step space is stretched: what the slope changed by from here to there is the direction
across, and it counts a quarter from now on (`stretch` maps stretched space to that of the
function). Steps go on as long as they lead upwards, and become longer or shorter by how many did.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.columns import Floats

_ACROSS: Final = 0.25
_SHORTER: Final = 0.95
_LONGER: Final = 1.1
_LONGER_EVERY: Final = 3
_STEPS_MAX: Final = 50
"""In one direction."""
_STANDS: Final = 1e-5
"""A step that changes nothing by more is the last."""
_PATIENCE: Final = 2.5
"""So many rounds for each number of the point that bring less than `_PROGRESS` are the last: ridges
may begin level."""
_PROGRESS: Final = 3e-4
"""Of what is enough."""

Slope = Callable[[Floats], tuple[float, Floats]]
"""Of a point: the function's value there, and a slope (any that it has)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footing:
    """Where a climb stands, and how it goes on from there: `stretch` has a row for each number of
    the point; the next `step` is so long in stretched space."""

    point: Floats
    stretch: Floats
    step: float


def climbed(
    function: Slope, start: Footing, *, rounds: int, enough: float
) -> tuple[float, Footing]:
    """(the most that was found within so many rounds, where). `enough`: it ends there."""
    point, stretch, step = start.point, start.stretch, start.step
    value, slope = function(point)
    best, top, used = value, point, 1
    patience = int(_PATIENCE * len(point))
    seen, tired = value, patience
    while used < min(rounds, tired) and best < enough:
        ahead = np.einsum("ij,i", stretch, slope)
        if not (steepness := float(np.linalg.norm(ahead))):
            break
        way = np.einsum("ij,j", stretch, ahead / steepness)
        steps, known, is_up = 0, slope, True
        while is_up and steps < _STEPS_MAX and used < rounds and best < enough:
            point = point + step * way
            value, slope = function(point)
            used, steps = used + 1, steps + 1
            best, top = (value, point) if value > best else (best, top)
            if best > seen + _PROGRESS * enough:
                seen, tired = best, used + patience
            step = step * _LONGER if steps % _LONGER_EVERY == 0 else step
            is_up = float(way @ slope) > 0
        step = step * _SHORTER if steps == 1 else step
        across = np.einsum("ij,i", stretch, slope - known)
        if turned := float(np.linalg.norm(across)):
            across = across / turned
            far = np.einsum("ij,j", stretch, (1 - _ACROSS) * across)
            stretch = stretch - far[:, None] * across
        if step * float(np.abs(way).max()) < _STANDS:
            break
    return best, Footing(point=top, stretch=stretch, step=step)
