"""The executor process: takes commands from the bus and runs them, one at a time.

Its memory is the bus: commands in one topic, events in another. Killed at any point, the next
executor folds the events, finds what is unfinished, and goes on. Throttles that finished
operations left on a broker that was down are removed before anything else.
See control.operations.ownership for the fencing.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from control.kafka.admin import KafkaAdmin
from control.kafka.errors import KafkaPortError, UnreachableError
from control.kafka.settings import KafkaSettings
from control.operations.bus import Bus
from control.operations.commands import Command, ControlAction, ControlCommand, ReassignCommand
from control.operations.errors import FencedError, OperationError
from control.operations.events import Event, EventKind, Outcome
from control.operations.ownership import Ownership
from control.operations.reassign_run import ReassignRun
from control.operations.run_context import ControlFlags
from control.operations.state import OperationState, accepted_data, apply_event, fold

RETRY_S: Final = 2.0
TIDY_S: Final = 5.0
"""How often brokers that were down are looked for, while they have a throttle of ours."""
OWNER_WAIT_S: Final = 3.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """`bus` is the bundled cluster. The cluster to change is named in each command."""

    bus: KafkaSettings


class Memory:
    """What the bus says: commands by id, their states, and what operators asked of them."""

    def __init__(self) -> None:
        self.states: dict[str, OperationState] = {}
        self.commands: dict[str, ReassignCommand] = {}
        self.arrived = asyncio.Event()
        self._flags: dict[str, ControlFlags] = {}

    def take(self, command: Command) -> None:
        """One more command, known or new."""
        if isinstance(command, ReassignCommand):
            self.commands.setdefault(command.operation_id, command)
        else:
            _apply_control(self.flags_of(command.operation_id), command)
        self.arrived.set()

    def apply(self, event: Event) -> None:
        """One more event."""
        state = self.state_of(event.operation_id)
        self.states[event.operation_id] = apply_event(state, event)

    def state_of(self, operation_id: str) -> OperationState:
        """The state as of the last event."""
        return self.states.get(operation_id, OperationState(operation_id=operation_id))

    def flags_of(self, operation_id: str) -> ControlFlags:
        """What operators asked so far."""
        return self._flags.setdefault(operation_id, ControlFlags())

    def unfinished(self) -> ReassignCommand | None:
        """The oldest operation that is not finished."""
        for command in self.commands.values():
            if not self.state_of(command.operation_id).is_finished:
                return command
        return None

    def unanswered(self) -> list[ReassignCommand]:
        """Commands without any event."""
        return [c for c in self.commands.values() if c.operation_id not in self.states]

    def left_behind(self) -> list[ReassignCommand]:
        """Operations that ended before their throttle was gone from every broker."""
        return [
            command
            for command in self.commands.values()
            if self.state_of(command.operation_id).is_finished
            and self.state_of(command.operation_id).throttle is not None
        ]


class Executor:
    """Runs until cancelled."""

    def __init__(self, settings: ExecutorSettings, say: Say) -> None:
        self._settings = settings
        self._say = say
        self._bus = Bus(settings.bus)
        self.memory = Memory()
        self._clusters: dict[str, KafkaAdmin] = {}

    async def run(self) -> None:
        """Serve; every lost connection is tried again, for ever."""
        try:
            while True:
                try:
                    await self._serve()
                except KafkaPortError as error:
                    self._say(f"{error}; trying again")
                    await asyncio.sleep(RETRY_S)
        finally:
            await self._bus.close()
            for admin in self._clusters.values():
                await admin.close()

    async def _serve(self) -> None:
        await self._bus.ensure_topics()
        async with Ownership(self._settings.bus) as ownership:
            is_first = True
            while True:
                if not await ownership.wait_until_owner(OWNER_WAIT_S):
                    if is_first:
                        self._say("waiting: another executor runs the operations")
                    is_first = False
                    continue
                try:
                    await self._own(ownership)
                except FencedError as error:
                    self._say(f"{error}; waiting")
                    is_first = True

    async def _own(self, ownership: Ownership) -> None:
        """Run operations while we own them; only an error ends it."""
        next_offset = await self._load()
        ownership.read_from(next_offset)
        self._say("ready")
        listening = asyncio.create_task(self._listen(ownership))
        working = asyncio.create_task(self._work(ownership))
        try:
            done, _ = await asyncio.wait((listening, working), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            listening.cancel()
            working.cancel()
            await asyncio.gather(listening, working, return_exceptions=True)

    async def _load(self) -> int:
        """Rebuild the memory from the bus; answers the offset behind the last command."""
        commands, next_offset = await self._bus.read_commands()
        self.memory = Memory()
        self.memory.states = fold(await self._bus.read_events())
        for command in commands:
            self.memory.take(command)
        return next_offset

    async def _listen(self, ownership: Ownership) -> None:
        while True:
            for command in await ownership.next_commands():
                self.memory.take(command)
            if not ownership.is_owner:
                raise FencedError("the group is giving the operations out anew")

    async def _work(self, ownership: Ownership) -> None:
        memory = self.memory
        while True:
            memory.arrived.clear()
            await self._tidy(ownership)
            for command in memory.unanswered():
                context = _Context(self, ownership, command.operation_id)
                await context.emit(EventKind.ACCEPTED, "accepted", **accepted_data(command))
            unfinished = memory.unfinished()
            if unfinished is not None:
                await self._run_one(ownership, unfinished)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TIDY_S if memory.left_behind() else None):
                    await memory.arrived.wait()

    async def _tidy(self, ownership: Ownership) -> None:
        """Remove throttles that ended operations left behind, as far as brokers are up for it."""
        for command in self.memory.left_behind():
            try:
                await self._run_of(ownership, command).remove_throttle()
            except KafkaPortError as error:
                self._say(f"{command.operation_id}: its throttle is still there: {error}")

    async def _run_one(self, ownership: Ownership, command: ReassignCommand) -> None:
        """Run to the end; a cluster that does not answer is tried again until it does."""
        context = _Context(self, ownership, command.operation_id)
        self._say(f"{command.operation_id}: {len(command.changes)} partitions")
        try:
            await self._run_of(ownership, command).run()
        except UnreachableError as error:
            self._say(f"{command.operation_id}: {error}; trying again")
            await asyncio.sleep(RETRY_S)
            return
        except FencedError:
            raise
        except (KafkaPortError, OperationError) as error:
            await self._fail(ownership, command, error)
        self._say(f"{command.operation_id}: {context.state().message}")

    async def _fail(
        self, ownership: Ownership, command: ReassignCommand, error: KafkaPortError | OperationError
    ) -> None:
        context = _Context(self, ownership, command.operation_id)
        await context.emit(EventKind.NOTE, str(error))
        try:
            await self._run_of(ownership, command).remove_throttle()
        except KafkaPortError as again:
            await context.emit(EventKind.NOTE, f"the throttle could not be removed: {again}")
        await context.emit(EventKind.FINISHED, str(error), outcome=Outcome.FAILED.value)

    def _run_of(self, ownership: Ownership, command: ReassignCommand) -> ReassignRun:
        if command.bootstrap not in self._clusters:
            self._clusters[command.bootstrap] = KafkaAdmin.to(command.bootstrap)
        context = _Context(self, ownership, command.operation_id)
        return ReassignRun(self._clusters[command.bootstrap], command, context)

    async def emit(self, event: Event) -> None:
        """Write an event and fold it into the memory."""
        await self._bus.publish_event(event)
        self.memory.apply(event)


class _Context:
    """The executor as one run sees it."""

    def __init__(self, executor: Executor, ownership: Ownership, operation_id: str) -> None:
        self._executor = executor
        self._ownership = ownership
        self._operation_id = operation_id

    def state(self) -> OperationState:
        return self._executor.memory.state_of(self._operation_id)

    def flags(self) -> ControlFlags:
        return self._executor.memory.flags_of(self._operation_id)

    async def hold(self) -> None:
        await self._ownership.hold()

    async def emit(self, kind: EventKind, message: str = "", **data: Any) -> None:
        event = Event(
            operation_id=self._operation_id,
            kind=kind,
            at_ms=int(time.time() * 1000),
            message=message,
            data=data,
        )
        await self._executor.emit(event)


def _apply_control(flags: ControlFlags, command: ControlCommand) -> None:
    match command.action:
        case ControlAction.PAUSE:
            flags.is_paused = True
        case ControlAction.RESUME:
            flags.is_paused = False
        case ControlAction.CANCEL:
            flags.is_cancelled = True
        case ControlAction.THROTTLE:
            flags.throttle = command.throttle
    flags.changed.set()


def say_on_stderr(line: str) -> None:
    """One line for people."""
    sys.stderr.write(f"executor: {line}\n")
    sys.stderr.flush()


def run(settings: ExecutorSettings, say: Say = say_on_stderr) -> int:
    """The entry of `partiscope executor`: until SIGTERM or SIGINT, then exit status 0."""
    return asyncio.run(_run_until_signalled(settings, say))


async def _run_until_signalled(settings: ExecutorSettings, say: Say) -> int:
    loop = asyncio.get_running_loop()
    serving = asyncio.create_task(Executor(settings, say).run())
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, serving.cancel)
    await asyncio.gather(serving, return_exceptions=True)
    if serving.cancelled():
        return 0
    say(f"stopped: {serving.exception()!r}")
    return 1
