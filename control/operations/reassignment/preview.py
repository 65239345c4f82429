"""A preview, with what the bus of operations knows of others and of the past."""

from dataclasses import replace

from control.kafka.errors import KafkaPortError
from control.model.watched_cluster import Site
from control.move.conflicts import unknown_others
from control.move.rollback_plan import RollbackPlan
from control.move.throttle import Throttle
from control.operations.bus.client import MovesReader
from control.operations.reassignment.existing_throttles import own_brokers
from control.operations.reassignment.planning import Planning, Preview
from control.operations.reassignment.preview_history import with_past
from planner.proposal import Proposal
from planner.waves import WaveRules


async def whole_preview(
    planning: Planning,
    moves: MovesReader,
    proposal: Proposal,
    *,
    site: Site,
    throttle: Throttle,
    rules: WaveRules,
) -> Preview:
    """Figures, pre-flight, who else moves, how long moves took; also where the bus is away.

    :raises KafkaPortError: the cluster does not answer.
    """
    try:
        states = await moves.list()
    except KafkaPortError as error:
        preview = await planning.preview(proposal, throttle=throttle, rules=rules)
        return replace(preview, checks=(*preview.checks, unknown_others(str(error))))
    preview = await planning.preview(
        proposal,
        throttle=throttle,
        rules=rules,
        throttled_by_us=own_brokers(states, site),
    )
    return with_past(preview, states, site=site, throttle=throttle)


async def preview_rollback(planning: Planning, moves: MovesReader, way: RollbackPlan) -> Preview:
    """Preview of a rollback now, as if the operation, with its throttle, had ended already.

    :raises KafkaPortError: the cluster or the bus does not answer.
    """
    states = await moves.list()
    preview = await planning.preview_back(way, own_brokers(states, way.site))
    others = [state for state in states if state.operation_id != way.rolled_back]
    return with_past(preview, others, site=way.site, throttle=way.throttle)
