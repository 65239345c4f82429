"""What becomes of an operation while its cluster does not answer."""

import asyncio
from typing import Final

from control.kafka.errors import UnreachableError
from control.operations.events import EventKind, Outcome
from control.operations.run_context import RunContext

RETRY_S: Final = 2.0
TOLD_AFTER_S: Final = 10.0
"""An outage that lasts longer is told with the operation: a broker that restarts is none."""
GIVE_UP_S: Final = 60.0
"""So long a cluster may be silent before an operation that was cancelled ends without it."""


class ClusterOutage:
    """One cluster, from the first time that it did not answer."""

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._is_told = False

    async def bear(self, context: RunContext, error: UnreachableError) -> None:
        """Wait a moment before the next attempt, or end an operation that was cancelled."""
        now_s = asyncio.get_running_loop().time()
        self._since_s = now_s if self._since_s is None else self._since_s
        is_cancelled, away_s = context.flags().is_cancelled, now_s - self._since_s
        if is_cancelled and not context.state().is_started:
            outcome = Outcome.CANCELLED.value
            await context.emit(EventKind.FINISHED, "cancelled before it began", outcome=outcome)
            return
        if is_cancelled and away_s >= GIVE_UP_S:
            message = (
                f"given up after a cancel: {error}; what is in flight there may go on, "
                "a throttle goes when the cluster answers"
            )
            await context.emit(EventKind.FINISHED, message, outcome=Outcome.FAILED.value)
            return
        if away_s >= TOLD_AFTER_S and not self._is_told:
            self._is_told = True
            await context.emit(EventKind.NOTE, f"waits for its cluster: {error}")
        await context.flags().wait(RETRY_S)
