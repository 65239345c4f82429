"""Taking back what an operation has in flight. What has arrived stays."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from control.kafka.errors import KafkaPortError
from control.kafka.ports import AdminPort
from control.model.ids import TopicPartition
from control.operations.commands import ReassignCommand
from control.operations.placements import read_placements
from control.operations.run_context import RunContext
from control.operations.topic_ids import places_of
from control.planner.proposal import PartitionChange
from control.planner.waves import plan_waves

POLL_S: Final = 0.1
PACE_S: Final = 1.0
"""After a refusal."""
REFUSALS_MAX: Final = 5
"""Of all that still moves, in succession; then it is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """How many partitions stopped, and why the others go on."""

    partitions: int
    refused: Mapping[TopicPartition, str]


async def take_back(admin: AdminPort, command: ReassignCommand, context: RunContext) -> TakenBack:
    """Until nothing moves of the waves that have begun (others move the rest), or the cluster
    refuses to take back what is left.

    Kafka takes a move back to the same replicas, but in the order of the target with the removed
    ones last: the preferred leader would be another, so the order is restored. No data moves.

    :raises FencedError: another executor owns the operations.
    :raises KafkaPortError: the cluster refuses all or does not answer.
    """
    changes = _begun(command, context)
    asked: set[TopicPartition] = set()
    refusals = 0
    while True:
        await context.hold()
        places = await read_placements(admin, {change.topic for change in changes})
        places = places_of(command.topic_ids or context.state().topic_ids, places)
        moving = [change.key for change in changes if places.is_moving(change)]
        refused = await admin.alter_reassignments(dict.fromkeys(moving, None))
        asked.update(moving)
        refusals = refusals + 1 if refused.keys() >= set(moving) else 0
        if not moving or refusals == REFUSALS_MAX:
            break
        await asyncio.sleep(PACE_S if refused else POLL_S)
    await admin.alter_reassignments({c.key: c.before for c in changes if places.is_disordered(c)})
    return TakenBack(
        partitions=len(asked) - len(refused),
        refused={key: f"still moves: {error}" for key, error in refused.items()},
    )


async def give_up(admin: AdminPort, command: ReassignCommand, context: RunContext) -> str:
    """Take back what is in flight of an operation that ends midway, as far as that can be done;
    answers what became of it, for people; empty: nothing was in flight.

    :raises FencedError: another executor owns the operations.
    """
    if not context.state().waves_begun:
        return ""
    try:
        taken = await take_back(admin, command, context)
    except KafkaPortError as error:
        return f"what is in flight could not be taken back and goes on unthrottled: {error}"
    words = [f"{taken.partitions} partitions in flight were taken back"] if taken.partitions else []
    return "; ".join([*words, *(f"{key} {why}" for key, why in taken.refused.items())])


def _begun(command: ReassignCommand, context: RunContext) -> Collection[PartitionChange]:
    waves = plan_waves(command.changes, command.waves)
    return [change for wave in waves[: context.state().waves_begun] for change in wave]
