"""Adds the history of the bus to a preview: moves of others, and how long moves took. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from control.model.units import counted
from control.model.watched_cluster import Site
from control.move.conflicts import check_others
from control.move.events import Outcome
from control.move.state import OperationState, misses_of
from control.move.throttle import THROTTLE_AUTO, Throttle
from control.operations.reassignment.calibration import calibration_of, stretched
from control.operations.reassignment.planning import Preview
from control.operations.reassignment.preflight_load import TIME, check_time

MOVES_MAX: Final = 5
SECONDS_MIN: Final = 1.0
"""Of what takes less nobody waits for the estimate."""


def with_past(
    preview: Preview, states: Sequence[OperationState], *, site: Site, throttle: Throttle
) -> Preview:
    """The preview with the check of other operators, and with its time as moves that ended on this
    cluster have taught it."""
    changes, rate = preview.proposal.changes, preview.throttle_bytes_per_s
    low, high, checks = preview.seconds_min, preview.seconds_max, preview.checks
    if low is not None and high is not None:
        ended = misses_of(states, site)
        to = calibration_of(ended, is_adaptive=throttle == THROTTLE_AUTO).foreseen
        low, high = stretched((low, high), to)
        time = check_time((low, high), rate, preview.lowest_bytes_per_s, preview.spread)
        past = past_estimates_words(states, site)
        time = replace(time, reason=f"{time.reason}; {past}") if past else time
        checks = tuple(time if check.name == TIME else check for check in checks)
    others = check_others(states, changes, site=site)
    return replace(preview, checks=(*checks, others), seconds_min=low, seconds_max=high)


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
