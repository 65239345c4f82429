"""The topic of commands: what compaction keeps, and an older release's that is taken over."""

from typing import Any

from control.move.commands import Command, ControlAction, ControlCommand
from control.move.events import Outcome
from control.move.state import OperationState, Phase
from control.operations.bus.commands_topic import take_over
from control.operations.bus.topics import _key_of_command
from tests.unit.control.operations.fake_cluster import change, command_of

A = change("a")
REASSIGN = command_of(A)


def control(action: ControlAction, at_ms: int = 0) -> ControlCommand:
    return ControlCommand(operation_id="mv-1", action=action, submitted_ms=at_ms)


class FakeBus:
    def __init__(self, *, is_compacted: bool) -> None:
        self.is_compacted = is_compacted
        self.published: list[Command] = []

    async def are_commands_compacted(self) -> bool:
        return self.is_compacted

    async def compact_commands(self) -> None:
        self.published.append(control(ControlAction.CANCEL))  # marks when
        self.is_compacted = True

    async def publish_command(self, command: Command) -> None:
        self.published.append(command)


async def taken_over(state: OperationState | None, *commands: Command, is_compacted: bool) -> Any:
    bus: Any = FakeBus(is_compacted=is_compacted)
    await take_over(bus, commands, {} if state is None else {"mv-1": state})
    assert bus.is_compacted
    return bus.published


def test_no_command_of_an_operation_replaces_its_reassignment() -> None:
    keys = {_key_of_command(control(action)) for action in ControlAction}
    assert _key_of_command(REASSIGN) not in keys
    assert len(keys) == len(ControlAction)


def test_an_old_act_that_is_written_again_replaces_no_newer_one() -> None:
    first, second = (_key_of_command(control(ControlAction.PAUSE, at_ms)) for at_ms in (1, 2))
    assert first != second


async def test_of_an_older_topic_what_runs_is_written_anew_before_it_is_compacted() -> None:
    running = OperationState(operation_id="mv-1", phase=Phase.PAUSED)
    pause = control(ControlAction.PAUSE)
    *published, last = await taken_over(running, REASSIGN, pause, is_compacted=False)
    assert published == [REASSIGN, pause]
    assert last == control(ControlAction.CANCEL), "compacted after that"
    *published, _ = await taken_over(None, REASSIGN, is_compacted=False)
    assert published == [REASSIGN], "nobody has answered it yet"


async def test_a_plan_goes_once_its_operation_has_ended_and_no_throttle_is_left() -> None:
    done = OperationState(operation_id="mv-1", phase=Phase.FINISHED, outcome=Outcome.DONE)
    (slim,) = await taken_over(done, REASSIGN, is_compacted=True)
    assert (slim.changes, slim.waves, slim.throttle) == ((), REASSIGN.waves, REASSIGN.throttle)
    assert await taken_over(done, REASSIGN, slim, is_compacted=True) == [], "it went already"
    left = OperationState(operation_id="mv-1", phase=Phase.FINISHED, throttle={"rate": 1})
    assert await taken_over(left, REASSIGN, is_compacted=True) == []
