"""When a source of samples begins its rounds: so that they are written just before a batch.

The metrics job begins its batches at whole seconds. Samples that come at any other time wait for
the next one, half a second in the mean. So rounds end at whole intervals of the wall clock, less a
margin: all sources tell of the same moment, and a screen shows it half a second sooner.
"""

from collections import deque
from typing import Final

MARGIN_MS: Final = 100
"""So long before the batch a round is to be written: timers are late, machines are busy."""
ROUNDS: Final = 8
"""The longest of the last rounds tells how long before it must begin."""


class RoundTimes:
    """How long the rounds of one source take, and when the next one begins."""

    def __init__(self) -> None:
        self._took_ms: deque[int] = deque(maxlen=ROUNDS)

    def wait_ms(self, *, now_ms: int, took_ms: int, interval_ms: int) -> int:
        """How long the source waits after a round that took so long and ended now (wall clock).

        A round begins at least half an interval after the one before.
        """
        self._took_ms.append(took_ms)
        lead_ms = MARGIN_MS + max(self._took_ms)
        wait_ms = -(now_ms + lead_ms) % interval_ms
        return wait_ms if took_ms + wait_ms >= interval_ms // 2 else wait_ms + interval_ms
