"""The beginning of a way back: brokers have heard how the operation ended that it takes back."""

import time
from collections.abc import Iterable
from typing import Final

from control.operations.move_watch import MoveWatch
from control.operations.run_context import RunContext
from control.planner.proposal import PartitionChange

SETTLED_WITHIN_S: Final = 15.0
SETTLED_POLL_S: Final = 0.5


async def settle(watch: MoveWatch, changes: Iterable[PartitionChange], context: RunContext) -> None:
    """Wait for that a while: a broker that lags tells of the replicas of before and after together,
    as if somebody had added some."""
    until_s = time.monotonic() + SETTLED_WITHIN_S
    await watch.refresh()
    while any(map(watch.places.is_between, changes)) and time.monotonic() < until_s:
        if context.flags().is_cancelled:
            return
        await context.flags().wait(SETTLED_POLL_S)
        await watch.refresh()
