"""An event loop whose time is counted: a seed decides the order, however slow the machine is."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

TURN_S: Final = 0.000_1
"""What a turn of the loop takes."""

_T = TypeVar("_T")


class _CountedSelector(selectors.DefaultSelector):
    """Waits for nothing: time is put forward to the next timer."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """A wait without a timer is for a thread, and is a true one."""
        if timeout is None:
            return super().select()
        self.now_s += max(timeout, TURN_S)
        return super().select(0)


class _VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._counted = _CountedSelector()
        super().__init__(self._counted)

    def time(self) -> float:
        return self._counted.now_s


class LoopClock:
    """The loop's time for those who ask a clock."""

    def monotonic_ms(self) -> int:
        """Milliseconds since the loop began."""
        return int(asyncio.get_running_loop().time() * 1_000)

    def wall_ms(self) -> int:
        """The same since a moment in 2025."""
        return 1_750_000_000_000 + self.monotonic_ms()


def run_in_virtual_time(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to its end; sleeps and time-outs cost nothing, and are due in the same order each time.

    ``work`` reads no other clock and waits for no thread.
    """
    with asyncio.Runner(loop_factory=_VirtualTimeLoop) as runner:
        return runner.run(work)
