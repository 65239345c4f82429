"""MovesReader: how screens and command line watch reassignments. OperationsClient: how the session
asks for them.

Asking needs only the bus; the executor does the work, so a client may go away at any time.
"""

from __future__ import annotations

import asyncio
import builtins
import getpass
import secrets
import socket
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Final, Self

from control.access.login import acting_who
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.connection.wire import answers_soon
from control.kafka.errors import KafkaPortError, UnreachableError
from control.kafka.records.reader import RecordReader, Start, StartKind
from control.model.units import byte_rate_text, duration_text
from control.model.watched_cluster import WatchedCluster
from control.move.change_codec import PlanTooLargeError
from control.move.check import Verdict
from control.move.commands import (
    ACT_AHEAD_MAX_MS,
    NO_IDS,
    Command,
    ControlAction,
    ControlCommand,
    ReassignCommand,
    TopicIds,
)
from control.move.conflicts import check_others
from control.move.events import Event, EventKind
from control.move.rollback_plan import SETTLED_WITHIN_S, RollbackPlan
from control.move.state import OperationState, apply_event
from control.move.throttle import (
    RATE_MIN_BYTES_PER_S,
    THROTTLE_AUTO,
    THROTTLE_NONE,
    Throttle,
    why_too_long,
)
from control.move.window import MoveWindow
from control.move.yields import NEVER_YIELDS, YieldRules
from control.operations.bus.ledger import Ledger, Slices
from control.operations.bus.topics import EVENTS, Bus, Outage, is_outage, operation_of
from control.operations.checks import fixed_rate
from control.operations.errors import (
    ActRefusedError,
    ConflictError,
    ElsewhereError,
    InvalidInputError,
)
from planner.proposal import Proposal
from planner.waves import USUAL_WAVES, WaveRules, plan_waves

UNPROVEN: Final = "not proven"
WHY_UNPROVEN: Final = (
    "no known installation has signed its records, so nothing of it is rolled back; plan it by "
    "hand, or add the key file of its installation to proof.further_key_files"
)
WATCH_OUTAGE_S: Final = 60.0
ANSWER_S: Final = 2.0
"""So long an act waits for the executor's answer, which asks the bus twice a second."""
ANSWER_POLL_S: Final = 0.1
_SHOWS: Final = {
    ControlAction.PAUSE: {EventKind.PAUSED},
    ControlAction.RESUME: {EventKind.RESUMED},
    ControlAction.CANCEL: {EventKind.CANCELLING},
    ControlAction.CANCEL_AFTER_WAVE: {EventKind.CANCELLING},
    ControlAction.THROTTLE: {EventKind.THROTTLE_RECORDED, EventKind.THROTTLE_REMOVED},
}
"""Events by which an act shows."""


