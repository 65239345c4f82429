"""The measures of Kafka's quotas: a rate over windows, and a bucket of tokens.

A rate covers whole windows, also those in which nothing was recorded yet, so that a first burst is
measured over all of them. A bucket holds what a quota gives in all its windows, and fills up again
all the time: a burst costs its own wait, and no more (KIP-599).
"""

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Final

THROTTLE_MS_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """``quota.window.num`` windows of ``quota.window.size.seconds``; the newest one is filling."""

    count: int = 11
    size_ms: int = 1_000

    @property
    def span_ms(self) -> int:
        """All of them together."""
        return self.count * self.size_ms


def _whole_ms(time_ms: float) -> int:
    return int(min(max(0.0, time_ms), THROTTLE_MS_MAX) + 0.5)


@dataclass(slots=True)
class _Window:
    start_ms: int
    last_ms: int
    total: float


class WindowedRate:
    """Kafka's Rate of a WindowedSum."""

    __slots__ = ("_kept", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._kept: deque[_Window] = deque(maxlen=windows.count + 1)

    def record(self, amount: float, now_ms: int) -> None:
        """Count an amount; a negative one takes an earlier one back."""
        kept = self._kept
        if not kept or now_ms - kept[-1].start_ms >= self._windows.size_ms:
            kept.append(_Window(now_ms, now_ms, 0.0))
        kept[-1].total += amount
        kept[-1].last_ms = now_ms

    def is_forgotten(self, now_ms: int) -> bool:
        """Whether nothing counts any more."""
        span_ms = self._windows.span_ms
        self._kept = deque(
            (it for it in self._kept if now_ms - it.last_ms < span_ms), self._kept.maxlen
        )
        return not self._kept

    def span_ms(self, now_ms: int) -> int:
        """The time that the rate is measured over."""
        elapsed_ms = 0 if self.is_forgotten(now_ms) else now_ms - self._kept[0].start_ms
        missing = self._windows.count - 1 - elapsed_ms // self._windows.size_ms
        return max(1, elapsed_ms + max(0, missing) * self._windows.size_ms)

    def per_second(self, now_ms: int) -> float:
        """The rate over that time."""
        span_ms = self.span_ms(now_ms)
        return sum(it.total for it in self._kept) * 1_000 / span_ms

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long nothing more may come, so that the rate falls to its limit."""
        rate = self.per_second(now_ms)
        if rate <= limit:
            return 0
        return _whole_ms((rate - limit) / limit * self.span_ms(now_ms))


class TokenBucket:
    """Kafka's TokenBucket."""

    __slots__ = ("_filled_at_ms", "_tokens", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens = inf
        self._filled_at_ms = 0

    def _fill(self, limit: float, now_ms: int) -> None:
        most = limit * self._windows.span_ms / 1_000
        gained = limit * (now_ms - self._filled_at_ms) / 1_000
        self._tokens = min(most, self._tokens + gained)
        self._filled_at_ms = now_ms

    def take(self, count: float, limit: float, now_ms: int) -> None:
        """Take tokens, also more than there are."""
        self._fill(limit, now_ms)
        self._tokens -= count

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long nothing may be taken: until none is owed any more."""
        self._fill(limit, now_ms)
        return _whole_ms(-self._tokens / limit * 1_000)

    def is_forgotten(self, now_ms: int) -> bool:
        """Whether it is full at any limit."""
        return now_ms - self._filled_at_ms >= self._windows.span_ms and self._tokens >= 0
