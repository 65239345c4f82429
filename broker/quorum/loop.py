"""The event loop, for rooms that must not know it: waiting, and one timer."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from broker.clock import Clock


async def sleep_ms(duration_ms: int) -> None:
    """Let others run for a while."""
    await asyncio.sleep(duration_ms / 1000)


class LoopTimer:
    """One timer; setting it again replaces it."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None

    def set(self, delay_ms: int) -> None:
        """Call back in `delay_ms`."""
        self.cancel()
        loop = asyncio.get_running_loop()
        self._handle = loop.call_later(max(0, delay_ms) / 1000, self._callback)

    def cancel(self) -> None:
        """Do not call back."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class DeadlineTimer:
    """One timer that follows a deadline of the monotonic clock; None stops it."""

    def __init__(self, clock: Clock, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._callback = callback
        self._timer = LoopTimer(self._fire)
        self._deadline_ms: int | None = None

    def set(self, deadline_ms: int | None) -> None:
        """Call back at the deadline, instead of at the one before."""
        if deadline_ms == self._deadline_ms:
            return
        self._deadline_ms = deadline_ms
        if deadline_ms is None:
            self._timer.cancel()
        else:
            self._timer.set(deadline_ms - self._clock.monotonic_ms())

    def _fire(self) -> None:
        self._deadline_ms = None
        self._callback()


class LoopTasks:
    """Background work that ends with its owner."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run in the background."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel what still runs, and wait for its end."""
        for task in set(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