def whoami() -> str:
    """user@host, for the journal."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


class WatchLostError(UnreachableError):
    """The bus no longer tells how an operation gets on."""

    def __init__(self, operation_id: str, error: KafkaPortError) -> None:
        patience = duration_text(WATCH_OUTAGE_S * 1000)
        super().__init__(
            f"the watch of {operation_id} has ended",
            reason=f"the operations bus has not answered for {patience} ({error}). The move is not "
            "cancelled: partitions in flight arrive, and the executor goes on with the others "
            "once the bus answers",
            next_step=f"start the brokers of the bus, then `partiscope moves watch {operation_id}`",
        )


class MovesReader:
    """Reads and watches the reassignments of one bus. Use as an async context manager."""

    def __init__(
        self,
        bus: KafkaSettings | str | None,
        *,
        creates_topics: bool = True,
        of: WatchedCluster | None = None,
    ) -> None:
        """``bus`` None: everything is refused, since none is known. ``creates_topics``: those of
        the bus, where they lack; who only looks leaves it so. ``of``: the one cluster whose
        operations are listed and touched, of all that share the bus; None: all of them."""
        self._bus = Bus(bus, whose="" if of is None else of.bootstrap or "")
        self._ledger = Ledger(self._bus)
        self._has_topics = not creates_topics
        self._of = of

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def bus(self) -> Bus:
        """The bus itself, for other topics on it."""
        return self._bus

    async def close(self) -> None:
        """Close the connections."""
        await self._bus.close()

    @property
    def unreadable(self) -> str:
        """Count and places of records that could not be read so far; empty: all could."""
        return self._bus.unreadable.words

    async def list(self, *, is_whole: bool = False) -> builtins.list[OperationState]:
        """All operations, the newest first, those not yet answered included. What has ended comes
        without its changes, unless ``is_whole``. The bus is read once, then only what is new."""
        states = await self._ledger.states(is_whole=is_whole)
        ours = (state for state in states if _is_of(state, self._of))
        return sorted(ours, key=lambda s: s.submitted_ms, reverse=True)

    async def get(self, operation_id: str) -> OperationState:
        """One operation.

        :raises InvalidInputError: there is none with this id.
        :raises ElsewhereError: it is of a cluster that this client leaves alone.
        """
        state = await self._ledger.get(operation_id)
        if state is None:
            raise InvalidInputError(
                {"id": f"no operation {operation_id}; `partiscope moves` lists all"}
            )
        if not _is_of(state, self._of):
            raise ElsewhereError(operation_id, state.bootstrap)
        return state

    async def watch(
        self, operation_id: str, *, outage: Outage | None = None
    ) -> AsyncIterator[OperationState]:
        """The state after each event, from its first to its end; bears with an outage of the
        bus of up to WATCH_OUTAGE_S.

        :raises WatchLostError: it lasts longer.
        """
        state = OperationState(operation_id=operation_id)
        outage = outage or Outage(WATCH_OUTAGE_S)
        try:
            async for event in self.events(outage, of=operation_id):
                if event.kind is not EventKind.JOURNAL:
                    state = apply_event(state, event)
                    yield state
                    if state.is_finished:
                        return
        except KafkaPortError as error:
            if not is_outage(error):
                raise
            raise WatchLostError(operation_id, error) from error

    async def events(
        self, outage: Outage | None = None, *, of: str | None = None
    ) -> AsyncIterator[Event]:
        """Every event of every operation, or of one, from the first on, for ever, as they come.

        :raises KafkaPortError: the bus does not answer, and has not for as long as `outage` bears.
        """
        outage, slices = outage or Outage(0.0), Slices()
        start = Start(kind=StartKind.EARLIEST)
        while True:
            try:
                await self._ensure_topics()
                async with RecordReader(self._bus.settings) as reader:
                    positions = await reader.positions([EVENTS], start)
                    outage.is_over()
                    async for record in reader.follow(positions):
                        start = Start(kind=StartKind.OFFSET, value=record.offset + 1)
                        await slices.maybe_pause()
                        if of is not None and operation_of(record) != of:
                            continue
                        if (event := self._bus.unreadable.event(record)) is not None:
                            yield event
            except KafkaPortError as error:
                await outage.wait_after(error)

    async def _ensure_topics(self) -> None:
        if not self._has_topics:
            await self._bus.ensure_topics()
            self._has_topics = True


class OperationsClient(MovesReader):
    """Asks the executor of one bus for reassignments; ``OperationSession`` judges what may be."""

    def __init__(
        self,
        bus: KafkaSettings | str | None,
        *,
        who: str | None = None,
        of: WatchedCluster | None = None,
    ) -> None:
        """``who``: for the journal; None: user@host."""
        super().__init__(bus, of=of)
        self._who = who or whoami()

    async def require_answer(self) -> None:
        """Ask whether the bus answers.

        :raises KafkaPortError: it does not, or none is known; told within seconds.
        """
        settings = self._bus.settings
        async with KafkaAdmin.to(settings) as admin, answers_soon(settings):
            await admin.describe_cluster()

    async def submit_reassign(
        self,
        proposal: Proposal,
        *,
        bootstrap: str,
        cluster_id: str = "",
        throttle: Throttle = THROTTLE_AUTO,
        waves: WaveRules = USUAL_WAVES,
        yields: YieldRules = NEVER_YIELDS,
        window: MoveWindow | None = None,
        reason: str = "",
        is_strict: bool = True,
        rollback_of: str | None = None,
        topic_ids: TopicIds = NO_IDS,
        confirmed: str = "",
    ) -> str:
        """Ask for a reassignment of the cluster at `bootstrap`, and of no other that has this
        address by then; answers the operation id. ``confirmed`` is the word that was typed.

        :raises InvalidInputError: the plan is too large for one operation.
        """
        numbers_change = any(len(c.before) != len(c.after) for c in proposal.changes)
        command = ReassignCommand(
            operation_id=f"mv-{secrets.token_hex(4)}",
            bootstrap=bootstrap,
            cluster_id=cluster_id,
            changes=proposal.changes,
            throttle=throttle,
            waves=waves,
            yields=yields,
            window=window,
            allows_replication_factor_change=numbers_change,
            is_strict=is_strict,
            rollback_of=rollback_of,
            topic_ids=topic_ids,
            who=acting_who(self._who),
            reason=reason,
            submitted_ms=_now_ms(),
            confirmed=confirmed,
        )
        await self._ensure_topics()
        try:
            await self._bus.publish_command(command)
        except PlanTooLargeError as error:
            raise InvalidInputError({"plan": str(error)}) from error
        return command.operation_id

    async def control(
        self,
        operation_id: str,
        action: ControlAction,
        *,
        reason: str = "",
        throttle: Throttle | None = None,
        confirmed: str = "",
    ) -> int:
        """Ask for an act on an operation that runs; ``throttle`` (bytes per second, ``50MiB``, auto
        or none) is that of THROTTLE. Answers when it was asked for, for ``require_taken``.

        :raises InvalidInputError: no such operation, no such rate, or waves too large for any.
        """
        await self.get(operation_id)
        if throttle is not None:
            await self.require_rate(operation_id, throttle)
        earlier, _ = await self._bus.read_commands(of=operation_id)
        now_ms = _now_ms()
        bound_ms = now_ms + ACT_AHEAD_MAX_MS // 2  # as far as two clocks may reasonably differ
        acts = [it.submitted_ms for it in earlier if isinstance(it, ControlCommand)]
        command = ControlCommand(
            operation_id=operation_id,
            action=action,
            throttle=throttle,
            who=acting_who(self._who),
            reason=reason,
            # The executor takes an act only after those that it took; it took none far ahead.
            submitted_ms=max([now_ms, *(at_ms + 1 for at_ms in acts if at_ms < bound_ms)]),
            confirmed=confirmed,
        )
        await self._bus.publish_command(command)
        return command.submitted_ms

    async def require_taken(
        self, operation_id: str, action: ControlAction, asked_ms: int, before: OperationState
    ) -> None:
        """Wait a moment for what the executor says of an act; silence is no refusal.

        :raises ActRefusedError: it does not do it.
        """
        deadline_s = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline_s:
            state = await self.get(operation_id)
            for at_ms, words in state.refused_acts:
                if at_ms == asked_ms and (at_ms, words) not in before.refused_acts:
                    raise ActRefusedError(operation_id, words)
            new = [it for it in state.moments if it not in before.moments]
            if state.is_finished or any(it.kind in _SHOWS[action] for it in new):
                return
            await asyncio.sleep(ANSWER_POLL_S)

    async def require_rate(self, operation_id: str, throttle: Throttle) -> None:
        """:raises InvalidInputError: no such operation or rate, or waves too large for any."""
        rate = fixed_rate(throttle)
        if rate is not None and rate < RATE_MIN_BYTES_PER_S:
            least = byte_rate_text(RATE_MIN_BYTES_PER_S)
            raise InvalidInputError({"throttle": f"{rate} B/s is less than {least}: 50MiB"})
        state = await self.get(operation_id)
        _, waves = _asked(operation_id, (await self._bus.read_commands(of=operation_id))[0])
        too_long = why_too_long(plan_waves(state.changes, waves))
        if throttle != THROTTLE_NONE and too_long:
            raise InvalidInputError({"throttle": f"{operation_id}: {too_long}"})

    async def rollback_plan(
        self, operation_id: str, *, spread_s: float | None = None
    ) -> RollbackPlan:
        """The reassignment that would roll an operation back, spread as it was or over `spread_s`.
        Nothing is changed.

        :raises InvalidInputError: no such operation, or it moved nothing.
        :raises ConflictError: another one takes it back already, or moves what it moved.
        """
        state = await self.get(operation_id)
        if state.is_foreign:
            raise InvalidInputError({"id": f"{operation_id} is {UNPROVEN}: {WHY_UNPROVEN}"})
        others = [other for other in await self.list() if other.operation_id != operation_id]
        for other in others:
            if other.rollback_of == operation_id and not other.is_finished:
                raise ConflictError(f"{other.operation_id} rolls {operation_id} back already")
        if not state.may_roll_back:
            raise InvalidInputError(
                {"id": f"{operation_id} moved no partition, so nothing can be rolled back"}
            )
        proposal = Proposal(name=operation_id, changes=state.changes).inverse()
        check = check_others(others, proposal.changes, site=state.site)
        if check.verdict is Verdict.FAIL:
            raise ConflictError(check.reason)
        throttle, waves = _asked(operation_id, (await self._bus.read_commands(of=operation_id))[0])
        if spread_s is not None:
            waves = replace(waves, spread_s=spread_s)
        return RollbackPlan(
            rolled_back=operation_id,
            bootstrap=state.bootstrap,
            cluster_id=state.cluster_id,
            proposal=proposal,
            throttle=throttle,
            waves=waves,
            is_running=not state.is_finished,
            is_settled=_now_ms() - (state.finished_ms or _now_ms()) > SETTLED_WITHIN_S * 1000,
            topic_ids=state.topic_ids,
        )

    async def rollback(self, way: RollbackPlan, *, reason: str = "", confirmed: str = "") -> str:
        """Cancel the operation if it still runs, then submit its rollback. Partitions that others
        have moved since stay. Answers the new operation's id."""
        if way.is_running:
            because = reason or "rolled back"
            await self.control(way.rolled_back, ControlAction.CANCEL, reason=because)
        return await self.submit_reassign(
            way.proposal,
            bootstrap=way.bootstrap,
            cluster_id=way.cluster_id,
            throttle=way.throttle,
            waves=way.waves,
            reason=reason or f"roll back {way.rolled_back}",
            is_strict=False,
            rollback_of=way.rolled_back,
            topic_ids=way.topic_ids,
            confirmed=confirmed,
        )


async def wait_for(client: MovesReader, operation_id: str) -> OperationState:
    """The state of an operation at its end."""
    state = OperationState(operation_id=operation_id)
    async for newer in client.watch(operation_id):
        state = newer
    return state


def _is_of(state: OperationState, cluster: WatchedCluster | None) -> bool:
    return cluster is None or cluster.owns(state.site)


def _asked(operation_id: str, commands: Iterable[Command]) -> tuple[Throttle, WaveRules]:
    """Throttle and waves of an operation: the newest throttle that an operator asked for while it
    ran, else that of its command (which is written again at its end).

    :raises InvalidInputError: there is no such command: its events are not the executor's.
    """
    throttle: Throttle = THROTTLE_AUTO
    changed: Throttle | None = None
    waves: WaveRules | None = None
    for command in commands:
        if command.operation_id != operation_id:
            continue
        if isinstance(command, ReassignCommand):
            throttle, waves = command.throttle, command.waves
        elif command.throttle is not None:
            changed = command.throttle
    if waves is None:
        raise InvalidInputError({"id": f"nobody has asked for {operation_id} on this bus"})
    return throttle if changed is None else changed, waves


def _now_ms() -> int:
    return int(time.time() * 1000)
