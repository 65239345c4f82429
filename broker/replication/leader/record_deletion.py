"""DeleteRecords: move the start of a partition's log on every replica."""

import asyncio

from broker.log.errors import LogError, OffsetOutOfRangeError
from broker.replication.errors import (
    AppendTimedOutError,
    DeletionForbiddenError,
    NotLeaderError,
    UnknownPartitionError,
)
from broker.replication.partition.events import LogStartMoved
from broker.replication.partition.partition import Partition
from broker.replication.partition.partition_effects import PartitionEffects

TO_HIGH_WATERMARK = -1
GONE = -1
WAITERS_MAX = 1_000
"""So many wait for the replicas of a partition; they may have asked for weeks, and be gone."""


async def delete_records(
    replicas: PartitionEffects, topic: str, partition: int, offset: int, timeout_ms: int
) -> int | Exception:
    """The low watermark once no live replica serves records below `offset`, or why not."""
    found = replicas.by_name.get((topic, partition))
    if found is None:
        return UnknownPartitionError()
    if not found.is_leader:
        return NotLeaderError()
    if not found.log.config.is_deleting:
        return DeletionForbiddenError()
    high_watermark = found.state.high_watermark
    wanted = high_watermark if offset == TO_HIGH_WATERMARK else offset
    if not 0 <= wanted <= high_watermark:
        return OffsetOutOfRangeError(wanted, found.log.log_start_offset, high_watermark)
    try:
        found.log.increment_log_start_offset(wanted)
    except LogError as error:
        return error
    replicas.apply(found, LogStartMoved(found.log.log_start_offset))
    replicas.has_unsaved_high_watermark = True
    for session in found.sessions:
        # Followers learn the new start with their next answer: do not let them wait for it.
        session.partition_changed(found)
        session.records_appended(found)
    return await _low_watermark_at(found, wanted, timeout_ms)


async def _low_watermark_at(partition: Partition, offset: int, timeout_ms: int) -> int | Exception:
    if partition.state.low_watermark >= offset:
        return partition.state.low_watermark
    if len(partition.low_watermark_waiters) >= WAITERS_MAX:
        return AppendTimedOutError()
    reached: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def advanced(low_watermark: int) -> None:
        if not reached.done() and (low_watermark >= offset or low_watermark == GONE):
            reached.set_result(low_watermark)

    partition.low_watermark_waiters.append(advanced)
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            low_watermark = await reached
    except TimeoutError:
        return AppendTimedOutError()
    finally:
        partition.low_watermark_waiters.remove(advanced)
    return NotLeaderError() if low_watermark == GONE else low_watermark
