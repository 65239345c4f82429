"""Throttles around a run: those of others, and the end of its own."""

from control.kafka.errors import RefusedError
from control.kafka.ports import AdminPort
from control.move.commands import ReassignCommand
from control.move.events import EventKind
from control.move.throttle import ThrottleRecord
from control.operations.executor.run_context import RunContext
from control.operations.executor.throttles.throttle_of_move import MoveThrottle
from control.operations.reassignment.cluster_probes import read_standing_rates
from control.operations.reassignment.existing_throttles import StandingRates


async def remove_at_end(throttle: MoveThrottle, context: RunContext) -> None:
    """All has arrived: a throttle that may not be removed now is no reason to call that failed."""
    try:
        await throttle.remove()
    except RefusedError as error:
        words = f"the throttle is still set, and its removal is tried again: {error}"
        await context.emit(EventKind.NOTE, words)


async def rates_of_others(
    admin: AdminPort, command: ReassignCommand, context: RunContext
) -> StandingRates:
    """Throttles on brokers that have none of ours."""
    ours = context.state().throttle
    except_on = () if ours is None else ThrottleRecord.parse(ours).brokers
    return await read_standing_rates(admin, command.changes, except_on=except_on)
