"""Offsets of open transactions: they count with the marker, also for a coordinator that loads."""

from typing import Any

import pytest

from broker.coordinator.config import GroupConfig
from broker.coordinator.coordinator_runtime import replay_chunk
from broker.coordinator.group_coordinator_shard import GroupCoordinatorShard
from broker.coordinator.records import (
    CommittedOffset,
    OffsetKey,
    encode_offset_key,
    encode_offset_value,
)
from broker.protocol.control_records import Marker, build_marker
from broker.protocol.records import NewRecord, build_batch
from tests.unit.broker.coordinator.memory import ManualClock


async def _nothing(_: Any) -> None:
    """Nobody waits for the groups."""


class Log:
    """A partition of __consumer_offsets, written step by step."""

    def __init__(self) -> None:
        self._batches: list[bytes] = []

    def _add(self, batch: bytes) -> None:
        self._batches.append(len(self._batches).to_bytes(8, "big") + batch[8:])

    def commit(self, offset: int | None, producer_id: int = -1) -> None:
        """An offset of t-0, or its tombstone, within a producer's transaction or without."""
        key = encode_offset_key(OffsetKey(group_id="g", topic="t", partition=0))
        value = None
        if offset is not None:
            value = encode_offset_value(CommittedOffset(offset=offset, commit_ms=1))
        self._add(
            build_batch(
                [NewRecord(key=key, value=value, timestamp=1)],
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                is_transactional=producer_id >= 0,
            )
        )

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        self._add(build_marker(producer_id, 0, Marker(is_commit, 1), timestamp_ms=1))

    async def load(self) -> GroupCoordinatorShard:
        shard = GroupCoordinatorShard(
            0, ManualClock(), GroupConfig(), loaded=_nothing, unloaded=lambda _: None
        )
        await replay_chunk(shard, b"".join(self._batches), 0)
        await shard.on_loaded()
        return shard


@pytest.fixture
def log() -> Log:
    return Log()


def committed(shard: GroupCoordinatorShard) -> int | None:
    entry = shard.entries.get("g")
    found = None if entry is None else entry.offsets.get("t", 0)
    return None if found is None else found.offset


@pytest.mark.parametrize(("is_commit", "expected"), [(True, 5), (False, 3)])
async def test_a_marker_decides(log: Log, is_commit: bool, expected: int) -> None:
    log.commit(3)
    log.commit(5, producer_id=7)
    shard = await log.load()
    assert (committed(shard), shard.pending.keys("g")) == (3, frozenset({("t", 0)}))
    shard.end_transaction(7, is_commit=is_commit)
    assert (committed(shard), shard.pending.keys("g")) == (expected, frozenset())
    log.end(7, is_commit=is_commit)
    again = await log.load()
    assert (committed(again), again.pending.keys("g")) == (expected, frozenset())


async def test_a_later_commit_outlives_a_transaction_that_began_before(log: Log) -> None:
    log.commit(5, producer_id=7)
    log.commit(9)
    shard = await log.load()
    shard.end_transaction(7, is_commit=True)
    assert committed(shard) == 9
    log.end(7, is_commit=True)
    assert committed(await log.load()) == 9


async def test_a_group_has_offsets_from_its_first_transaction_on(log: Log) -> None:
    log.commit(5, producer_id=7)
    shard = await log.load()
    assert committed(shard) is None
    shard.end_transaction(7, is_commit=True)
    assert committed(shard) == 5


async def test_what_was_deleted_meanwhile_does_not_come_back(log: Log) -> None:
    log.commit(5, producer_id=7)
    log.commit(None)
    log.end(7, is_commit=True)
    assert committed(await log.load()) is None
