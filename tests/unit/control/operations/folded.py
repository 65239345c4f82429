"""Events folded at once, as the bus folds them one by one."""

from collections.abc import Iterable

from control.move.events import Event
from control.move.state import OperationState, take_event


def fold(events: Iterable[Event]) -> dict[str, OperationState]:
    """States by operation id, in order of first appearance."""
    states: dict[str, OperationState] = {}
    for event in events:
        take_event(states, event)
    return states
