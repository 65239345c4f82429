"""How often a run looks at the cluster. Pure."""

from typing import Final

from control.move.events import MoveProgress

TICK_S: Final = 1.0
FIRST_TICK_S: Final = 0.1
LAST_TICK_S: Final = 0.25


def next_tick_s(last_s: float, progress: MoveProgress) -> float:
    """More often at first and towards the end, so that nobody waits for what is done."""
    soon_s = TICK_S if progress.eta_s_low is None else max(progress.eta_s_low / 2, LAST_TICK_S)
    return min(last_s * 2, TICK_S, soon_s)
