"""Calibrated times of one move, and how far they were from the truth once it has ended.

Every figure of time left, of the whole move and of its partitions, comes from here: the whole is
never told to end before one of its partitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from control.move.events import MovingPartition
from control.move.results import Misses
from control.operations.executor.timing.copy_progress import Copy, CopyWatch
from control.operations.executor.timing.eta import ENDING_S, RateWindow
from control.operations.reassignment.calibration import Calibration, Interval, miss_of, stretched
from control.operations.reassignment.producer_traffic import EARNED

MANY: Final = 20
"""So many partitions may take longer for themselves than for their bytes."""
IDLE_SHARE: Final = 0.1
"""Copies that use less of the throttle wait for something else: for partitions to come and go."""
SOONER_S: Final = 2.0
"""What arrives last may pass the throttle by (control.operations.executor.catching_up)."""
ASKED_S: Final = 2.5
"""At most, until a copy that is asked for is under way."""
ALONE: Final = 1.5
"""A copy alone may take so many times what its bytes take at the throttle: producers write to it,
and Kafka's average lets much through at first and then nothing."""
LEFT_KEPT: Final = 8
"""Of the intervals of time left that were told, spread over the move: moves count alike."""
_TOLD_MAX: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Finishing:
    """Partitions of a move, and what their bytes take at least."""

    done: int
    total: int
    copying_s: float | None
    """All that is left to copy, at the throttle; null without one."""
    spread_s: float = 0.0
    """Until the last is asked for (control.operations.reassignment.spreading)."""

    @property
    def left(self) -> int:
        """Partitions that are not there."""
        return self.total - self.done


@dataclass(slots=True, kw_only=True)
class Forecast:
    """Estimated times of one run of a move; `at_s` is everywhere the same monotonic clock in
    seconds."""

    calibration: Calibration = field(default_factory=Calibration)
    is_adaptive: bool = False
    rate: RateWindow = field(default_factory=RateWindow)
    finished: RateWindow = field(default_factory=RateWindow)
    """Partitions instead of bytes."""
    copies: CopyWatch = field(default_factory=CopyWatch)
    _is_spread: bool = False
    _began: tuple[float, Interval] | None = None
    _told: list[tuple[float, Interval]] = field(default_factory=list)

    def expect(self, interval: Interval, *, at_s: float) -> Interval:
        """How long it will take, as it begins."""
        self._began = (at_s, interval)
        return stretched(interval, self.calibration.foreseen)

    def tell_copies(
        self, copies: Sequence[Copy], *, at_s: float, shown_max: int
    ) -> tuple[MovingPartition, ...]:
        """The first of the partitions that move, with how long each still takes."""
        looked = self.copies.look(copies, at_s, shown_max=shown_max)
        return tuple(_calibrated(part, self.calibration.left) for part in looked)

    def tell_left(
        self,
        bytes_done: int,
        bytes_total: int,
        *,
        at_s: float,
        finishing: Finishing | None = None,
        moving: Sequence[MovingPartition] = (),
    ) -> Interval | None:
        """How long it still takes, never less than one of the partitions that move; null while
        nothing can be said. Of many such intervals every other one is forgotten, and none is
        learned from once all is copied."""
        interval = self._left(bytes_done, bytes_total, at_s=at_s, finishing=finishing)
        return None if interval is None else _at_least(interval, moving)

    def _left(
        self, bytes_done: int, bytes_total: int, *, at_s: float, finishing: Finishing | None
    ) -> Interval | None:
        spread_s = 0.0 if finishing is None else finishing.spread_s
        if self._is_spread and not spread_s:
            self.rate = RateWindow()
        self._is_spread = spread_s > 0
        self.rate.add(at_s, bytes_done)
        is_throttled = finishing is not None and finishing.copying_s is not None
        sooner_s = SOONER_S if is_throttled else 0.0
        interval = self.rate.eta_s(bytes_total - bytes_done, sooner_s=sooner_s)
        if finishing is not None:
            self.finished.add(at_s, finishing.done)
            interval = self._by_partitions(finishing, interval) or interval
        if finishing is not None and self._is_spread:
            interval = _spread(finishing)
        if interval is None or bytes_done >= bytes_total:
            return interval
        self._told.append((at_s, interval))
        if len(self._told) > _TOLD_MAX:
            del self._told[1::2]
        return stretched(interval, self.calibration.left)

    def _by_partitions(self, finishing: Finishing, by_bytes: Interval | None) -> Interval | None:
        """Null where bytes take the time. Example: of 10,000 partitions with little in them 3,000
        are done after 25 s, and 400 KB of 200 MB. By bytes it takes hours; 7,000 partitions take
        58 s more and their bytes 10 s."""
        told = self.finished.eta_s(finishing.left)
        if told is None or finishing.left <= MANY or finishing.copying_s is None:
            return None
        soonest, latest = (seconds + finishing.copying_s for seconds in told)
        if by_bytes is None or by_bytes == ENDING_S:
            return soonest, latest
        is_idle = finishing.copying_s < by_bytes[0] * IDLE_SHARE
        return (soonest, latest) if is_idle and latest < by_bytes[0] else None

    def begin_anew(self) -> None:
        """Forgets what was measured and estimated, since an operator has changed the course."""
        self.rate, self.finished = RateWindow(), RateWindow()
        self.copies.begin_anew()
        self._began = None
        self._told.clear()

    def misses(self, ended_s: float, *, arrived_s: float | None = None) -> Misses:
        """Misses of the intervals before calibration, once the move is done. `arrived_s`: when the
        last partition arrived, if elections followed; no interval of time left covers those."""
        until_s = ended_s if arrived_s is None else arrived_s
        last, chosen = len(self._told) - 1, min(LEFT_KEPT, len(self._told))
        numbers = [round(n * last / max(chosen - 1, 1)) for n in range(chosen)]
        return Misses(
            foreseen=None if self._began is None else _miss(self._began, ended_s),
            left=tuple(_miss(self._told[number], until_s) for number in numbers),
            is_adaptive=self.is_adaptive,
        )


def _spread(finishing: Finishing) -> Interval | None:
    """While more is to be asked for, copies come at the pace that this sets: their rate says
    nothing then. Null without a throttle, unless all is there and only leaders are elected."""
    copying_s = finishing.copying_s if finishing.left else 0.0
    if copying_s is None:
        return None
    soonest, latest = ENDING_S
    low = max(copying_s / (1 + EARNED), finishing.spread_s)
    return low + soonest, finishing.spread_s + copying_s * ALONE + ASKED_S + latest


def _calibrated(part: MovingPartition, to: Interval) -> MovingPartition:
    if part.eta_s_low is None or part.eta_s_high is None:
        return part
    low, high = stretched((part.eta_s_low, part.eta_s_high), to)
    return replace(part, eta_s_low=round(low, 1), eta_s_high=round(high, 1))


def _at_least(interval: Interval, moving: Sequence[MovingPartition]) -> Interval:
    """Not sooner than the last of these."""
    low, high = interval
    return (
        max([low, *(it.eta_s_low for it in moving if it.eta_s_low is not None)]),
        max([high, *(it.eta_s_high for it in moving if it.eta_s_high is not None)]),
    )


def _miss(told: tuple[float, Interval], ended_s: float) -> float:
    at_s, interval = told
    return round(miss_of(interval, ended_s - at_s), 3)
