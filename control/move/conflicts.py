"""Two operators at once: what somebody else has asked for and is not done. Pure."""

from collections.abc import Iterable

from control.model.watched_cluster import Site
from control.move.check import Check, Verdict, check_of
from control.move.state import OperationState
from planner.proposal import PartitionChange


def check_others(
    states: Iterable[OperationState], changes: Iterable[PartitionChange], *, site: Site
) -> Check:
    """Refused while an unfinished reassignment moves one of these partitions; a warning when it
    moves others: this one then waits for it."""
    wanted = {change.key for change in changes}
    same, waiting = [], []
    for state in states:
        if state.is_finished or not state.site.is_same(site):
            continue
        shared = wanted.intersection(change.key for change in state.changes)
        who = f"{state.operation_id} of {state.who or 'somebody'}"
        if shared:
            same.append(
                f"{who} moves {len(shared)} of these partitions and is {state.phase.value}; "
                f"wait for it, or cancel it"
            )
        else:
            waiting.append(f"{who} is {state.phase.value}: this one begins when it is done")
    if same:
        return check_of("other operators", same, fine="")
    return check_of("other operators", waiting, fine="nobody moves anything", verdict=Verdict.WARN)


def unknown_others(reason: str) -> Check:
    """The bus of operations does not answer."""
    words = f"unknown: the operations bus does not answer ({reason})"
    return Check(name="other operators", verdict=Verdict.WARN, reason=words)
