"""The shell around the group state machines: parked requests, the timer, storing groups."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker.background import Tasks, log_failure
from broker.clock import Clock
from broker.coordinator.errors import GroupError
from broker.coordinator.group_log import GroupLog
from broker.coordinator.groups.group_events import (
    Answer,
    GroupEvent,
    GroupStored,
    GroupUnloaded,
    Result,
    TimePassed,
)
from broker.coordinator.groups.group_machine import handle
from broker.coordinator.groups.group_session import deadline_ms
from broker.coordinator.groups.group_state import GroupState
from broker.coordinator.offsets.committed_offsets import GroupEntry
from broker.coordinator.offsets_partitions import OffsetsPartition, OffsetsPartitions
from broker.coordinator.records import GroupSnapshot, encode_group_key, encode_group_value
from broker.coordinator.timer import GroupTimer


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedGroup:
    """A group's entry in the partition that keeps it."""

    partition: OffsetsPartition
    entry: GroupEntry


class CoordinatorRuntime:
    """Feeds events to groups and carries out their effects.

    A request waits under a token; whoever takes the token may go away before the answer comes.
    """

    def __init__(self, partitions: OffsetsPartitions, log: GroupLog, clock: Clock) -> None:
        self._partitions = partitions
        self._log = log
        self._clock = clock
        self._tokens = itertools.count(1)
        self._waiters: dict[int, Callable[[Any], None]] = {}
        self._stores = Tasks("storing of groups", log_failure)
        self._timer = GroupTimer(clock, self._handle_due)
        partitions.on_loaded = self._handle_loaded
        partitions.on_unloaded = self._handle_unloaded

    async def stop(self) -> None:
        """Forget the timer and give up what is being stored."""
        self._timer.stop()
        await self._stores.stop()

    def now_ms(self) -> int:
        """The clock of the events."""
        return self._clock.monotonic_ms()

    def take_token(self) -> int:
        """A name for a request that is about to wait."""
        return next(self._tokens)

    async def ask(self, seat: LocatedGroup, token: int, event: GroupEvent) -> Any:
        """Drive an event and wait for the answer to its token."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def settle(result: Result) -> None:
            if not future.done():
                future.set_result(result)

        self._waiters[token] = settle
        self._drive(seat, event)
        return await future

    def ask_now(self, seat: LocatedGroup, token: int, event: GroupEvent) -> Any:
        """Drive an event whose answer is among its own effects."""
        answers: list[Result] = []
        self._waiters[token] = answers.append
        self._drive(seat, event)
        return answers[0]

    def kill(self, seat: LocatedGroup, error: GroupError) -> None:
        """End a group here: deleted, or coordinated elsewhere."""
        self._drive(seat, GroupUnloaded(now_ms=self.now_ms(), error=error))
        seat.partition.entries.pop(seat.entry.group.group_id, None)

    def _drive(self, seat: LocatedGroup, event: GroupEvent) -> None:
        """Let an event happen and carry out what follows from it."""
        for effect in handle(seat.entry.group, event):
            if isinstance(effect, Answer):
                waiter = self._waiters.pop(effect.token, None)
                if waiter is not None:
                    waiter(effect.result)
            else:
                self._stores.start(self._store(seat, effect.snapshot))
        self._timer.arm(seat.entry, deadline_ms(seat.entry.group))

    async def _store(self, seat: LocatedGroup, snapshot: GroupSnapshot) -> None:
        try:
            record = (encode_group_key(snapshot.group_id), encode_group_value(snapshot))
            error = (await self._log.append(seat.partition.index, [record])).error
        except Exception:
            self._stored(seat, snapshot, GroupError.UNKNOWN_SERVER_ERROR)  # members wait for it
            raise
        self._stored(seat, snapshot, error)

    def _stored(self, seat: LocatedGroup, snapshot: GroupSnapshot, error: GroupError) -> None:
        self._drive(seat, GroupStored(now_ms=self.now_ms(), snapshot=snapshot, error=error))

    def _handle_due(self, entry: GroupEntry) -> None:
        partition = self._partitions.locate(entry.group.group_id)
        if entry.group.state is GroupState.DEAD or isinstance(partition, GroupError):
            return
        seat = LocatedGroup(partition=partition, entry=entry)
        self._drive(seat, TimePassed(now_ms=self.now_ms()))

    def _handle_loaded(self, partition: OffsetsPartition) -> None:
        for entry in partition.entries.values():
            self._timer.arm(entry, deadline_ms(entry.group))

    def _handle_unloaded(self, partition: OffsetsPartition) -> None:
        for entry in list(partition.entries.values()):
            self.kill(LocatedGroup(partition=partition, entry=entry), GroupError.NOT_COORDINATOR)
