"""Time as a port: cores are told the time, tests own it."""

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one that never jumps (for waits) and one of the wall (for timestamps)."""

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start; never goes back."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, UTC; may jump when the host's clock is set."""


class SystemClock:
    """The clock of the machine."""

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start; never goes back."""
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000
