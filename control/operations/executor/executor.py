"""The executor process: takes commands from the bus and runs them, one at a time on each cluster.

Its memory is the bus: commands in one topic, events in another. Killed at any point, the next
executor folds the events, finds what is unfinished, and goes on. Throttles that finished
operations left on a broker that was down are removed before anything else.
See control.operations.executor.ownership for the fencing.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.connections import settings_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError, RefusedError, UnreachableError
from control.model.units import counted
from control.model.watched_cluster import Site, WatchedCluster
from control.move.commands import (
    Command,
    ControlAction,
    ControlCommand,
    ReassignCommand,
)
from control.move.events import Event, EventKind, Outcome
from control.move.journal_lines import EXECUTOR
from control.move.results import pack_fates
from control.move.state import OperationState, accepted_data
from control.move.throttle import ThrottleRecord, brokers_between
from control.move.yields import YieldMode
from control.operations.bus.topics import Bus, BusUnreachableError
from control.operations.errors import FencedError, OperationError
from control.operations.executor.admission import Admission
from control.operations.executor.cancellation import give_up
from control.operations.executor.cluster_outage import ANSWERED, ClusterOutage
from control.operations.executor.known_operations import Memory
from control.operations.executor.ownership import Ownership
from control.operations.executor.run import ReassignRun
from control.operations.executor.run_context import ControlFlags, tell_once
from control.operations.executor.throttles.throttle_of_move import MoveThrottle
from control.operations.executor.window_watch import WindowWatch
from control.operations.executor.yielding.consumer_probe import ConsumerProbe

RETRY_S: Final = 2.0
LOOK_AGAIN_S: Final = 1.0
"""How often brokers that were down are looked for, while they have a throttle of ours."""
REMOVE_AGAIN_S: Final = 30.0
"""The same of a throttle that the cluster refused to remove."""
STRANGERS_TOLD_MAX: Final = 20
"""Answers to acts without proof, for each operation."""
OVERTAKEN: Final = (
    "a later act on this move was taken already, so this one was overtaken or copied; look at the "
    "move, and ask again"
)
AWAY_S: Final = 5.0
"""The same while the whole cluster does not answer."""
OWNER_WAIT_S: Final = 3.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """`bus` is the bundled cluster. The cluster to change is named in each command."""

    bus: KafkaSettings
    cluster_of: Callable[[Site], WatchedCluster] = lambda at: WatchedCluster(bootstrap=at.bootstrap)
    """The configured cluster that a command names; raises NotConfiguredError. One that the settings
    only read is left alone, whoever asks on the bus."""
    requires_proof: bool = True
    """Whether only known installations are obeyed (``control.operations.bus.proof``)."""


class Executor:
    """Runs until cancelled."""

    def __init__(self, settings: ExecutorSettings, say: Say) -> None:
        self._settings = settings
        self._say = say
        self._bus = Bus(settings.bus)
        self.memory = Memory()
        self._admission = Admission(settings.cluster_of, requires_proof=settings.requires_proof)
        self._clusters: dict[Site, KafkaAdmin] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._remove_after_s: dict[str, float] = {}
        self._told: Counter[str] = Counter()

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
        async with Ownership(self._settings.bus, self._bus.unreadable) as ownership:
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
        if self._bus.unreadable.words:
            self._say(self._bus.unreadable.words)
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
        self.memory.states = await self._bus.read_states()
        for command in commands:
            await self._take(command)
        newest = {it.operation_id: it for it in commands if isinstance(it, ReassignCommand)}
        for name in (name for name, command in newest.items() if command.changes):
            await self._maybe_drop_plan(name)
        return next_offset

    async def _listen(self, ownership: Ownership) -> None:
        while True:
            for command in await ownership.next_commands():
                words = await self._take(command)
                if words and isinstance(command, ControlCommand):
                    context = _Context(self, ownership, command.operation_id)
                    await self._tell_refused(context, command, words)
            if not ownership.is_owner:
                raise FencedError("the executors' group is rebalancing")

    async def _take(self, command: Command) -> str:
        """Remember a command; an act that is not admitted is left out, and said. Why; empty: it
        is."""
        name, memory = command.operation_id, self.memory
        if not isinstance(command, ControlCommand):
            memory.take(command)
            return ""
        if memory.is_known(command) or memory.state_of(name).is_finished:
            return ""
        of = memory.commands.get(name)
        words = await self._admission.control_refusal(command, of) or memory.refusals.get(name, "")
        words = words or (OVERTAKEN if memory.is_late(command) else "")
        if words:
            self._say(f"{name}: {command.action.value} is refused: {words}")
        else:
            memory.take(command)
        return words

    async def _tell_refused(self, context: _Context, command: ControlCommand, words: str) -> None:
        """Tell who asked, by the operation's events; of one that nobody has accepted there are
        none. Strangers may ask without end, and are answered so often."""
        name = command.operation_id
        self._told[name] += command.is_foreign
        if name not in self.memory.states or self._told[name] > STRANGERS_TOLD_MAX:
            return
        told = {"refused_act_ms": command.submitted_ms}
        await context.emit(EventKind.NOTE, f"{command.action.value} is refused: {words}", **told)

    async def _judge(self, ownership: Ownership, command: ReassignCommand) -> None:
        """Refuse what the settings do not admit; of what has begun nothing more is done then."""
        name, memory = command.operation_id, self.memory
        words = await self._admission.refusal(command, memory.states.get(name))
        memory.refusals[name] = words
        context = _Context(self, ownership, name)
        if name not in memory.states:
            await context.emit(EventKind.ACCEPTED, "accepted", **accepted_data(command))
        if words and not memory.state_of(name).is_started:
            await context.emit(EventKind.REFUSED, f"refused: {words}")
        elif words:
            self._say(f"{name} stays as it is: {words}")
            await tell_once(context, f"stays as it is: {words}")

    async def _work(self, ownership: Ownership) -> None:
        """A lane for each cluster that has something to do: none waits for another's."""
        memory, lanes = self.memory, dict[Site, asyncio.Task[None]]()
        try:
            while True:
                arrived = memory.arrived
                for command in memory.unjudged():
                    await self._judge(ownership, command)
                for cluster in memory.busy_clusters() - lanes.keys():
                    lanes[cluster] = asyncio.create_task(self._lane(ownership, cluster))
                await _first_of(arrived, lanes.values())
                for cluster in [name for name, lane in lanes.items() if lane.done()]:
                    lanes.pop(cluster).result()
        finally:
            for lane in lanes.values():
                lane.cancel()
            await asyncio.gather(*lanes.values(), return_exceptions=True)

    async def _lane(self, ownership: Ownership, cluster: Site) -> None:
        """One cluster's operations, one at a time, until nothing is left to do there."""
        memory, outage = self.memory, ClusterOutage()
        while cluster in memory.busy_clusters():
            arrived, waiting = memory.arrived, memory.unfinished(cluster)
            command, again_s = await self._next_due(ownership, waiting), LOOK_AGAIN_S
            if command is None and not memory.left_behind(cluster):
                await _first_of(arrived, (), timeout_s=LOOK_AGAIN_S)
                continue
            try:
                async with self._turn(cluster):
                    at_once = command is not None
                    await self.remove_left_throttles(ownership, cluster, at_once=at_once)
                    if command is not None:
                        await self._run_one(ownership, command, outage)
                await outage.end()
            except BusUnreachableError:
                raise  # What it has is known only when all is read anew.
            except UnreachableError as error:
                self._say(f"{cluster.bootstrap}: {error}; trying again")
                contexts = [_Context(self, ownership, c.operation_id) for c in waiting]
                await outage.bear(contexts, error)
                again_s = AWAY_S
            except KafkaPortError as error:
                self._say(f"{cluster.bootstrap}: {error}")
                if command is not None:
                    await self._fail(ownership, command, error)
            if command is None:
                await _first_of(arrived, (), timeout_s=again_s)

    async def _next_due(
        self, ownership: Ownership, waiting: Collection[ReassignCommand]
    ) -> ReassignCommand | None:
        """The oldest that need not wait for its window; each that must says so."""
        due = list[ReassignCommand]()
        for command in waiting:
            context = _Context(self, ownership, command.operation_id)
            window = WindowWatch(command.window, context)
            if window.holds:
                await window.tell()
            else:
                due.append(command)
        return due[0] if due else None

    @contextlib.asynccontextmanager
    async def _turn(self, cluster: Site) -> AsyncIterator[None]:
        """One at a time also where a cluster is known by several addresses."""
        described = await self._admin_of(cluster).describe_cluster()
        async with self._turns.setdefault(described.cluster_id, asyncio.Lock()):
            yield

    async def remove_left_throttles(
        self,
        ownership: Ownership,
        cluster: Site,
        *,
        except_on: Collection[int] = (),
        at_once: bool = False,
    ) -> None:
        """Remove throttles that ended operations left behind, as far as brokers are up for it; not
        on those of a running operation. `at_once`: also what was refused just now."""
        for command in self.memory.left_behind(cluster):
            name = command.operation_id
            if not at_once and time.monotonic() < self._remove_after_s.get(name, 0.0):
                continue
            try:
                await self._throttle_of(ownership, command).remove(except_on=except_on)
            except KafkaPortError as error:
                if isinstance(error, RefusedError):
                    self._remove_after_s[name] = time.monotonic() + REMOVE_AGAIN_S
                self._say(f"{name}: its throttle is still there: {error}")

    async def _run_one(
        self, ownership: Ownership, command: ReassignCommand, outage: ClusterOutage
    ) -> None:
        """Run to the end; the outage is over with the first that shows an answer.

        :raises UnreachableError: the cluster does not answer; to be run again.
        :raises FencedError: another executor owns the operations.
        """
        self._say(f"{command.operation_id}: {counted(len(command.changes), 'partition')}")
        try:
            await self._run_of(ownership, command, outage).run()
        except (UnreachableError, FencedError):
            raise
        except (KafkaPortError, OperationError) as error:
            await self._fail(ownership, command, error)
        self._say(f"{command.operation_id}: {self.memory.state_of(command.operation_id).message}")

    async def _fail(
        self, ownership: Ownership, command: ReassignCommand, error: KafkaPortError | OperationError
    ) -> None:
        context = _Context(self, ownership, command.operation_id)
        await context.emit(EventKind.NOTE, str(error))
        given_up = await give_up(self._admin_of(command.site), command, context)
        try:
            await self._throttle_of(ownership, command).remove()
        except KafkaPortError as again:
            await context.emit(EventKind.NOTE, f"the throttle could not be removed: {again}")
        message = f"{error}; {given_up.words}" if given_up.words else str(error)
        told = {"outcome": Outcome.FAILED.value, "fates": pack_fates(given_up.fates)}
        await context.emit(EventKind.FINISHED, message, **told)

    def _run_of(
        self, ownership: Ownership, command: ReassignCommand, outage: ClusterOutage
    ) -> ReassignRun:
        context = _Context(self, ownership, command.operation_id, outage)
        calibration = self.memory.calibration(command)
        admin, consumers = self._admin_of(command.site), None
        if command.yields.mode is not YieldMode.NO:
            keys = [change.key for change in command.changes]
            consumers = ConsumerProbe(admin.groups, admin.offsets, keys, command.yields)
        return ReassignRun(admin, command, context, calibration, consumers)

    def _throttle_of(self, ownership: Ownership, command: ReassignCommand) -> MoveThrottle:
        context = _Context(self, ownership, command.operation_id)
        return MoveThrottle(self._admin_of(command.site), command, context)

    def _admin_of(self, cluster: Site) -> KafkaAdmin:
        """Admin of a cluster; it refuses another cluster that has the address by now."""
        if cluster not in self._clusters:
            at = self._admission.reached(cluster)
            where = settings_of(at.bootstrap, cluster_id=at.cluster_id)
            self._clusters[cluster] = KafkaAdmin.to(where)
        return self._clusters[cluster]

    @property
    def bus(self) -> Bus:
        """Where commands and events are."""
        return self._bus

    async def emit(self, event: Event) -> None:
        """Write an event and fold it into the memory."""
        await self._bus.publish_event(event)
        self.memory.apply(event)
        await self._maybe_drop_plan(event.operation_id)

    async def _maybe_drop_plan(self, operation_id: str) -> None:
        """Writes a command once more without its plan when its operation has ended: events have
        the plan as well, and compaction then drops it from the commands."""
        slim = self.memory.without_plan(operation_id)
        if slim is not None:
            self.memory.commands[operation_id] = slim
            await self._bus.publish_command(slim)


