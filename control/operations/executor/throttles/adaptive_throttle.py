"""An automatic throttle that looks for the headroom while a move runs. Pure.

There is no figure in Kafka for how much a broker has to spare, so it is tried: as long as copies
use up what they may and the cluster answers as it did before, the rate goes up by a quarter; when
it answers late, or replicas that do not move fall out of sync, the rate is halved. The usual rule
of congestion control, with a floor: below what producers write to moving partitions the move would
never end. How many replicas are out of sync after a halving is the new calm: what does not mend
then has another cause, and would halve it again and again.

reading                                                     rate
=========================================================== ==========
fewer than SETTLE_S since the last change                   stays
the move yields to consumers that fall behind               halved, not below the floor
other replicas fell out of sync, or answers LATE_TIMES late halved, not below the floor
the busiest broker receives over USED_SHARE of the rate     up by a quarter, at most the ceiling
otherwise                                                   stays
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from control.operations.reassignment.producer_traffic import SETTLE_S, UP

LATE_TIMES: Final = 3.0
LATE_MIN_S: Final = 0.25
"""Answers faster than this are never late: a busy machine jitters."""
USED_SHARE: Final = 0.7
DOWN: Final = 0.5
CEILING_BYTES_PER_S: Final = 2 << 30
ANSWERS_KEPT: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One reading of the cluster. `out_of_sync` counts partitions that do not move and lack
    replicas in sync on brokers that are up; `is_yielding`: consumer groups fall behind."""

    at_s: float
    answered_in_s: float
    busiest_bytes_per_s: float | None
    out_of_sync: int
    is_yielding: bool = False


@dataclass(slots=True, kw_only=True)
class AdaptiveThrottle:
    """Holds the rate of one move; `observe` answers a new one, or None to leave it."""

    rate: int
    floor: int
    _changed_s: float | None = None
    _calm_answer_s: float | None = None
    _calm_out_of_sync: int | None = None
    _answers: deque[float] = field(default_factory=lambda: deque(maxlen=ANSWERS_KEPT))

    def observe(self, reading: Reading) -> int | None:
        """Times must increase."""
        self._answers.append(reading.answered_in_s)
        if self._changed_s is None:
            self._changed_s = reading.at_s
            self._calm_out_of_sync = reading.out_of_sync
        if reading.at_s - self._changed_s < SETTLE_S:
            return None
        usual = self._usual_answer_s()
        if self._is_troubled(reading, usual):
            self._calm_out_of_sync = reading.out_of_sync
            lower = max(self.floor, int(self.rate * DOWN))
            return self._change(reading.at_s, min(self.rate, lower))
        self._calm_out_of_sync = min(self._calm_out_of_sync or 0, reading.out_of_sync)
        calm = self._calm_answer_s
        self._calm_answer_s = usual if calm is None else min(calm, usual)
        used = reading.busiest_bytes_per_s
        if used is not None and used >= USED_SHARE * self.rate:
            return self._change(reading.at_s, min(CEILING_BYTES_PER_S, int(self.rate * UP)))
        return None

    def _usual_answer_s(self) -> float:
        ordered = sorted(self._answers)
        return ordered[len(ordered) // 2]

    def _is_troubled(self, reading: Reading, usual_s: float) -> bool:
        if reading.is_yielding or reading.out_of_sync > (self._calm_out_of_sync or 0):
            return True
        calm = self._calm_answer_s
        return calm is not None and usual_s > max(LATE_MIN_S, LATE_TIMES * calm)

    def _change(self, at_s: float, rate: int) -> int | None:
        if rate == self.rate:
            return None
        self.rate, self._changed_s = rate, at_s
        return rate


@dataclass(slots=True, kw_only=True)
class FixedThrottle:
    """An operator's rate: halved every SETTLE_S while the move yields to consumers, not below the
    floor, and back at once afterwards. `observe` answers a new rate, or None to leave it."""

    rate: int
    floor: int
    _asked: int = field(init=False)
    _changed_s: float = -math.inf

    def __post_init__(self) -> None:
        self._asked = self.rate

    def observe(self, reading: Reading) -> int | None:
        """Times must increase."""
        wanted = self._asked
        if reading.is_yielding:
            if reading.at_s - self._changed_s < SETTLE_S:
                return None
            wanted = min(self.rate, max(self.floor, int(self.rate * DOWN)))
        if wanted == self.rate:
            return None
        self.rate, self._changed_s = wanted, reading.at_s
        return wanted
