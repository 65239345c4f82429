"""Decides about operations while their cluster does not answer."""

import asyncio
from collections.abc import Sequence
from typing import Final

from control.kafka.errors import UnreachableError
from control.model.units import duration_text
from control.move.events import EventKind, Outcome
from control.move.state import Phase
from control.operations.executor.run_context import RunContext

RETRY_S: Final = 2.0
TOLD_AFTER_S: Final = 10.0
"""An outage that lasts longer is told with the operations: a broker that restarts is none."""
GIVE_UP_S: Final = 60.0
"""So long a cluster may be silent before an operation that was cancelled ends without it."""
ANSWERED: Final = frozenset({EventKind.STARTED, EventKind.WAVE_STARTED, EventKind.PROGRESS})
"""Nothing of this happens before the cluster has answered."""


class ClusterOutage:
    """One cluster, from the first time that it did not answer."""

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._told: dict[str, RunContext] = {}

    async def bear(self, waiting: Sequence[RunContext], error: UnreachableError) -> None:
        """Tell each that waits for the cluster, once; end those that were cancelled, and wait a
        moment before the next attempt if there were none."""
        now_s = asyncio.get_running_loop().time()
        self._since_s = now_s if self._since_s is None else self._since_s
        away_s = now_s - self._since_s
        ended = [await _is_ended(context, error, away_s) for context in waiting]
        if any(ended) or not waiting:
            return
        if away_s >= TOLD_AFTER_S:
            for context in waiting:
                if context.state().operation_id not in self._told:
                    self._told[context.state().operation_id] = context
                    words = f"waits for its cluster: {error}"
                    await context.emit(EventKind.NOTE, words, is_passing=True)
        await waiting[0].flags().wait(RETRY_S)

    async def end(self) -> None:
        """It answers: who was told is told that as well."""
        told, self._told, since_s, self._since_s = self._told, {}, self._since_s, None
        away_s = asyncio.get_running_loop().time() - (since_s or 0.0)
        for context in told.values():
            if context.state().is_finished:
                continue
            waits = context.state().phase is Phase.WAITING
            then = "waits for the operations before it" if waits else "goes on"
            words = f"its cluster answers again, after {duration_text(1000 * away_s)}; {then}"
            await context.emit(EventKind.NOTE, words)


async def _is_ended(context: RunContext, error: UnreachableError, away_s: float) -> bool:
    """End one that was cancelled, as far as that can be done without its cluster."""
    if not context.flags().is_cancelled:
        return False
    if not context.state().is_started:
        outcome = Outcome.CANCELLED.value
        await context.emit(EventKind.FINISHED, "cancelled before it began", outcome=outcome)
        return True
    if away_s < GIVE_UP_S:
        return False
    message = (
        f"given up after a cancel: {error}; partitions in flight may continue, "
        "and a throttle is removed once the cluster answers"
    )
    await context.emit(EventKind.FINISHED, message, outcome=Outcome.FAILED.value)
    return True
