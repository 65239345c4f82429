"""Results of appends and fetches. Errors are values of broker.replication.errors or
broker.log.errors, mapped to Kafka's codes by the handlers."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.log.segment.open_files import FileSlice


class AppendResult(NamedTuple):
    """Outcome of an append to one partition; `error` None means the records stand as asked."""

    error: Exception | None
    base_offset: int = -1
    last_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1


class PartitionData(NamedTuple):
    """Answer of a fetch in one partition; `diverging` is (epoch, end offset)."""

    error: Exception | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    size_bytes: int = 0
    slices: Sequence[FileSlice] = ()
    diverging: tuple[int, int] | None = None
