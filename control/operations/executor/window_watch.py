"""Tells when a move waits for its window, and when it goes on."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from control.move.events import EventKind, MoveProgress
from control.move.window import MoveWindow
from control.operations.executor.run_context import RunContext

COPYING: Final = "partitions in flight arrive, no other begins"
LOCALTIME: Final = Path("/etc/localtime")
_ZONES: Final = "zoneinfo/"


class WindowWatch:
    """One move and its window. Each question looks at the clock anew, so a clock that is set, or a
    machine that slept, changes nothing but the answer."""

    def __init__(self, window: MoveWindow | None, context: RunContext) -> None:
        """``window`` None: it is always open."""
        self._window = window
        self._context = context

    @property
    def is_closed(self) -> bool:
        """Whether nothing may begin now."""
        return self._window is not None and not self._window.is_open(now_ms())

    @property
    def holds(self) -> bool:
        """Whether the move has to wait until it opens. To cancel or pause needs no window."""
        flags = self._context.flags()
        is_asked = flags.is_ending or (flags.is_paused and self._context.state().is_started)
        return self.is_closed and not is_asked

    async def tell(self, *, is_copying: bool = False) -> bool:
        """Says once that it waits, and once that it goes on; answers the latter. What slept through
        a window says for which it waits now."""
        opens_ms = self._context.state().opens_ms
        if self._window is None:
            return False
        if self.is_closed:
            if opens_ms is None or opens_ms <= now_ms():
                await self._emit(self._words(is_copying=is_copying), opens=True)
            return False
        if opens_ms is None:
            return False
        await self._emit(f"goes on: its window {self._window.words} is open", opens=False)
        return True

    async def tell_left(self, reached: MoveProgress | None) -> None:
        """Says that nothing of the move is under way until the window opens: no figure of the
        copies outlives them."""
        if reached is not None:
            still = replace(
                reached,
                rate_bytes_per_s=None,
                eta_s_low=None,
                eta_s_high=None,
                in_flight=(),
                in_flight_more=0,
                stalled=(),
                stalled_more=0,
                moving=(),
                spread_s=0.0,
            )
            await self._context.emit(EventKind.PROGRESS, **still.document())
        await self._emit(self._words(is_copying=False), opens=True)

    def lengthened(self, progress: MoveProgress) -> MoveProgress:
        """With the hours between windows in its ETA."""
        low, high = (self._until(eta_s) for eta_s in (progress.eta_s_low, progress.eta_s_high))
        return replace(progress, eta_s_low=low, eta_s_high=None if low is None else high)

    def _until(self, work_s: float | None) -> float | None:
        if self._window is None or work_s is None:
            return work_s
        at_ms = now_ms()
        done_ms = self._window.done_ms(at_ms, work_s)
        return None if done_ms is None else round((done_ms - at_ms) / 1000, 1)

    def _words(self, *, is_copying: bool) -> str:
        assert self._window is not None
        waits = f"waits for {self._window.opening_words(now_ms())}"
        if not is_copying:
            return waits
        return f"{self._window.until:%H:%M} is past: {COPYING}; then it {waits}"

    async def _emit(self, words: str, *, opens: bool) -> None:
        assert self._window is not None
        opens_ms = int(self._window.opens_ms(now_ms())) if opens else None
        await self._context.emit(EventKind.WINDOW, words, opens_ms=opens_ms)


def now_ms() -> int:
    """Wall-clock time."""
    return int(time.time() * 1000)


def local_zone(localtime: Path = LOCALTIME) -> str:
    """``Europe/Berlin``: TZ where it is set, else the zone that the system links to. Without
    either a clock shows UTC. Empty: the zone has no name."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if name:
        return name
    if not localtime.exists():
        return "UTC"
    _, found, linked = os.path.realpath(localtime).partition(_ZONES)
    return linked if found else ""
