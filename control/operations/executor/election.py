"""Leaders as the plan has them, of what has arrived: elected once all copies are there."""

import time
from collections.abc import Awaitable, Callable, Sequence

from control.kafka.errors import KafkaPortError, UnreachableError
from control.kafka.ports import AdminPort, ElectionType
from control.model.ids import TopicPartition
from control.model.units import counted, duration_text
from control.move.events import EventKind
from control.operations.executor.run_context import (
    LAST_TICK_S,
    TICK_S,
    RunContext,
    wait_while_paused,
)
from control.operations.reassignment.spreading import TOLD_FROM_S, Pace, Turns
from planner.proposal import PartitionChange

_Waiting = tuple[PartitionChange, float]
"""With how long what comes after it waits, in seconds."""


async def elect_preferred(
    admin: AdminPort,
    wrong: Sequence[PartitionChange],
    pace: Pace,
    turns: Turns,
    context: RunContext,
    *,
    within_s: float,
    tell: Callable[[float], Awaitable[object]],
) -> None:
    """Elects the first replica of partitions that another one leads. Elections are as far apart as
    the pace has it, but over at most `within_s`, or at once when an operator ends the move.
    Refusals are told, and left. `tell` hears the seconds until the last election.

    :raises UnreachableError: the cluster does not answer; what is elected already stays.
    """
    left = [(change, pace.after_electing(change)) for change in wrong]
    takes_s = _left_s(turns, left)
    if takes_s > within_s:
        left = [(change, gap_s * within_s / takes_s) for change, gap_s in left]
        takes_s = within_s
    if takes_s >= TOLD_FROM_S:
        words = f"{counted(len(left), 'leader')} elected one after the other, so that producers"
        await context.emit(EventKind.NOTE, f"{words} wait less: {duration_text(takes_s * 1000)}")
    elected = 0
    while left:
        if context.flags().is_paused:
            await tell(0.0)
            await wait_while_paused(context, "no leader is elected")
        now_s, is_over = time.monotonic(), context.flags().is_ending
        due: list[_Waiting] = []
        later: list[_Waiting] = []
        for change, gap_s in left:
            is_due = is_over or turns.take(change.topic, gap_s, now_s)
            (due if is_due else later).append((change, gap_s))
        left = later
        if due:
            elected += await _elect(admin, [change.key for change, _ in due], context)
        if left:
            left_s = _left_s(turns, left)
            await tell(left_s)
            opens_s = min(turns.opens_s(change.topic, gap_s) for change, gap_s in left)
            await context.flags().wait(min(max(opens_s - time.monotonic(), LAST_TICK_S), TICK_S))
            await context.remove_left_throttles()
    if takes_s:
        await tell(0.0)
    if elected:
        await context.emit(EventKind.ELECTED, f"{counted(elected, 'preferred leader')} elected")


def _left_s(turns: Turns, left: Sequence[_Waiting]) -> float:
    return turns.left_s(((change.topic, gap_s) for change, gap_s in left), time.monotonic())


async def _elect(admin: AdminPort, keys: Sequence[TopicPartition], context: RunContext) -> int:
    """How many were."""
    await context.hold()
    try:
        refused = await admin.elect_leaders(keys, ElectionType.PREFERRED)
    except UnreachableError:
        raise
    except KafkaPortError as error:
        await context.emit(EventKind.NOTE, str(error))
        return 0
    for error_of_one in refused.values():
        await context.emit(EventKind.NOTE, str(error_of_one))
    return len(keys) - len(refused)
