"""How often a broker samples itself: as asked, while that stays within its share of a core.

Two things bound it. What a round costs this broker is measured, not guessed: CPU time of the
loop's thread while it reads and encodes, as a mean of the last rounds. And the job that reads all
brokers' samples is given so many rows a second at most (``partiscope.metrics.rows.per.second``).
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

ROUNDS: Final = 8
"""The mean is taken over so many rounds: one in full costs more than those that repeat it."""


def interval_for(
    base_ms: int, *, round_cpu_s: float, cpu_percent: int, rows: int, rows_per_s: int
) -> int:
    """Milliseconds from round to round: the base, or so many halves more as the bounds need.

    ``rows``: of a round of all brokers together.
    """
    needed_ms = max(round_cpu_s * 100_000 / cpu_percent, rows * 1_000 / rows_per_s)
    step_ms = max(1, base_ms // 2)
    return max(base_ms, -int(-needed_ms // step_ms) * step_ms)


class Pace:
    """Counts what rounds cost and tells how far apart they must be."""

    def __init__(
        self,
        base_ms: int,
        *,
        cpu_percent: int,
        rows_per_s: int,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self.interval_ms = base_ms
        self._base_ms = base_ms
        self._cpu_percent = cpu_percent
        self._rows_per_s = rows_per_s
        self._cpu_s = cpu_s
        self._rounds: deque[float] = deque(maxlen=ROUNDS)
        self._spent_s = 0.0

    @contextmanager
    def work(self) -> Iterator[None]:
        """Count the CPU time of what is done within, which must not wait for anything."""
        began_s = self._cpu_s()
        try:
            yield
        finally:
            self._spent_s += self._cpu_s() - began_s

    def end_round(self, *, rows: int, brokers: int) -> None:
        """A round of so many rows is over; the other brokers are taken to have as many."""
        self._rounds.append(self._spent_s)
        self._spent_s = 0.0
        self.interval_ms = interval_for(
            self._base_ms,
            round_cpu_s=sum(self._rounds) / len(self._rounds),
            cpu_percent=self._cpu_percent,
            rows=rows * max(1, brokers),
            rows_per_s=self._rows_per_s,
        )
