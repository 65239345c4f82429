"""What appends and fetches hand back: errors are values of broker.replication.errors or
broker.log.errors, mapped to Kafka's codes by the handlers."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.log.files import FileSlice


class AppendResult(NamedTuple):
    """What became of records for one partition; `error` None means they stand as asked."""

    error: Exception | None
    base_offset: int = -1
    last_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1


class PartitionData(NamedTuple):
    """What a fetch found in one partition; `diverging` is (epoch, end offset)."""

    error: Exception | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    size_bytes: int = 0
    slices: Sequence[FileSlice] = ()
    diverging: tuple[int, int] | None = None
