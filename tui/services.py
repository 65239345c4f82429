"""What the screens are given: everything that they know comes through here."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from control.views.feed import SnapshotFeed
from control.views.series import HistoryReader


def wall_clock_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The feed of snapshots, the history behind it, and the cluster to act on."""

    feed: SnapshotFeed
    history: HistoryReader
    bootstrap: str
    bus: str
    is_read_only: bool = False
    now_ms: Callable[[], int] = field(default=wall_clock_ms)
