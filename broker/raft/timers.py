"""The event loop, for rooms that must not know it: waiting, and a timer that follows a deadline."""

import asyncio
from collections.abc import Callable

from broker.background import Timer, end_process
from broker.clock import Clock


async def sleep_ms(duration_ms: int) -> None:
    """Let others run for a while."""
    await asyncio.sleep(duration_ms / 1000)


class DeadlineTimer:
    """One timer that follows a deadline of the monotonic clock; None stops it."""

    def __init__(self, owner: str, clock: Clock, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._callback = callback
        self._timer = Timer(owner, self._fire, end_process)
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
