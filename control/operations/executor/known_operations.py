"""The executor's knowledge: commands, states by their events, requests of operators."""

import asyncio
from dataclasses import replace

from control.model.watched_cluster import Site
from control.move.commands import Command, ControlAction, ControlCommand, ReassignCommand
from control.move.events import Event, EventKind
from control.move.state import OperationState, apply_event, misses_of
from control.move.throttle import THROTTLE_AUTO, ThrottleRecord
from control.operations.executor.run_context import ControlFlags
from control.operations.reassignment.calibration import Calibration, calibration_of


class Memory:
    """Commands by id, their states, and requests of operators, as the bus tells them."""

    def __init__(self) -> None:
        self.states: dict[str, OperationState] = {}
        self.commands: dict[str, ReassignCommand] = {}
        self.arrived = asyncio.Event()
        """Set, and replaced by another, when a command has come or was accepted: take it before
        looking."""
        self.refusals: dict[str, str] = {}
        """Why an operation is not carried out, by those that were judged; empty: it is."""
        self._flags: dict[str, ControlFlags] = {}
        self._acts: dict[str, ControlCommand] = {}
        """The newest act of operators on each operation."""

    def take(self, command: Command) -> None:
        """One more command, known or new."""
        if isinstance(command, ReassignCommand):
            self.commands.setdefault(command.operation_id, command)
        else:
            self._acts[command.operation_id] = command
            _apply_control(self.flags_of(command.operation_id), command)
        self._wake()

    def is_known(self, command: ControlCommand) -> bool:
        """Whether it is the newest act on its operation, once more."""
        return command == self._acts.get(command.operation_id)

    def is_late(self, command: ControlCommand) -> bool:
        """Whether an act that was taken is as new or newer: this one was overtaken, or is a copy
        that somebody wrote once more."""
        return command.submitted_ms < self.next_act_ms(command.operation_id)

    def next_act_ms(self, operation_id: str) -> int:
        """The earliest time that an act may carry to count now."""
        newest = self._acts.get(operation_id)
        return 0 if newest is None else newest.submitted_ms + 1

    def apply(self, event: Event) -> None:
        """One more event."""
        state = self.state_of(event.operation_id)
        self.states[event.operation_id] = apply_event(state, event)
        if event.kind is EventKind.ACCEPTED:
            self._wake()

    def _wake(self) -> None:
        arrived, self.arrived = self.arrived, asyncio.Event()
        arrived.set()

    def state_of(self, operation_id: str) -> OperationState:
        """The state as of the last event."""
        return self.states.get(operation_id, OperationState(operation_id=operation_id))

    def flags_of(self, operation_id: str) -> ControlFlags:
        """Requests of operators about one operation so far."""
        return self._flags.setdefault(operation_id, ControlFlags())

    def busy_clusters(self) -> set[Site]:
        """The clusters where something is left to do."""
        sites = {command.site for command in self.commands.values()}
        return {at for at in sites if self.unfinished(at) or self.left_behind(at)}

    def unfinished(self, cluster: Site) -> list[ReassignCommand]:
        """Accepted operations on a cluster that are not finished, the oldest first."""
        return [
            command
            for command in self._of(cluster)
            if command.operation_id in self.states
            and not self.state_of(command.operation_id).is_finished
        ]

    def unjudged(self) -> list[ReassignCommand]:
        """Commands about which something is left to do, and which nobody has judged."""
        return [
            command
            for command in self.commands.values()
            if command.operation_id not in self.refusals and self._is_open(command)
        ]

    def left_behind(self, cluster: Site) -> list[ReassignCommand]:
        """Operations on a cluster that ended, or wait for their window, before their throttle was
        gone from every broker."""
        return [c for c in self._of(cluster) if _has_left(self.state_of(c.operation_id))]

    def without_plan(self, operation_id: str) -> ReassignCommand | None:
        """The command without its plan, once its operation has ended and its throttle is gone.
        None: it stays as it is."""
        command, state = self.commands.get(operation_id), self.state_of(operation_id)
        has_ended = state.is_finished and state.throttle is None
        if command is None or not command.changes or not has_ended:
            return None
        return replace(command, changes=())

    def calibration(self, command: ReassignCommand) -> Calibration:
        """Calibration of an operation's intervals by the moves that ended on its cluster."""
        ended = misses_of(self.states.values(), command.site)
        return calibration_of(ended, is_adaptive=command.throttle == THROTTLE_AUTO)

    def _of(self, cluster: Site) -> list[ReassignCommand]:
        refusals = self.refusals
        ours = (command for command in self.commands.values() if command.site == cluster)
        return [command for command in ours if not refusals.get(command.operation_id)]

    def _is_open(self, command: ReassignCommand) -> bool:
        state = self.state_of(command.operation_id)
        return not state.is_finished or state.throttle is not None


def _has_left(state: OperationState) -> bool:
    if state.throttle is None:
        return False
    is_rest = ThrottleRecord.parse(state.throttle).is_left_behind
    return state.is_finished or (state.is_outside_window and is_rest)


def _apply_control(flags: ControlFlags, command: ControlCommand) -> None:
    match command.action:
        case ControlAction.PAUSE:
            flags.is_paused = True
        case ControlAction.RESUME:
            flags.is_paused, flags.goes_on = False, True
        case ControlAction.CANCEL:
            flags.is_cancelled = True
        case ControlAction.CANCEL_AFTER_WAVE:
            flags.is_last_wave = True
        case ControlAction.THROTTLE:
            flags.throttle = command.throttle
    flags.changed.set()
