"""Result of an append. Errors are values of broker.replication.errors or broker.log.errors,
mapped to Kafka's codes by the handlers."""

from typing import NamedTuple


class AppendResult(NamedTuple):
    """Outcome of an append to one partition; `error` None means the records stand as asked."""

    error: Exception | None
    base_offset: int = -1
    last_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
