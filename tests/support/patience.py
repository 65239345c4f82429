"""How long tests wait: the one place of their time-outs, which grow with a slow or busy machine.

A time-out is written as what a quiet machine needs at most, in seconds. ``SLOWNESS`` stretches it:
how many times longer than there two pieces of work take here, measured once at the start of a run.
One computes; one makes objects, since memory can be tenfold slower where arithmetic is not.
"""

import os
import subprocess
import sys
from typing import Final

VARIABLE: Final = "TESTS_SLOWNESS"
"""Carries the factor to the processes of a run; set by hand, nothing is measured."""
WORK: Final = {
    "sum(range(6_000_000))": 0.09,
    "[{'number': [n]} for n in range(50_000)]": 0.04,
}
"""Pieces of work, and the seconds of each on one quiet core of the machine that the time-outs are
written for."""
LEAST: Final = 2.0
"""A run is long: the machine may become slower than it was at the start."""
MOST: Final = 20.0
_TIMED: Final = "import time; a = time.monotonic(); {work}; print(time.monotonic() - a)"


def _measured() -> float:
    """The slowest piece of work decides."""
    slowest = max(_seconds(work) / quiet_s for work, quiet_s in WORK.items())
    return min(max(slowest, LEAST), MOST)


def _seconds(work: str) -> float:
    """One process a core does the work at the same time: neighbours that keep the cores busy
    show, and so does a core that is slow by itself."""
    asked = [
        subprocess.Popen(
            (sys.executable, "-c", _TIMED.format(work=work)), stdout=subprocess.PIPE, text=True
        )
        for _ in range(os.cpu_count() or 1)
    ]
    return max(float(process.communicate()[0]) for process in asked)


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
