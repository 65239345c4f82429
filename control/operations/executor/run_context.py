"""Services of the executor for a run, requests of operators about it, and how often it looks."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from control.move.events import EventKind, MoveProgress
from control.move.state import OperationState
from control.move.throttle import Throttle

TICK_S: Final = 1.0
FIRST_TICK_S: Final = 0.1
LAST_TICK_S: Final = 0.25


@dataclass(slots=True, kw_only=True)
class ControlFlags:
    """Requests of operators about a running operation."""

    is_paused: bool = False
    is_cancelled: bool = False
    is_last_wave: bool = False
    """Nothing begins any more; what moves arrives."""
    goes_on: bool = False
    """Consumers that fall behind are to hold the move no more; the run clears it."""
    throttle: Throttle | None = None
    """The last one asked for while it runs; None: as the command says."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with each change; whoever waits clears it first."""

    @property
    def is_ending(self) -> bool:
        """Whether no further wave may begin."""
        return self.is_cancelled or self.is_last_wave

    async def wait(self, timeout_s: float | None = None) -> None:
        """Until a change after this call, or the timeout."""
        self.changed.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self.changed.wait()
        except TimeoutError:
            return


class RunContext(Protocol):
    """Services of the executor for a run."""

    def state(self) -> OperationState:
        """The state by all events so far."""

    def flags(self) -> ControlFlags:
        """Requests of operators so far."""

    async def hold(self) -> None:
        """Raise FencedError unless we own the operations."""

    async def emit(self, kind: EventKind, message: str = "", **data: Any) -> None:
        """Write an event, durably."""

    async def pause(self, reason: str) -> None:
        """Pause the operation, durably, until an operator resumes it."""

    async def remove_left_throttles(self, *, also_on: Collection[int] = ()) -> None:
        """Remove throttles that ended operations left on brokers of the cluster that were down,
        where they are back and this operation has none of its own, or not yet (`also_on`)."""


async def tell_once(context: RunContext, words: str) -> None:
    """A note, also over a crash."""
    if words not in context.state().notes:
        await context.emit(EventKind.NOTE, words)


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


def next_tick_s(last_s: float, progress: MoveProgress) -> float:
    """More often at first and towards the end, so that nobody waits for what is done."""
    soon_s = TICK_S if progress.eta_s_low is None else max(progress.eta_s_low / 2, LAST_TICK_S)
    return min(last_s * 2, TICK_S, soon_s)
