"""Taking back what an operation has in flight. What has arrived stays."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from control.kafka.ports import AdminPort
from control.operations.placements import read_placements
from control.planner.proposal import PartitionChange

POLL_S: Final = 0.1


async def take_back(
    admin: AdminPort, changes: Collection[PartitionChange], hold: Callable[[], Awaitable[None]]
) -> None:
    """Until none of these moves.

    Kafka takes a move back to the same replicas, but in the order of the target with the removed
    ones last: the preferred leader would be another, so the order is restored. No data moves.

    :raises FencedError: by `hold`, before each change.
    :raises KafkaPortError: the cluster refuses or does not answer.
    """
    while True:
        await hold()
        places = await read_placements(admin, {change.topic for change in changes})
        moving = [change.key for change in changes if places.is_moving(change)]
        if not moving:
            break
        await admin.alter_reassignments(dict.fromkeys(moving, None))
        await asyncio.sleep(POLL_S)
    disordered = {c.key: c.before for c in changes if places.is_disordered(c)}
    await admin.alter_reassignments(disordered)
