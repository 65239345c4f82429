"""One timer for everything that waits with a deadline.

Entries fall into ticks of TICK_MS; those far away share coarser ones, so that there are a few
thousand ticks at most, whatever timeouts clients ask for. A single loop timer is armed for the
next tick that holds something, none when nothing waits. Adding and removing are O(1), so a
produce request that is answered in time costs two dictionary operations and no timer.
"""

import heapq
from typing import Final, Protocol

from broker.background import Timer, attempt
from broker.clock import Clock

TICK_MS: Final = 20
PRECISION_BITS: Final = 6
"""Of a wait in ticks so many bits count, the rest is rounded up."""
NOT_WAITING: Final = -1
OWNER: Final = "deadlines of requests"


class Waiter(Protocol):
    """Something with a deadline; `wheel_tick` belongs to the wheel."""

    wheel_tick: int

    def expire(self) -> None:
        """The deadline has passed; the waiter is no longer in the wheel."""


class TimerWheel:
    """Deadlines in monotonic ms; waiters expire a tick or 3 % of their wait late, never early."""

    __slots__ = ("_armed_tick", "_buckets", "_clock", "_ticks", "_timer")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[int, set[Waiter]] = {}
        self._ticks: list[int] = []
        self._armed_tick = -1
        self._timer = Timer(OWNER, self._fire)

    def __len__(self) -> int:
        return sum(len(bucket) for bucket in self._buckets.values())

    def add(self, waiter: Waiter, wait_ms: int) -> None:
        """Have `waiter.expire()` called after `wait_ms`, unless it is removed before."""
        tick = (self._clock.monotonic_ms() + max(wait_ms, 0)) // TICK_MS + 1
        coarse = 1 << max((max(wait_ms, 0) // TICK_MS).bit_length() - PRECISION_BITS, 0)
        tick = -(-tick // coarse) * coarse
        waiter.wheel_tick = tick
        bucket = self._buckets.get(tick)
        if bucket is not None:
            bucket.add(waiter)
            return
        self._buckets[tick] = {waiter}
        heapq.heappush(self._ticks, tick)
        if not self._timer.is_set or tick < self._armed_tick:
            self._arm()

    def remove(self, waiter: Waiter) -> None:
        """Forget a waiter; nothing happens when it is not waiting."""
        bucket = self._buckets.get(waiter.wheel_tick)
        waiter.wheel_tick = NOT_WAITING
        if bucket is not None:
            bucket.discard(waiter)

    def close(self) -> None:
        """Stop the timer and forget everyone."""
        self._timer.cancel()
        self._buckets.clear()
        self._ticks.clear()

    def _arm(self) -> None:
        self._armed_tick = self._ticks[0]
        self._timer.set(self._armed_tick * TICK_MS - self._clock.monotonic_ms())

    def _fire(self) -> None:
        now_tick = self._clock.monotonic_ms() // TICK_MS
        while self._ticks and self._ticks[0] <= now_tick:
            for waiter in self._buckets.pop(heapq.heappop(self._ticks)):
                # One that expires may have removed another of the same tick.
                if waiter.wheel_tick != NOT_WAITING:
                    waiter.wheel_tick = NOT_WAITING
                    attempt(OWNER, waiter.expire)
        self._drop_empty_ticks()
        if self._ticks and not self._timer.is_set:
            self._arm()

    def _drop_empty_ticks(self) -> None:
        while self._ticks and not self._buckets[self._ticks[0]]:
            del self._buckets[heapq.heappop(self._ticks)]
