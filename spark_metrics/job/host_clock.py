"""The clocks of the host that the job runs on."""

import time
import uuid
from functools import lru_cache
from pathlib import Path
from typing import Final

from spark_metrics.state.job_clock import Tick

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_STEADY: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the host sleeps, where the system has such a clock."""


def host_tick() -> Tick:
    """Read the wall clock and the steady clock of this host."""
    return Tick(
        wall_ms=time.time_ns() // 1_000_000,
        boot=_boot(),
        steady_ms=time.clock_gettime_ns(_STEADY) // 1_000_000,
    )


@lru_cache(1)
def _boot() -> str:
    """Name the boot that the steady clock counts from; this process where nobody tells."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return uuid.uuid4().hex
