"""One coarse timer for the deadlines of a coordinator; nothing is armed while there are none."""

import heapq
import itertools
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from broker.background import Timer, attempt
from broker.clock import Clock

TICK_MS: Final = 100
"""Deadlines are served in steps of this, so that many of them share one wake-up."""


class Timed(Protocol):
    """Something with a deadline, like a group."""

    deadline_ms: int | None
    """When it is armed for; the timer's own."""


T = TypeVar("T", bound=Timed)


class CoordinatorTimer(Generic[T]):
    """Calls back when an armed deadline has come.

    A deadline that moves later (each heartbeat of a group does that) costs nothing: the group is
    woken at the old one, finds nothing due and is armed again.
    """

    def __init__(self, owner: str, clock: Clock, on_due: Callable[[T], None]) -> None:
        self._owner = owner
        self._clock = clock
        self._on_due = on_due
        self._heap: list[tuple[int, int, T]] = []
        self._order = itertools.count()
        self._timer = Timer(owner, self._fire)
        self._wake_ms = 0

    def arm(self, entry: T, deadline_ms: int | None) -> None:
        """Wake it at its deadline, or earlier if it is armed for that already."""
        if deadline_ms is None:
            return
        if entry.deadline_ms is not None and entry.deadline_ms <= deadline_ms:
            return
        entry.deadline_ms = deadline_ms
        heapq.heappush(self._heap, (deadline_ms, next(self._order), entry))
        self._schedule()

    def stop(self) -> None:
        """Forget everything."""
        self._heap.clear()
        self._timer.cancel()

    def _schedule(self) -> None:
        if not self._heap:
            return
        wake_ms = -(-self._heap[0][0] // TICK_MS) * TICK_MS
        if self._timer.is_set and self._wake_ms <= wake_ms:
            return
        self._wake_ms = wake_ms
        self._timer.set(wake_ms - self._clock.monotonic_ms())

    def _fire(self) -> None:
        now_ms = self._clock.monotonic_ms()
        while self._heap and self._heap[0][0] <= now_ms:
            deadline_ms, _, entry = heapq.heappop(self._heap)
            if entry.deadline_ms == deadline_ms:
                entry.deadline_ms = None
                attempt(self._owner, self._on_due, entry)
        self._schedule()
