"""The shell around the group state machines (Kafka's GroupMetadataManager): parked requests, the
timer, storing groups.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from broker.background import Slices, Tasks, log_failure
from broker.clock import Clock
from broker.coordinator.consumer.consumer_group import ConsumerGroup
from broker.coordinator.coordinator_timer import CoordinatorTimer
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.group_coordinator_shard import GroupCoordinatorShard
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
from broker.coordinator.groups.group_state import ClassicGroup, GroupState
from broker.coordinator.offsets.committed_offsets import GroupEntry
from broker.coordinator.partition_writer import KeyValue, PartitionWriter
from broker.coordinator.records import GroupSnapshot, encode_group_key, encode_group_value


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedGroup:
    """A group's entry in the shard that keeps it."""

    shard: GroupCoordinatorShard
    entry: GroupEntry


Locate = Callable[[str], GroupCoordinatorShard | CoordinatorError]
"""The loaded shard that keeps a group, or what to tell the client."""


class GroupMetadataManager:
    """Feeds events to groups and carries out their effects.

    A request waits under a token; whoever takes the token may go away before the answer comes.
    """

    def __init__(
        self,
        locate: Locate,
        writer: PartitionWriter,
        clock: Clock,
        *,
        reload: Callable[[int], None],
    ) -> None:
        self._locate = locate
        self._reload = reload
        self._writer = writer
        self._clock = clock
        self._tokens = itertools.count(1)
        self._waiters: dict[int, Callable[[Any], None]] = {}
        self._writing: dict[str, asyncio.Task[CoordinatorError]] = {}
        self._stores = Tasks("storing of groups", log_failure)
        self._ends = Tasks("end of groups that are coordinated elsewhere", log_failure)
        self._timer = CoordinatorTimer[GroupEntry]("timer of groups", clock, self._handle_due)

    async def stop(self) -> None:
        """Answer who waits, forget the timer and give up what is being stored."""
        await self._ends.wait(None)
        self._timer.stop()
        await self._stores.stop()

    def now_ms(self) -> int:
        """The clock of the events."""
        return self._clock.monotonic_ms()

    def take_token(self) -> int:
        """A name for a request that is about to wait."""
        return next(self._tokens)

    async def ask(self, located: LocatedGroup, token: int, event: GroupEvent) -> Any:
        """Drive an event and wait for the answer to its token."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def settle(result: Result) -> None:
            if not future.done():
                future.set_result(result)

        self._waiters[token] = settle
        self._drive(located, event)
        return await future

    def ask_now(self, located: LocatedGroup, token: int, event: GroupEvent) -> Any:
        """Drive an event whose answer is among its own effects."""
        answers: list[Result] = []
        self._waiters[token] = answers.append
        self._drive(located, event)
        return answers[0]

    def kill(self, located: LocatedGroup, error: CoordinatorError) -> None:
        """End a group here: deleted, or coordinated elsewhere."""
        if isinstance(located.entry.group, ClassicGroup):
            self._drive(located, GroupUnloaded(now_ms=self.now_ms(), error=error))
        located.shard.entries.pop(located.entry.group.group_id, None)

    def _drive(self, located: LocatedGroup, event: GroupEvent) -> None:
        """Let an event happen to a classic group and carry out what follows from it."""
        group = located.entry.group
        assert isinstance(group, ClassicGroup)
        for effect in handle(group, event):
            if isinstance(effect, Answer):
                waiter = self._waiters.pop(effect.token, None)
                if waiter is not None:
                    waiter(effect.result)
            else:
                self._stores.start(self._store(located, effect.snapshot))
        self._arm(located.entry)

    def _arm(self, entry: GroupEntry) -> None:
        group = entry.group
        due_ms = deadline_ms(group) if isinstance(group, ClassicGroup) else group.deadline_ms
        self._timer.arm(entry, due_ms)

    def write_consumer_group(self, located: LocatedGroup) -> Awaitable[CoordinatorError] | None:
        """Append what has changed in a group of the consumer protocol; who answers a member waits
        for what is being written. None: all is durable."""
        group = located.entry.group
        assert isinstance(group, ConsumerGroup)
        self._arm(located.entry)
        if records := group.take_records():
            written = self._stores.start(self._write(located.shard.index, records))
            self._writing[group.group_id] = written
            written.add_done_callback(partial(self._written, group.group_id))
        writing = self._writing.get(group.group_id)
        return None if writing is None else asyncio.shield(writing)

    def _written(self, group_id: str, written: "asyncio.Task[CoordinatorError]") -> None:
        if self._writing.get(group_id) is written:
            del self._writing[group_id]

    async def _write(self, index: int, records: Sequence[KeyValue]) -> CoordinatorError:
        error = (await self._writer.append(index, self._writer.build_batch(records))).error
        if error is not CoordinatorError.NONE:
            self._reload(index)  # the group here is ahead of its log
        return error

    async def _store(self, located: LocatedGroup, snapshot: GroupSnapshot) -> None:
        try:
            record = (encode_group_key(snapshot.group_id), encode_group_value(snapshot))
            batch = self._writer.build_batch([record])
            error = (await self._writer.append(located.shard.index, batch)).error
        except Exception:
            self._stored(
                located, snapshot, CoordinatorError.UNKNOWN_SERVER_ERROR
            )  # members wait for it
            raise
        self._stored(located, snapshot, error)

    def _stored(
        self, located: LocatedGroup, snapshot: GroupSnapshot, error: CoordinatorError
    ) -> None:
        self._drive(located, GroupStored(now_ms=self.now_ms(), snapshot=snapshot, error=error))

    def _handle_due(self, entry: GroupEntry) -> None:
        shard = self._locate(entry.group.group_id)
        if entry.group.state is GroupState.DEAD or isinstance(shard, CoordinatorError):
            return
        if shard.entries.get(entry.group.group_id) is not entry:
            return  # of an earlier term
        located = LocatedGroup(shard=shard, entry=entry)
        if isinstance(entry.group, ClassicGroup):
            self._drive(located, TimePassed(now_ms=self.now_ms()))
        else:
            entry.group.time_passed(self.now_ms())
            self.write_consumer_group(located)

    async def handle_loaded(self, shard: GroupCoordinatorShard) -> None:
        """Groups were read from the log: their deadlines count from now on."""
        slices = Slices()
        for entry in shard.entries.values():
            self._arm(entry)
            await slices.pause()

    def handle_unloaded(self, shard: GroupCoordinatorShard) -> None:
        """This node no longer coordinates these groups: those who wait are told so."""
        self._ends.start(self._end(shard, list(shard.entries.values())))

    async def _end(self, shard: GroupCoordinatorShard, entries: Sequence[GroupEntry]) -> None:
        slices = Slices()
        for entry in entries:
            self.kill(LocatedGroup(shard=shard, entry=entry), CoordinatorError.NOT_COORDINATOR)
            await slices.pause()
