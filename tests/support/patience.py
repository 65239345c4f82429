"""How long tests wait: the one place of their time-outs, which grow with a slow or busy machine.

A time-out is written as what a quiet machine needs at most, in seconds. ``SLOWNESS`` stretches it:
how many times longer than there a piece of work takes here, measured once at the start of a run.
"""

import os
import subprocess
import sys
from typing import Final

VARIABLE: Final = "TESTS_SLOWNESS"
"""Carries the factor to the processes of a run; set by hand, nothing is measured."""
QUIET_S: Final = 0.09
"""The piece of work, on one quiet core of the machine that the time-outs are written for."""
_WORK: Final = (
    "import time; a = time.monotonic(); sum(range(6_000_000)); print(time.monotonic() - a)"
)
_MAX: Final = 20.0


def _measured() -> float:
    """One process a core does the work at the same time: neighbours that keep the cores busy
    show, and so does a core that is slow by itself."""
    asked = [
        subprocess.Popen((sys.executable, "-c", _WORK), stdout=subprocess.PIPE, text=True)
        for _ in range(os.cpu_count() or 1)
    ]
    slowest_s = max(float(process.communicate()[0]) for process in asked)
    return min(max(slowest_s / QUIET_S, 1.0), _MAX)


def _slowness() -> float:
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = f"{_measured():.2f}"
    return float(os.environ[VARIABLE])


SLOWNESS: Final = _slowness()


def patience_s(quiet_s: float) -> float:
    """Seconds to wait on this machine for what takes ``quiet_s`` at most on a quiet one."""
    return quiet_s * SLOWNESS


WAIT_S: Final = patience_s(60.0)
"""For what certainly happens and is not about time: only a fault makes it this late."""
