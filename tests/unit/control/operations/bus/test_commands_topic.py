"""The topic of commands: what compaction keeps."""

from dataclasses import replace

from control.move.commands import ControlAction, ControlCommand, ReassignCommand
from control.move.events import Outcome
from control.move.state import OperationState, Phase
from control.operations.bus.topics import _key_of_command
from control.operations.executor.known_operations import Memory
from tests.unit.control.operations.fake_cluster import change, command_of

A = change("a")
REASSIGN = command_of(A)


def control(action: ControlAction, at_ms: int = 0) -> ControlCommand:
    return ControlCommand(operation_id="mv-1", action=action, submitted_ms=at_ms)


def test_no_command_of_an_operation_replaces_its_reassignment() -> None:
    keys = {_key_of_command(control(action)) for action in ControlAction}
    assert _key_of_command(REASSIGN) not in keys
    assert len(keys) == len(ControlAction)


def test_an_old_act_that_is_written_again_replaces_no_newer_one() -> None:
    first, second = (_key_of_command(control(ControlAction.PAUSE, at_ms)) for at_ms in (1, 2))
    assert first != second


def kept(state: OperationState, command: ReassignCommand = REASSIGN) -> ReassignCommand | None:
    memory = Memory()
    memory.take(command)
    memory.states["mv-1"] = state
    return memory.without_plan("mv-1")


def test_a_plan_goes_once_its_operation_has_ended_and_no_throttle_is_left() -> None:
    done = OperationState(operation_id="mv-1", phase=Phase.FINISHED, outcome=Outcome.DONE)
    slim = kept(done)
    assert slim is not None
    assert (slim.changes, slim.waves, slim.throttle) == ((), REASSIGN.waves, REASSIGN.throttle)
    assert kept(done, slim) is None, "it went already"
    assert kept(replace(done, throttle={"rate": 1})) is None
    assert kept(OperationState(operation_id="mv-1", phase=Phase.PAUSED)) is None
