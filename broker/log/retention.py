"""Which segments may go: pure, oldest first, by log start, size and time.

Example: retention.bytes=100 over segments of 60, 60 and 50 bytes (170 in all). Dropping the
first leaves 110 >= 100, so it goes; dropping the second would leave 50, so it stays.
Source: org.apache.kafka.storage.internals.log.UnifiedLog.deleteOldSegments (Kafka 4.x).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from broker.log.config import LogConfig

REASON_LOG_START: Final = "log start offset"
REASON_SIZE: Final = "retention.bytes"
REASON_TIME: Final = "retention.ms"


class DeletedSegments(NamedTuple):
    """How many segments went, and the rules that took them, e.g. "retention.ms"."""

    segments: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentAge:
    """A segment as retention sees it: the offset after its last one, ms since the epoch."""

    next_offset: int
    size_bytes: int
    largest_timestamp_ms: int
    is_active: bool = False


def plan_deletion(
    segments: Iterable[SegmentAge],
    config: LogConfig,
    *,
    total_bytes: int,
    log_start_offset: int,
    high_watermark: int,
    now_ms: int,
) -> DeletedSegments:
    """How many of the oldest segments may go.

    Asks for one segment after the other and stops at the first that stays, so that nobody has to
    look into the files of the rest. Nothing at or above the high watermark goes: it may not be
    replicated yet. An active segment with records may go too; an empty one then takes its place.
    A sealed one that compaction has emptied goes like any other, or it would keep all behind it.
    """
    reasons: list[str] = []
    for segment in segments:
        is_empty_end = segment.is_active and not segment.size_bytes
        if segment.next_offset > high_watermark or is_empty_end:
            break
        reason = _reason(segment, config, log_start_offset, total_bytes, now_ms)
        if reason is None:
            break
        total_bytes -= segment.size_bytes
        reasons.append(reason)
    return DeletedSegments(len(reasons), ", ".join(sorted(set(reasons))))


def _reason(
    segment: SegmentAge,
    config: LogConfig,
    log_start_offset: int,
    total_bytes: int,
    now_ms: int,
) -> str | None:
    if segment.next_offset <= log_start_offset:
        return REASON_LOG_START
    if not config.is_deleting:
        return None
    if 0 <= config.retention_bytes <= total_bytes - segment.size_bytes:
        return REASON_SIZE
    age_ms = now_ms - segment.largest_timestamp_ms
    if config.retention_ms >= 0 and segment.largest_timestamp_ms >= 0:
        return REASON_TIME if age_ms > config.retention_ms else None
    return None
