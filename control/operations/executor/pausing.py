"""A pause that an operator asked for, where nothing is under way."""

from control.move.events import EventKind
from control.operations.executor.pacing.polling_interval import TICK_S
from control.operations.executor.run_context import RunContext


async def wait_while_paused(context: RunContext, words: str) -> bool:
    """Until it is over, or all of the operation is; whether there was one."""
    if not context.flags().is_paused or context.flags().is_ending:
        return False
    await context.emit(EventKind.PAUSED, f"paused: {words}")
    while context.flags().is_paused and not context.flags().is_ending:
        await context.flags().wait(TICK_S)
        await context.remove_left_throttles()
    await context.emit(EventKind.RESUMED, "resumed")
    return True
