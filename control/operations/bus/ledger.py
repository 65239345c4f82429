"""The states of all operations on the bus: read once, then followed.

The first question reads both topics from their beginning; each further one asks for their ends and
reads only what came since. Work is done in slices, so that the event loop is never held for long.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from control.kafka.records.reader import FetchedRecord
from control.move.commands import ReassignCommand
from control.move.known_states import KnownStates
from control.move.state import OperationState, submitted
from control.operations.bus.topics import COMMANDS, EVENTS, PROGRESS, Bus, operation_of

SLICE_S: Final = 0.01
"""So long the event loop is held at a time, or for one record."""
THREAD_FROM_BYTES: Final = 256 << 10
"""Records of this size and more are decoded in a thread."""


class Slices:
    """Gives the event loop its turn now and then."""

    def __init__(self) -> None:
        self._began_s = time.perf_counter()

    async def maybe_pause(self) -> None:
        """Once a slice is over."""
        if time.perf_counter() - self._began_s >= SLICE_S:
            await asyncio.sleep(0)
            self._began_s = time.perf_counter()


class Ledger:
    """States of all operations on one bus; lives on one event loop."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._known = KnownStates()
        self._unanswered: dict[str, OperationState] = {}
        self._progress: dict[str, FetchedRecord] = {}
        """The newest of each operation that was not folded yet."""
        self._next = dict.fromkeys((EVENTS, COMMANDS), 0)
        self._reading = asyncio.Lock()

    async def states(self, *, is_whole: bool = False) -> list[OperationState]:
        """States of all clusters' operations, those without an answer included. `is_whole` adds the
        plans of operations that have ended.

        :raises KafkaPortError: the bus does not answer.
        """
        async with self._reading:
            await self._catch_up()
            found = await asyncio.to_thread(self._known.all)
            if is_whole:
                found = [await self._whole(state.operation_id) for state in found]
            return [*found, *self._unanswered.values()]

    async def get(self, operation_id: str) -> OperationState | None:
        """One of them, with its plan; None: there is none.

        :raises KafkaPortError: the bus does not answer.
        """
        async with self._reading:
            await self._catch_up()
            if operation_id not in self._known:
                return self._unanswered.get(operation_id)
            return await self._whole(operation_id)

    async def _whole(self, operation_id: str) -> OperationState:
        if self._known.has_plan(operation_id):
            return await asyncio.to_thread(self._known.get, operation_id)
        again = await self._bus.read_states(of=operation_id)
        return again.get(operation_id, self._known.get(operation_id))

    async def _catch_up(self) -> None:
        ends = await self._bus.ends()
        if any(ends.get(it, 0) < at for it, at in self._next.items()):  # Made anew meanwhile.
            self._known.clear()
            self._bus.unreadable.clear()
            self._unanswered.clear()
            self._progress.clear()
            self._next = dict.fromkeys(self._next, 0)
        if ends.get(EVENTS, 0) > self._next[EVENTS]:
            await self._read_events()
        if ends.get(COMMANDS, 0) > self._next[COMMANDS]:
            await self._read_commands()
        for name in [name for name in self._unanswered if name in self._known]:
            del self._unanswered[name]

    async def _read_events(self) -> None:
        """Reads new events; of several progress events in a row only the newest is decoded."""
        progress, slices = self._progress, Slices()
        async for record in self._bus.read_from(EVENTS, self._next[EVENTS]):
            name = operation_of(record)
            if (record.key or b"").endswith(PROGRESS):
                progress[name] = record
            else:
                if name in progress:
                    await self._take(progress.pop(name))
                await self._take(record)
            self._next[EVENTS] = record.offset + 1
            await slices.maybe_pause()
        while progress:
            await self._take(progress.popitem()[1])

    async def _take(self, record: FetchedRecord) -> None:
        decode = self._bus.unreadable.event
        if len(record.value or b"") >= THREAD_FROM_BYTES:
            if (event := await asyncio.to_thread(decode, record)) is not None:
                await asyncio.to_thread(self._known.take, event)
        elif (event := decode(record)) is not None:
            self._known.take(event)

    async def _read_commands(self) -> None:
        """Those of operations that have events say nothing new."""
        slices = Slices()
        async for record in self._bus.read_from(COMMANDS, self._next[COMMANDS]):
            self._next[COMMANDS] = record.offset + 1
            if operation_of(record) not in self._known:
                command = await asyncio.to_thread(self._bus.unreadable.command, record)
                if isinstance(command, ReassignCommand):
                    self._unanswered.setdefault(command.operation_id, submitted(command))
            await slices.maybe_pause()
