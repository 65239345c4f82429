"""Rate and time left of a move: a window of samples, an interval rather than a number."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

WINDOW_SAMPLES_MAX: Final = 30
SAMPLES_MIN: Final = 3
ARRIVALS_MAX: Final = 8
ENDING_S: Final = (0.2, 1.5)
"""From the last byte to the end, as benchmarks/moves.py has it."""
DEVIATIONS: Final = 1.3
"""Standard errors that hold eight times in ten."""
DOUBT_MIN: Final = 0.015
DOUBT_MAX: Final = 0.5


@dataclass(slots=True, kw_only=True)
class ArrivalWindow:
    """The newest (time, bytes received so far by broker) samples."""

    samples: deque[tuple[float, Mapping[int, int]]] = field(
        default_factory=lambda: deque(maxlen=ARRIVALS_MAX)
    )

    def add(self, at_s: float, received: Mapping[int, int]) -> None:
        """One more sample, times increasing."""
        self.samples.append((at_s, received))

    def busiest_bytes_per_s(self) -> float | None:
        """Rate of the broker that receives most; null with fewer than SAMPLES_MIN samples."""
        if len(self.samples) < SAMPLES_MIN:
            return None
        (first_s, first), (last_s, last) = self.samples[0], self.samples[-1]
        gained = max((last[b] - first.get(b, 0) for b in last), default=0)
        return max(0, gained) / (last_s - first_s) if last_s > first_s else None


@dataclass(slots=True, kw_only=True)
class RateWindow:
    """The newest (time, bytes done) samples since bytes arrive; bytes never fall, so a rate is
    never negative.

    The step in which the first bytes came is no part of it: it began before they did, which made
    rates too low by a tenth after two seconds (or, where a throttle lets the first ones through at
    once, far too high).
    """

    samples: deque[tuple[float, int]] = field(
        default_factory=lambda: deque(maxlen=WINDOW_SAMPLES_MAX)
    )
    _has_begun: bool = False

    def add(self, at_s: float, bytes_done: int) -> None:
        """One more sample, times increasing."""
        newest = self.samples[-1][1] if self.samples else bytes_done
        if not self._has_begun:
            self._has_begun = bytes_done > newest
            self.samples.clear()
        self.samples.append((at_s, max(bytes_done, newest)))

    def rate_bytes_per_s(self) -> float | None:
        """Mean over the window; null with fewer than two samples."""
        if len(self.samples) < 2:
            return None
        (first_s, first), (last_s, last) = self.samples[0], self.samples[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else None

    def eta_s(self, bytes_left: int, *, sooner_s: float = 0.0) -> tuple[float, float] | None:
        """(soonest, latest) seconds left, meant to hold eight times in ten; ``calibration`` learns
        how often it does.

        Copying takes the bytes left at the mean rate, 1.3 standard errors up and down, but at least
        1.5 % and at most half of the mean, as copies arrive in lumps. ``sooner_s`` comes off where
        the last of it is faster. The time until copies are in sync and all is cleaned up is added.

        Null with fewer than SAMPLES_MIN samples or while nothing arrives.
        """
        if bytes_left <= 0:
            return ENDING_S
        mean = self.rate_bytes_per_s()
        if len(self.samples) < SAMPLES_MIN or not mean:
            return None
        steps = np.diff(np.array(self.samples, dtype=np.float64), axis=0)
        rates = steps[:, 1] / np.maximum(steps[:, 0], 1e-6)
        doubt = DEVIATIONS * float(rates.std()) / len(rates) ** 0.5
        doubt = min(max(doubt, mean * DOUBT_MIN), mean * DOUBT_MAX)
        soonest, latest = ENDING_S
        copying = max(bytes_left / (mean + doubt) - sooner_s, 0.0)
        return copying + soonest, bytes_left / (mean - doubt) + latest
