"""Batches and logs for the tests of broker.log."""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.log_validator import AppendInfo
from broker.log.partition_log import PartitionLog
from broker.protocol.records import NewRecord, build_batch, iter_batch_headers

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(index_interval_bytes=64)


class FakeClock:
    """A clock that stands until it is moved."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now_ms = now_ms

    def monotonic_ms(self) -> int:
        """The same as the wall."""
        return self.now_ms

    def wall_ms(self) -> int:
        """What the test says."""
        return self.now_ms


def batch(
    count: int = 1,
    *,
    value: bytes = b"value",
    timestamp: int = NOW_MS,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    key: bytes | None = None,
) -> memoryview:
    """A batch of `count` records, a millisecond apart."""
    return memoryview(
        build_batch(
            [NewRecord(key=key, value=value, timestamp=timestamp + n) for n in range(count)],
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
    )


def sequenced(sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7) -> memoryview:
    """A batch of an idempotent producer."""
    return batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def open_log(
    directory: Path,
    config: LogConfig = CONFIG,
    *,
    clock: FakeClock | None = None,
    recovery_point: int = 0,
    is_clean: bool = False,
    log_start_offset: int = 0,
) -> PartitionLog:
    """The log of orders-0 in a directory."""
    return PartitionLog.open(
        str(directory),
        topic="orders",
        partition=0,
        config=config,
        clock=clock or FakeClock(),
        recovery_point=recovery_point,
        is_clean=is_clean,
        log_start_offset=log_start_offset,
    )


def append(log: PartitionLog, records: memoryview, *, epoch: int = 0) -> AppendInfo:
    """Append as a leader, what a client sent, now."""
    return log.append_as_leader(records, leader_epoch=epoch, now_ms=NOW_MS, is_from_client=True)


def maintain(
    manager: LogManager,
    now_ms: int = NOW_MS,
    high_watermarks: Mapping[tuple[str, int], int] | None = None,
) -> None:
    """All steps of the upkeep that is due."""
    deque(manager.upkeep(now_ms, (high_watermarks or {}).items()), 0)


def read_all(log: PartitionLog) -> bytes:
    """Everything from the log start on, as one run of bytes."""
    parts = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = log.read_bytes(offset, max_bytes=1 << 20, max_offset=log.log_end_offset)
        if not part:
            break
        parts.append(part)
        offset = [header.last_offset for header, _ in iter_batch_headers(part)][-1] + 1
    return b"".join(parts)


def offsets(records: bytes) -> list[tuple[int, int]]:
    """(base offset, last offset) of each batch."""
    return [(header.base_offset, header.last_offset) for header, _ in iter_batch_headers(records)]


def small_segments(segment_bytes: int) -> LogConfig:
    """Segments that roll soon."""
    return replace(CONFIG, segment_bytes=segment_bytes)
