"""How fast copies came, as the log of the broker that receives them grew.

Kafka averages a throttle from when it begins to be used: it lets about three megabytes through at
once (fetches that are under way together, a megabyte each), and then nothing until the average is
right. So the rate is that of all copies, from the last look before the first byte to the first at
which all is there; between a tenth and nine tenths of the bytes it would come out too low.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from benchmarks.moves_cases import Case
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.errors import KafkaPortError
from control.model.ids import TopicPartition

LOOK_S: Final = 0.25

T = TypeVar("T")
Look = tuple[float, int]
"""When, by the monotonic clock, and bytes."""


async def copied(
    bootstrap: str, topic: str, case: Case, move: Callable[[str], Awaitable[T]]
) -> tuple[T, float | None]:
    """What the move answers, and bytes per second of its copies; null where they came between two
    looks."""
    keys = [TopicPartition(topic, number) for number in range(case.partitions)]
    (receives,) = set(case.after) - set(case.before)
    looks: list[Look] = []
    async with KafkaAdmin.to(bootstrap) as admin:
        whole = await _size(admin, case.before[0], keys)
        looking = asyncio.create_task(_look(admin, receives, keys, looks))
        try:
            moved = await move(topic)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
    return moved, rate_of(looks, whole)


def rate_of(looks: Sequence[Look], whole: int) -> float | None:
    """Of so many bytes, which the leader had as it began."""
    before = [at_s for at_s, size in looks if not size]
    after = [at_s for at_s, size in looks if size >= whole]
    if not before or not after or len(looks) - len(before) - len(after) < 1:
        return None
    return whole / (after[0] - before[-1])


async def _look(
    admin: KafkaAdmin, broker: int, keys: Sequence[TopicPartition], looks: list[Look]
) -> None:
    while True:
        with contextlib.suppress(KafkaPortError):
            looks.append((time.monotonic(), await _size(admin, broker, keys)))
        await asyncio.sleep(LOOK_S)


async def _size(admin: KafkaAdmin, broker: int, keys: Sequence[TopicPartition]) -> int:
    """Bytes of these partitions there."""
    log_dirs = await admin.log_dirs({broker}, partitions=keys)
    return sum(replica.size_bytes for one in log_dirs for replica in one.replicas)
