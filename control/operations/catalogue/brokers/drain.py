"""Drain a broker: no new replicas, its replicas to others, then stopped and unregistered."""

import asyncio
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final, Self

from control.kafka.acl import Lacking
from control.kafka.admin.reassignments import REASSIGN_RIGHTS
from control.model.units import bytes_text, counted
from control.move.throttle import THROTTLE_AUTO, Throttle
from control.operations import checks
from control.operations.broker_stop_client import OutageRefusedError, retire, why_not_run_by
from control.operations.catalogue.brokers.cordon import Cordon
from control.operations.catalogue.fields import BROKER, REASON
from control.operations.catalogue.forms import Confirmation, FormField, OperationForm
from control.operations.catalogue.moves.reassign import Reassign
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.errors import InvalidInputError, NotDrainedError, StalePreviewError
from control.operations.reassignment.draining import (
    DrainState,
    DrainStep,
    emptying_move,
    replicas_on,
    staying_on,
)
from control.operations.reassignment.facts import cordoned_brokers
from planner.goals import Goal, GoalError, PlanRequest

AGAIN: Final = "then drain it once more: that goes on with the next step"
GONE_ASKED_EVERY_S: Final = 0.2
GONE_ASKED_MAX: Final = 150
"""So often the cluster is asked whether its metadata still has a stopped broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain(Operation):
    """Does the next step of ``control.operations.reassignment.draining``; asked again, the one
    after it. The supervisor stops a bundled broker; any other one is the operator's to stop."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="drain",
        key="W",
        title="Drain a broker",
        help="cordon it, move its replicas away, stop it (bundled brokers), unregister it",
        submit_label="Drain",
        confirmation=Confirmation.PREVIEW,
        fields=(
            BROKER,
            FormField(
                name="throttle",
                label="Throttle",
                default=THROTTLE_AUTO,
                help="auto, none, or a rate such as 50MiB",
                check=checks.throttle,
            ),
            REASON,
        ),
    )
    RIGHTS: ClassVar[Lacking] = REASSIGN_RIGHTS

    broker: int
    throttle: Throttle = THROTTLE_AUTO
    state: DrainState | None = None
    """Of the frozen command."""
    cordon: Cordon | None = None
    """Of the frozen command: what is done first; None: it is cordoned, or cannot be."""
    move: Reassign | None = None
    """Of the frozen command: what empties it; None: it holds nothing."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        broker, throttle = int(fields["broker"]), fields["throttle"] or THROTTLE_AUTO
        return cls(broker=broker, throttle=throttle, reason=fields["reason"])

    @property
    def what(self) -> str:
        """For the journal."""
        return f"drain broker {self.broker}"

    @property
    def step(self) -> DrainStep:
        """The next step, of the frozen command.

        :raises ValueError: it is not previewed.
        """
        if self.state is None:
            raise ValueError("a drain knows its step once it is previewed")
        return self.state.step

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """The next step. There is nothing to change while a reassignment moves its replicas, and
        while the operator has to stop it: the notes then say what to wait for.

        :raises NotDrainedError: some of its replicas have nowhere to go, or cannot move, or the
            controller quorum needs it.
        :raises InvalidInputError: there is no such broker, and no move has emptied one.
        """
        cordon = await self._cordon(context)
        state = await self._read(context, may_receive=cordon is not None)
        command = replace(self, state=state, cordon=cordon)
        match state.step:
            case DrainStep.EMPTY:
                return await command._emptying(context)
            case DrainStep.STOP if context.outages:
                return await command._stopping(context)
            case DrainStep.UNREGISTER:
                words = (
                    f"broker {self.broker} is stopped and holds no replica: it will be unregistered"
                )
                changes = (Change(f"broker {self.broker}", "registered", None, words),)
                return Effect(command=command, changes=changes, facts=state)
            case _:
                return Effect(command=command, changes=(), notes=(_waits_for(state),))

    async def require_fresh(self, context: OperationContext, facts: Hashable) -> None:
        """It is still the next step, and the partitions that move lie where they lay. Replicas
        that came meanwhile have their turn when the drain is asked for again.

        :raises StalePreviewError: something has changed.
        :raises ConflictError: somebody else moves one of its partitions.
        """
        state = await self._read(context, may_receive=self.cordon is not None)
        if state.step is not self.step:
            raise StalePreviewError(self.what, f"its next step is to {state.step} by now")
        if self.move is not None:
            await self.move.require_fresh(context, None)

    async def perform(self, context: OperationContext) -> Done:
        """Do the step; where it is to cordon and to move away, the executor moves."""
        if self.step is DrainStep.UNREGISTER:
            await context.admin.unregister_broker(self.broker)
            return Done(words=f"broker {self.broker} is unregistered: it is drained")
        if self.step is DrainStep.STOP:
            return await self._stop(context)
        if self.cordon is not None:
            await self.cordon.perform(context)
        if self.move is None:
            words = f"broker {self.broker} is empty and receives no new replicas; {AGAIN}"
            return Done(words=words, view="broker", params={"broker": str(self.broker)})
        done = await replace(self.move, reason=self.reason or self.what).perform(context)
        words = f"{done.params['move']} empties broker {self.broker}: wait for it, {AGAIN}"
        return Done(words=words, view=done.view, params=done.params)

    async def _cordon(self, context: OperationContext) -> Cordon | None:
        """The command that cordons it; None where it is cordoned, cannot be, or does not run."""
        try:
            effect = await Cordon(broker=self.broker).preview(context)
        except InvalidInputError:
            return None
        return effect.command if effect.changes else None

    async def _read(self, context: OperationContext, *, may_receive: bool) -> DrainState:
        admin = context.admin
        registered = await admin.registered_brokers()
        alive = await _alive(context)
        voters = await admin.controller_voters()
        partitions = {p.key: p for topic in await admin.topics() for p in topic.partitions}
        states = [it for it in await context.moves.list() if it.site.is_same(context.site)]
        replicas = replicas_on(self.broker, partitions.values())
        there = alive | set(alive if registered is None else registered)
        was_drained = any(self.broker in state.empties for state in states)
        if registered is not None and not (self.broker in there or replicas or was_drained):
            listed = ", ".join(map(str, sorted(there)))
            raise InvalidInputError(
                {"broker": f"no broker {self.broker} is registered; there are {listed}"}
            )
        return DrainState(
            broker=self.broker,
            is_alive=self.broker in alive,
            is_registered=registered is None or self.broker in registered,
            replicas=replicas,
            may_receive=may_receive,
            other_voters=len(voters) - 1 if self.broker in voters else None,
            voters_running=len(alive.intersection(voters) - {self.broker}),
            move=emptying_move(self.broker, states, partitions),
        )

    async def _stopping(self, context: OperationContext) -> Effect[Self]:
        state = self.state
        assert state is not None
        why_not = await why_not_run_by(Path(context.outages), self.broker)
        if why_not:
            return Effect(command=self, changes=(), notes=(f"{_waits_for(state)} ({why_not})",))
        if not state.has_majority_beside:
            raise NotDrainedError(self.broker, _quorum_needs(state), what="stopped")
        change = Change(f"broker {self.broker}", "runs", "stopped, also after the next start")
        return Effect(command=self, changes=(change,), notes=(_empty(state),), facts=state)

    async def _stop(self, context: OperationContext) -> Done:
        try:
            await retire(Path(context.outages), self.broker)
        except OutageRefusedError as error:
            raise NotDrainedError(self.broker, str(error), what="stopped") from error
        for _ in range(GONE_ASKED_MAX):
            if self.broker not in await _alive(context):
                break
            await asyncio.sleep(GONE_ASKED_EVERY_S)
        words = f"broker {self.broker} is stopped, and no start begins it unasked; {AGAIN}"
        return Done(words=words, view="broker", params={"broker": str(self.broker)})

    async def _emptying(self, context: OperationContext) -> Effect[Self]:
        state, cordon = self.state, self.cordon
        assert state is not None
        changes: tuple[Change, ...] = ()
        notes: tuple[str, ...] = ()
        if cordon is not None:
            changes = (Change(f"broker {self.broker}", "open", "cordoned"),)
        elif state.is_alive and self.broker not in await cordoned_brokers(context.admin):
            notes = ("this Kafka cannot cordon (4.3 can): it may still place new topics there",)
        if not state.replicas:
            return Effect(command=self, changes=changes, notes=notes, facts=state)
        request = PlanRequest(goal=Goal.MINIMAL, remove_brokers=(self.broker,))
        try:
            plan = await context.planning.plan(request)
        except GoalError as error:
            raise NotDrainedError(self.broker, str(error)) from error
        least = min((it.proposal for it in plan.alternatives), key=lambda it: it.moved_bytes)
        if staying := staying_on(self.broker, plan.before, least):
            raise NotDrainedError(self.broker, "; ".join((staying, *plan.limits)))
        move = Reassign(proposal=least, throttle=self.throttle)
        effect = await move.preview(context)
        review = effect.review
        assert review is not None
        moved = f"{counted(least.moved_replicas, 'replica')}, {bytes_text(least.moved_bytes)}"
        words = f"{moved} move to other brokers, {review.pace_words}"
        return Effect(
            command=replace(self, move=move),
            changes=(*changes, Change("replicas", state.replicas, 0, words)),
            notes=(*notes, *(f"{it.name}: {it.reason}" for it in effect.doubts)),
            facts=state,
            review=review,
            refusal=effect.refusal,
        )


async def _alive(context: OperationContext) -> set[int]:
    return {broker.id for broker in (await context.admin.describe_cluster()).brokers}


def _waits_for(state: DrainState) -> str:
    match state.step:
        case DrainStep.MOVING:
            return f"{state.move} moves {counted(state.replicas, 'replica')} away: wait, {AGAIN}"
        case DrainStep.STOP:
            return f"{_empty(state)} Stop it, {AGAIN}"
        case _:
            return f"no broker {state.broker} is registered: it is drained"


def _empty(state: DrainState) -> str:
    empty = f"broker {state.broker} is empty: no partition names it, internal topics too"
    votes = "" if state.other_voters is None else _votes(state.other_voters)
    return f"{empty}, so it leads and coordinates nothing.{votes}"


def _votes(others: int) -> str:
    return f" It also votes in the controller quorum: {counted(others, 'voter')} will be left."


def _quorum_needs(state: DrainState) -> str:
    assert state.other_voters is not None
    return (
        f"it is one of {state.other_voters + 1} voters of the controller quorum, and without it "
        f"only {state.voters_running} run: too few to decide anything. It stays cordoned and empty"
    )
