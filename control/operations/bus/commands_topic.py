"""Keeps the topic of commands small: it is compacted, and a plan goes when its operation has ended.

A reassignment's key is its operation id, what an operator asks of it later has a key of its own, so
compaction keeps both. When an operation has ended, and its throttle is gone, its command is written
once more without its plan, which the events have as well.

An older release wrote everything under the operation id, into a topic that kept all. The first
executor that finds such a topic writes anew what is still needed, and has it compacted then.
"""

from collections.abc import Iterable
from dataclasses import replace

from control.move.commands import Command, ReassignCommand
from control.move.state import OperationState
from control.operations.bus.topics import Bus


def without_plan(command: ReassignCommand, state: OperationState) -> ReassignCommand | None:
    """The command as it is kept from now on; None: it stays as it is."""
    has_ended = state.is_finished and state.throttle is None
    return replace(command, changes=()) if has_ended and command.changes else None


async def take_over(
    bus: Bus, commands: Iterable[Command], states: dict[str, OperationState]
) -> None:
    """Have the topic compacted, as the executor that owns the operations begins.

    :raises KafkaPortError: the bus does not answer or refuses.
    """
    commands = list(commands)
    newest = {it.operation_id: it for it in commands if isinstance(it, ReassignCommand)}
    is_compacted = await bus.are_commands_compacted()
    for name, command in newest.items():
        state = states.get(name, OperationState(operation_id=name))
        slim = without_plan(command, state)
        if slim is not None:
            await bus.publish_command(slim)
        elif not is_compacted and command.changes:
            await bus.publish_command(command)
            for control in commands:
                if control.operation_id == name and not isinstance(control, ReassignCommand):
                    await bus.publish_command(control)
    if not is_compacted:
        await bus.compact_commands()
