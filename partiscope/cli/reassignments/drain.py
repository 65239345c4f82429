"""``partiscope brokers drain``: step by step until the broker is unregistered."""

import asyncio
import sys
from typing import Annotated

import typer

from control.kafka.errors import UnreachableError
from control.model.command_line import typed
from control.move.throttle import THROTTLE_AUTO
from control.operations import checks
from control.operations.catalogue.brokers.drain import Drain
from control.operations.operation_session import OperationSession
from control.operations.previews import Previewed
from control.operations.reassignment.draining import DrainStep
from control.views.previews import reassignment_document
from partiscope.cli.reassignments.moves import follow
from partiscope.cli.reassignments.previews import show_preview
from partiscope.cli.shared.confirm import require_change, require_typed
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.operations import Reason
from partiscope.cli.shared.options import (
    Bootstrap,
    Bus,
    DryRun,
    Json,
    Yes,
    note,
    target_with,
    write_json,
    write_lines,
)
from partiscope.identity import Target

POLL_S = 2.0
Broker = Annotated[int, typer.Argument(min=0, help="Id of the broker.")]


def drain(
    broker: Broker,
    *,
    throttle: Annotated[
        str, typer.Option(help="auto (adapts), none, or a rate: 50MiB.")
    ] = THROTTLE_AUTO,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    bus: Bus = None,
    as_json: Json = False,
) -> None:
    """Cordon a broker, move its replicas away, stop it, unregister it.

    The supervisor stops a bundled broker for good; for any other the command waits until you do.

    Safe to interrupt at any step: run it again, and it goes on where the cluster is. To undo it,
    uncordon the broker and roll the move back.
    """
    problem = checks.throttle(throttle)
    if problem is not None:
        raise CommandError(f"--throttle {throttle!r}: {problem}", Exit.WRONG_USE)
    if not dry_run:
        require_change(bootstrap)
    target = target_with(bootstrap=bootstrap, bus=bus)
    asked = Drain(broker=broker, throttle=throttle, reason=reason)
    steps = _Steps(target, asked, is_confirmed=yes, as_json=as_json)
    if dry_run:
        steps.show(asyncio.run(steps.preview()))
        return
    try:
        while steps.next():
            pass
    except UnreachableError as error:
        error.next_step = typed(
            "start the brokers that do not answer, then run "
            f"`partiscope brokers drain {broker}` again: it goes on where it is"
        )
        raise


class _Steps:
    """One drain, as this command does it."""

    def __init__(self, target: Target, asked: Drain, *, is_confirmed: bool, as_json: bool) -> None:
        self._target = target
        self._asked = asked
        self._is_confirmed = is_confirmed
        self._as_json = as_json
        self._said = ""

    async def preview(self) -> Previewed:
        """The next step."""
        async with OperationSession(self._target.watched, bus=self._target.bus) as session:
            return await session.preview(self._asked)

    def show(self, previewed: Previewed) -> None:
        """Print the next step and its plan."""
        effect = previewed.effect
        command = effect.command
        assert isinstance(command, Drain)
        if self._as_json:
            review = {} if effect.review is None else {"plan": reassignment_document(effect.review)}
            write_json({
                "broker": command.broker,
                "step": command.step.value,
                "changes": {it.name: {"now": it.now, "then": it.then} for it in effect.changes},
                "notes": list(effect.notes),
                **review,
            })  # fmt: skip
            return
        if effect.review is not None:
            show_preview(effect.review)
        write_lines(*effect.lines)
        sys.stdout.flush()

    def next(self) -> bool:
        """Do the next step, or wait for it; False once the broker is unregistered.

        Raises:
            CommandError: status 3; the step may not be done, or was not confirmed.
            typer.Exit: the reassignment did not end well.
        """
        previewed = asyncio.run(self.preview())
        effect = previewed.effect
        command = effect.command
        assert isinstance(command, Drain)
        if effect.refusal is not None:
            self.show(previewed)
            raise CommandError(effect.refusal.reason, Exit.REFUSED)
        if effect.changes:
            self._perform(previewed)
            return command.step is not DrainStep.UNREGISTER
        if command.state is not None and command.state.move:
            self._follow(command.state.move)
            return True
        self._say(*effect.notes)
        if command.step is DrainStep.STOP:
            asyncio.run(asyncio.sleep(POLL_S))
        return command.step is not DrainStep.DONE

    def _perform(self, previewed: Previewed) -> None:
        if not self._is_confirmed:
            self.show(previewed)
            require_typed("yes", "this drains the broker", is_confirmed=False)
            self._is_confirmed = True
        self._say(asyncio.run(self._performed(previewed)))

    async def _performed(self, previewed: Previewed) -> str:
        async with OperationSession(self._target.watched, bus=self._target.bus) as session:
            return (await session.perform(previewed, typed=previewed.word)).words

    def _follow(self, move: str) -> None:
        status = asyncio.run(self._followed(move))
        if status != Exit.DONE:
            raise typer.Exit(status)

    async def _followed(self, move: str) -> int:
        async with OperationSession(self._target.watched, bus=self._target.bus) as session:
            return await follow(session.moves, move, as_json=self._as_json)

    def _say(self, *lines: str) -> None:
        """Each once, however often the same step comes."""
        words = "; ".join(lines)
        if words != self._said:
            note(words)
        self._said = words
