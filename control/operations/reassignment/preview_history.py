"""Adds the history of the bus to a preview: moves of others, and how long moves took. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from control.model.watched_cluster import Site
from control.operations.bus.commands import THROTTLE_AUTO, Throttle
from control.operations.bus.state import OperationState, misses_of
from control.operations.executor.timing.calibration import calibration_of, stretched
from control.operations.executor.timing.past_estimates import past_estimates_words
from control.operations.reassignment.conflicts import check_others
from control.operations.reassignment.planning import Preview
from control.operations.reassignment.preflight_load import TIME, check_time


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
