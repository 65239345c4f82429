"""What one move tells of its time, calibrated, and where the truth lay in it once it has ended."""

from dataclasses import dataclass, field
from typing import Final

from control.operations.calibration import Calibration, Interval, Misses, miss_of, stretched
from control.operations.eta import RateWindow

LEFT_KEPT: Final = 8
"""Of the intervals of time left that were told, spread over the move: moves count alike."""
_TOLD_MAX: Final = 64


@dataclass(slots=True, kw_only=True)
class Forecast:
    """Of one run of a move; `at_s` is everywhere the same monotonic clock in seconds."""

    calibration: Calibration = field(default_factory=Calibration)
    is_adaptive: bool = False
    rate: RateWindow = field(default_factory=RateWindow)
    _began: tuple[float, Interval] | None = None
    _told: list[tuple[float, Interval]] = field(default_factory=list)

    def foresee(self, interval: Interval, *, at_s: float) -> Interval:
        """How long it will take, as it begins."""
        self._began = (at_s, interval)
        return stretched(interval, self.calibration.foreseen)

    def tell_left(self, bytes_done: int, bytes_total: int, *, at_s: float) -> Interval | None:
        """How long it still takes; null while nothing can be said. Of many such intervals every
        other one is forgotten, and none is learned from once all is copied."""
        self.rate.add(at_s, bytes_done)
        interval = self.rate.eta_s(bytes_total - bytes_done)
        if interval is None or bytes_done >= bytes_total:
            return interval
        self._told.append((at_s, interval))
        if len(self._told) > _TOLD_MAX:
            del self._told[1::2]
        return stretched(interval, self.calibration.left)

    def begin_anew(self) -> None:
        """An operator has changed the course: what was measured and told counts no more."""
        self.rate = RateWindow()
        self._began = None
        self._told.clear()

    def misses(self, ended_s: float) -> Misses:
        """Now that it is done; of the intervals before they were calibrated."""
        last, chosen = len(self._told) - 1, min(LEFT_KEPT, len(self._told))
        numbers = [round(n * last / max(chosen - 1, 1)) for n in range(chosen)]
        return Misses(
            foreseen=None if self._began is None else _miss(self._began, ended_s),
            left=tuple(_miss(self._told[number], ended_s) for number in numbers),
            is_adaptive=self.is_adaptive,
        )


def _miss(told: tuple[float, Interval], ended_s: float) -> float:
    at_s, interval = told
    return round(miss_of(interval, ended_s - at_s), 3)
