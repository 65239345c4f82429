"""How well estimates of past moves came true on a cluster. Pure."""

from collections.abc import Iterable
from typing import Final

from control.model.units import counted
from control.model.watched_cluster import Site
from control.operations.bus.events import Outcome
from control.operations.bus.state import OperationState

MOVES_MAX: Final = 5
SECONDS_MIN: Final = 1.0
"""Of what takes less nobody waits for the estimate."""


def estimate_share(state: OperationState) -> float | None:
    """The time that a move took as a share of the middle of its estimate; null where it was not
    done, had no estimate, or somebody held it up or changed its course."""
    told, took_s = state.expected_s, state.took_s
    is_plain = state.misses is not None and state.misses.foreseen is not None
    if told is None or took_s is None or state.outcome is not Outcome.DONE or not is_plain:
        return None
    middle_s = sum(told) / 2
    return took_s / middle_s if middle_s >= SECONDS_MIN else None


def past_estimates_words(states: Iterable[OperationState], site: Site) -> str:
    """``the last 5 moves took 0.9 to 1.3 of their estimate``; empty: there is none to tell of."""
    ours = [state for state in states if state.site.is_same(site)]
    ours.sort(key=lambda state: state.finished_ms or 0)
    known = [share for share in map(estimate_share, ours) if share is not None][-MOVES_MAX:]
    if not known:
        return ""
    least, most = f"{min(known):.1f}", f"{max(known):.1f}"
    span = least if least == most else f"{least} to {most}"
    if len(known) == 1:
        return f"the last move took {span} of its estimate"
    return f"the last {counted(len(known), 'move')} took {span} of their estimate"