class _Context:
    """The executor as one run sees it."""

    def __init__(
        self,
        executor: Executor,
        ownership: Ownership,
        operation_id: str,
        outage: ClusterOutage | None = None,
    ) -> None:
        self._executor = executor
        self._ownership = ownership
        self._operation_id = operation_id
        self._outage = outage

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
        if self._outage is not None and kind in ANSWERED:
            await self._outage.end()

    async def pause(self, reason: str) -> None:
        command = ControlCommand(
            operation_id=self._operation_id,
            action=ControlAction.PAUSE,
            who=EXECUTOR,
            reason=reason,
            submitted_ms=max(
                int(time.time() * 1000), self._executor.memory.next_act_ms(self._operation_id)
            ),
        )
        await self._executor.bus.publish_command(command)
        self._executor.memory.take(command)

    async def remove_left_throttles(self, *, also_on: Collection[int] = ()) -> None:
        """Not on brokers of this operation: it has set its own there, or taken what was left there
        for somebody else's."""
        state = self.state()
        own = () if state.throttle is None else ThrottleRecord.parse(state.throttle).brokers
        except_on = {*own, *brokers_between(state.changes)}.difference(also_on)
        await self._executor.remove_left_throttles(
            self._ownership,
            state.site,
            except_on=except_on,
            at_once=bool(also_on),
        )


async def _first_of(
    arrived: asyncio.Event,
    tasks: Collection[asyncio.Task[None]],
    *,
    timeout_s: float | None = None,
) -> None:
    """Until a command arrived, one of the tasks ended, or the time is over."""
    waiting = asyncio.create_task(arrived.wait())
    try:
        await asyncio.wait(
            (waiting, *tasks), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        waiting.cancel()


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
