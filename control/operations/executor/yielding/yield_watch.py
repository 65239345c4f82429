"""Reads groups beside a run, and tells when the run yields to them and when it goes on."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Final, Protocol, Self

from control.kafka.errors import KafkaPortError
from control.model.units import counted, duration_text
from control.move.events import EventKind
from control.move.yields import YieldMode, YieldRules
from control.operations.executor.run_context import TICK_S, RunContext, tell_once, wait_while_paused
from control.operations.executor.yielding.consumer_yield import (
    ConsumerYield,
    GroupReading,
    YieldChange,
)

READ_EVERY_S: Final = 5.0
READ_OFTEN_S: Final = 0.5
READINGS_WITHIN: Final = 6
"""So many within the time after which a group is behind."""
NAMES_MAX: Final = 3


class GroupReader(Protocol):
    """Reader of groups (``consumer_probe.ConsumerProbe``)."""

    async def read(self) -> Mapping[str, GroupReading]:
        """Groups with members, as they stand now."""


class YieldWatch:
    """Whether one run yields. Use as an async context manager around its waves."""

    def __init__(self, reader: GroupReader | None, rules: YieldRules, context: RunContext) -> None:
        """``reader`` None: the run never yields."""
        self._reader = reader
        self._rules = rules
        self._context = context
        self._fold = ConsumerYield(rules, held_by=context.state().yields_to)
        self._reading: asyncio.Task[None] | None = None
        self._unseen: list[tuple[float, Mapping[str, GroupReading] | None]] = []
        self._trouble = ""

    async def __aenter__(self) -> Self:
        if self._reader is not None:
            self._reading = asyncio.create_task(self._keep_reading(self._reader))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    @property
    def is_holding(self) -> bool:
        """Whether nothing may begin now."""
        return self._rules.mode is YieldMode.PAUSE and bool(self._fold.behind)

    @property
    def is_slowing(self) -> bool:
        """Whether the throttle is to be lowered now."""
        return self._rules.mode is YieldMode.SLOW and bool(self._fold.behind)

    async def tell(self) -> bool:
        """Take what was read since, and tell what it changes; whether a yield ended."""
        if self._reading is not None and self._reading.done():
            self._reading.result()  # It ends by an error alone.
        flags, has_ended = self._context.flags(), False
        if flags.goes_on:
            flags.goes_on = False
            if self._fold.go_on():
                has_ended = True
                await self._emit("goes on: an operator has resumed it", ())
        if self._trouble:
            await tell_once(self._context, self._trouble)
        unseen, self._unseen = self._unseen, []
        for at_s, groups in unseen:
            for change, names in self._fold.observe(groups, at_s):
                has_ended |= await self._tell(change, names)
        return has_ended

    async def wait(self) -> bool:
        """Waits until the run may begin a wave, or ends; whether it had to wait."""
        flags, has_waited = self._context.flags(), False
        await self.tell()
        while self.is_holding and not flags.is_ending:
            has_waited = True
            await flags.wait(TICK_S)
            await self._context.remove_left_throttles()
            await self.tell()
        return has_waited

    async def end(self, why: str = "the last wave is over") -> None:
        """Nothing is left to yield with."""
        if self._context.state().yields_to:
            await self._emit(f"yields to nobody: {why}", ())

    async def _keep_reading(self, reader: GroupReader) -> None:
        every_s = min(max(self._rules.behind_s / READINGS_WITHIN, READ_OFTEN_S), READ_EVERY_S)
        while True:
            groups: Mapping[str, GroupReading] | None = None
            try:
                groups = await reader.read()
            except KafkaPortError as error:
                self._trouble = f"consumer groups cannot be read, so they hold up nothing: {error}"
            self._unseen = [*self._unseen, (time.monotonic(), groups)][-READINGS_WITHIN:]
            await asyncio.sleep(every_s)

    async def _tell(self, change: YieldChange, names: tuple[str, ...]) -> bool:
        groups, is_are = _named(names), "is" if len(names) == 1 else "are"
        if change is YieldChange.EXCUSED:
            was = "was" if len(names) == 1 else "were"
            words = f"{groups} {was} behind before: the move does not yield until caught up"
            await tell_once(self._context, words)
        elif change is YieldChange.BEGINS:
            await self._emit(self._why(names), names)
        elif change is YieldChange.ENDS:
            has = "has" if len(names) == 1 else "have"
            await self._emit(f"goes on: {groups} {has} caught up, or left", ())
        else:
            most = duration_text(self._rules.at_most_s * 1000)
            words = f"goes on although {groups} {is_are} still behind: it yields {most} at most"
            await self._emit(words, ())
        return change in (YieldChange.ENDS, YieldChange.GIVES_UP)

    def _why(self, names: tuple[str, ...]) -> str:
        lags = self._fold.lags or {}
        records = counted(sum(lags.get(name, 0) for name in names), "record")
        late = duration_text(self._rules.behind_s * 1000)
        most = duration_text(self._rules.at_most_s * 1000)
        does = "no new partition begins"
        if self._rules.mode is YieldMode.SLOW:
            does = "the throttle is lowered"
        they_have = "that group has" if len(names) == 1 else "those groups have"
        return (
            f"yields to {_named(names)}, more than {late} behind ({records}): {does}. "
            f"It goes on by itself once {they_have} caught up, after {most} at the latest"
        )

    async def _emit(self, words: str, names: Iterable[str]) -> None:
        await self._context.emit(EventKind.YIELDED, words, groups=list(names))


async def wait_for_turn(yields: YieldWatch, context: RunContext) -> bool:
    """Waits while a run yields to consumers, or an operator has paused it; whether it had to."""
    has_yielded = await yields.wait()
    return await wait_while_paused(context, "no new wave starts") or has_yielded


def _named(names: tuple[str, ...]) -> str:
    """``group a``, ``groups a, b, c and 2 more``."""
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"{'group' if len(names) == 1 else 'groups'} {', '.join(names[:NAMES_MAX])}{more}"
