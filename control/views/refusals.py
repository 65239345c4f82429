"""Refusals: operations that a cluster does not allow, and why (missing rights, read-only). Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from control.collector.report_writer import WatchReport
from control.move.state import OperationState

READ_ONLY: Final = (
    "✖ read-only here: nothing is changed (the setting read_only, or --read-only); "
    "start without it to change the cluster"
)
NOT_OURS: Final = "✖ brokers are stopped to learn only where `partiscope up` runs them itself"
PAST: Final = "✖ this is a past state: go back to now to change the cluster"


def refusals(
    watch: WatchReport | None, *, is_read_only: bool, is_past: bool = False
) -> Mapping[str, str]:
    """Per operation of the catalogue that may not be done, why not and what would allow it."""
    lacking: dict[str, str] = {}
    if watch is not None:
        lacking = {name: _lacks(watch, name) for name in watch.denied_operations}
        lacking["teach_acks"] = NOT_OURS
    if not lacking and not is_read_only and not is_past:
        return lacking
    from control.operations.catalogue import NEEDED_OF, RIGHTS  # brings a Kafka client along

    if is_read_only:
        lacking |= dict.fromkeys(RIGHTS, READ_ONLY)
    elif is_past:  # a right that lacks is told rather than the past
        lacking = dict.fromkeys(RIGHTS, PAST) | lacking
    return lacking | {name: lacking[it] for name, it in NEEDED_OF.items() if it in lacking}


def move_refusals(
    state: OperationState, actions: Iterable[str], *, denied: Mapping[str, str]
) -> Mapping[str, str]:
    """Per action on a reassignment that cannot be asked for now, why not. ``denied``: by operation
    that nobody who asks may do, why."""
    now = f"not possible: the reassignment is {state.phase}"
    refused = {it: denied.get(it) or ("" if state.may(it) else now) for it in actions}
    return {it: why for it, why in refused.items() if why}


def _lacks(watch: WatchReport, name: str) -> str:
    command = watch.grants.get(name)
    how = f"; grant it: {command}" if command else ""
    return f"✖ not allowed here: it needs {watch.denied_operations[name]}{how}"
