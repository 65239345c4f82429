"""Counts what the collector asks of each broker, and spaces its turns to bound that."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

WINDOW_S: Final = 30.0
SAMPLES_MAX: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Means over the last half minute, per second."""

    requests_per_s: float
    rows_per_s: float
    """Partitions, offsets and groups asked about."""
    sent_bytes_per_s: float
    received_bytes_per_s: float


class LoadMeter:
    """Counts one broker's requests."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._started_s = now_s()
        self._samples: deque[tuple[float, int, int, int]] = deque(maxlen=SAMPLES_MAX)

    def count(self, *, rows: int, sent_bytes: int, received_bytes: int) -> None:
        """One request and its answer."""
        self._samples.append((self._now_s(), rows, sent_bytes, received_bytes))

    def load(self) -> Load:
        """Means over the window, or since the start where that is shorter."""
        now_s = self._now_s()
        while self._samples and self._samples[0][0] < now_s - WINDOW_S:
            self._samples.popleft()
        span_s = max(min(WINDOW_S, now_s - self._started_s), 1.0)
        rows, sent, received = (
            sum(sample[place] for sample in self._samples) / span_s for place in (1, 2, 3)
        )
        return Load(
            requests_per_s=len(self._samples) / span_s,
            rows_per_s=rows,
            sent_bytes_per_s=sent,
            received_bytes_per_s=received,
        )


def interval_ms_for(base_ms: int, *, rows: int, rows_per_s_max: int) -> int:
    """Distance of turns so that a broker asked for ``rows`` in each stays within the bound."""
    return max(base_ms, -(-rows * 1000 // rows_per_s_max))
