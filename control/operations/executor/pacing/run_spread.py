"""How far apart a run asks for what is not on its way yet: read as it begins, or goes on."""

from collections.abc import Collection, Mapping, Sequence

from control.kafka.ports import AdminPort
from control.model.ids import TopicPartition
from control.move.commands import ReassignCommand
from control.operations.reassignment.cluster_probes import read_fetch_backoffs
from control.operations.reassignment.placements import Placements
from control.operations.reassignment.spreading import Pace, SpreadEstimate, Writing
from planner.waves import Wave


async def pace_of_run(
    admin: AdminPort,
    command: ReassignCommand,
    places: Placements,
    produced: Mapping[TopicPartition, float],
    waves: Sequence[Wave],
) -> tuple[Pace, SpreadEstimate]:
    """Pace of waves that are still to be submitted; `produced`: bytes per second of whole
    topics."""
    backoff_ms = await read_fetch_backoffs(admin, command.changes)
    writing = Writing(produced=produced, leaders=places.leaders(), backoff_ms=backoff_ms)
    elects, within_s = command.elects_preferred, command.waves.spread_s
    return Pace.within(writing, waves, within_s, elects=elects)


def still_to_ask(
    waves: Sequence[Wave], places: Placements, never: Collection[TopicPartition]
) -> list[Wave]:
    """Changes that are neither done nor moving, nor left to others (`never`)."""
    return [
        tuple(
            change
            for change in wave
            if change.key not in never and not (places.is_there(change) or places.is_moving(change))
        )
        for wave in waves
    ]
