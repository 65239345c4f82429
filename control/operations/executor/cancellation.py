"""Cancels the moves that an operation has in flight. Partitions that have arrived stay."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from control.kafka.errors import KafkaPortError
from control.kafka.ports import AdminPort
from control.model.ids import TopicPartition
from control.model.units import counted
from control.move.commands import ReassignCommand
from control.move.results import Fate, fates_of
from control.operations.executor.run_context import RunContext
from control.operations.reassignment.placements import read_placements
from control.operations.reassignment.topic_ids import places_of
from planner.proposal import PartitionChange
from planner.waves import plan_waves

POLL_S: Final = 0.1
PACE_S: Final = 1.0
"""After a refusal."""
REFUSALS_MAX: Final = 5
"""Of all that still moves, in succession; then it is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledMoves:
    """The partitions that stopped, and why others go on."""

    keys: frozenset[TopicPartition]
    refused: Mapping[TopicPartition, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """Result of an operation that ended midway."""

    words: str = ""
    """For people; empty: nothing was in flight."""
    fates: tuple[Fate, ...] = ()
    """Of its partitions; empty: not known."""


async def cancel_begun(
    admin: AdminPort, command: ReassignCommand, context: RunContext
) -> CancelledMoves:
    """Cancels moves of the waves that have begun, until none of them moves or the cluster refuses
    to cancel the rest.

    Kafka takes a move back to the same replicas, but in the order of the target with the removed
    ones last: the preferred leader would be another, so the order is restored. No data moves.

    :raises FencedError: another executor owns the operations.
    :raises KafkaPortError: the cluster refuses all or does not answer.
    """
    changes = _begun(command, context)
    asked: set[TopicPartition] = set()
    refusals = 0
    while True:
        places = await read_placements(admin, {change.topic for change in changes})
        places = places_of(command.topic_ids or context.state().topic_ids, places)
        moving = [change.key for change in changes if places.is_moving(change)]
        await context.hold()
        refused = await admin.alter_reassignments(dict.fromkeys(moving, None))
        asked.update(moving)
        refusals = refusals + 1 if refused.keys() >= set(moving) else 0
        if not moving or refusals == REFUSALS_MAX:
            break
        await asyncio.sleep(PACE_S if refused else POLL_S)
    await context.hold()
    await admin.alter_reassignments({c.key: c.before for c in changes if places.is_disordered(c)})
    return CancelledMoves(
        keys=frozenset(asked.difference(refused)),
        refused={key: f"still moves: {error}" for key, error in refused.items()},
    )


async def give_up(admin: AdminPort, command: ReassignCommand, context: RunContext) -> GivenUp:
    """Cancels the moves in flight of an operation that ends midway, as far as the cluster lets it.

    :raises FencedError: another executor owns the operations.
    """
    if not context.state().waves_begun:
        return GivenUp(fates=(Fate.NEVER_BEGAN,) * len(command.changes))
    try:
        taken = await cancel_begun(admin, command, context)
        places = await read_placements(admin, {change.topic for change in command.changes})
    except KafkaPortError as error:
        words = f"partitions in flight could not be cancelled and continue unthrottled: {error}"
        return GivenUp(words=words)
    count = len(taken.keys)
    went = [f"{counted(count, 'partition')} in flight went back"] if count else []
    told = context.state().refused
    refused = {change.key for change in command.changes if str(change.key) in told}
    fates = fates_of(
        command.changes,
        places_of(command.topic_ids or context.state().topic_ids, places).is_there,
        refused=refused | taken.refused.keys(),
        went_back=taken.keys | went_back_before(command, context),
    )
    words = "; ".join([*went, *(f"{key} {why}" for key, why in taken.refused.items())])
    return GivenUp(words=words, fates=fates)


def went_back_before(command: ReassignCommand, context: RunContext) -> set[TopicPartition]:
    """Partitions whose moves were being cancelled already before a crash."""
    return {command.changes[number].key for number in context.state().going_back}


def _begun(command: ReassignCommand, context: RunContext) -> Collection[PartitionChange]:
    state, waves = context.state(), plan_waves(command.changes, command.waves)
    begun = {change.key for wave in waves[: state.waves_begun] for change in wave}
    return [change for change in state.changes or command.changes if change.key in begun]
