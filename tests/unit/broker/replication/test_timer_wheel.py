"""Deadlines without a timer per waiter."""

import asyncio
import time
from typing import Final

from broker.clock import SystemClock
from broker.replication.timer_wheel import NOT_WAITING, TICK_MS, TimerWheel
from tests.support.settle import until


class Waiter:
    """Notes when it expired."""

    def __init__(self, wheel: TimerWheel, name: int, expired: list[int]) -> None:
        self.wheel_tick = NOT_WAITING
        self.started = time.monotonic()
        self.waited_ms = -1.0
        self.name = name
        self.partner: Waiter | None = None
        self._wheel = wheel
        self._expired = expired

    def expire(self) -> None:
        self.waited_ms = (time.monotonic() - self.started) * 1000
        self._expired.append(self.name)
        if self.partner is not None:
            self._wheel.remove(self.partner)


LATER: Final = 9


async def expire_later(wheel: TimerWheel, expired: list[int]) -> None:
    """Until one that waits some ticks longer than all others has expired."""
    wheel.add(Waiter(wheel, LATER, expired), 5 * TICK_MS)
    await until(lambda: LATER in expired)


async def test_waiters_expire_in_order_and_never_early() -> None:
    wheel, expired = TimerWheel(SystemClock()), list[int]()
    waiters = [Waiter(wheel, n, expired) for n in range(5)]
    for waiter in reversed(waiters):
        wheel.add(waiter, waiter.name * 3 * TICK_MS)
    await until(lambda: len(expired) == len(waiters))
    assert expired == [0, 1, 2, 3, 4]
    assert all(w.waited_ms >= w.name * 3 * TICK_MS for w in waiters)
    assert len(wheel) == 0


async def test_removed_waiters_never_expire() -> None:
    wheel, expired = TimerWheel(SystemClock()), list[int]()
    first, second, third = (Waiter(wheel, n, expired) for n in range(3))
    for waiter in (first, second, third):
        wheel.add(waiter, TICK_MS)
    wheel.remove(second)
    wheel.remove(second)
    assert len(wheel) == 2
    await expire_later(wheel, expired)
    assert sorted(expired) == [0, 2, LATER]


async def test_a_waiter_may_remove_another_of_the_same_tick() -> None:
    wheel, expired = TimerWheel(SystemClock()), list[int]()
    first, second = (Waiter(wheel, n, expired) for n in range(2))
    first.partner, second.partner = second, first
    wheel.add(first, 0)
    wheel.add(second, 0)
    await expire_later(wheel, expired)
    assert expired in ([0, LATER], [1, LATER])


async def test_nothing_runs_when_nothing_waits() -> None:
    wheel = TimerWheel(SystemClock())
    waiter = Waiter(wheel, 0, [])
    wheel.add(waiter, 10_000)
    wheel.close()
    loop = asyncio.get_running_loop()
    scheduled = [h for h in loop._scheduled if not h.cancelled()]  # type: ignore[attr-defined]
    assert not any("TimerWheel" in repr(handle) for handle in scheduled)
