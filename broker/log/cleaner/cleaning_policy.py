"""Log compaction, the deciding half: pure. What to clean, which records stay, what to merge.

A log is its *clean* head, where every key occurs once, and its *dirty* tail. Once the tail is
large enough, the offsets of the newest record of each key in it are gathered (`KeyOffsets`), and
every record of head and tail that is older than its key's offset goes. Tombstones go when
delete.retention.ms has passed since they were first cleaned. Offsets never change; the active
segment and what is not replicated yet are never touched.

Example: [a=1 b=1 | a=2 b=null c=1], cleaned up to |. The tail says a:2 b:3 c:4, so a=1 and b=1
go: [a=2 b=null c=1] at offsets 2, 3, 4; and [a=2 c=1] from delete.retention.ms later on.
Source: org.apache.kafka.storage.internals.log.{Cleaner,LogCleanerManager} (Kafka 4.x).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.log.cleaner.cleaned_transactions import CleanedTransactions
from broker.log.config import LogConfig
from broker.protocol.control_records import read_marker
from broker.protocol.records import BatchHeader, parse_batch_header
from broker.protocol.rewrite import (
    RecordSpan,
    delete_horizon_ms,
    empty_batch,
    plain_records,
    rewrite_batch,
    scan_records,
)

KEY_MAP_BYTES_MAX: Final = 64 * 1024 * 1024
"""What the keys of one run may take in memory; what does not fit is left for the next run."""
_BYTES_PER_KEY: Final = 150
_RELATIVE_OFFSET_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSegment:
    """A segment as compaction sees it; `next_offset` is where the following one starts."""

    path: str
    base_offset: int
    next_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentTimes:
    """First and largest timestamp of a segment, ms since the epoch, -1 unknown."""

    first_ms: int
    largest_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningPlan:
    """Clean `segments`; those with offsets from `first_dirty_offset` on are the dirty ones."""

    segments: tuple[SealedSegment, ...]
    first_dirty_offset: int
    dirty_share: float

    @property
    def end_offset(self) -> int:
        """Nothing from here on is looked at."""
        return self.segments[-1].next_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningBounds:
    """Where a log is clean up to, where it is stable (replicated, no open transaction), now."""

    first_dirty_offset: int
    first_unstable_offset: int
    now_ms: int


def plan_cleaning(
    segments: Sequence[tuple[SealedSegment, SegmentTimes]],
    config: LogConfig,
    bounds: CleaningBounds,
) -> CleaningPlan | None:
    """Chooses the part of the sealed `segments` to clean; None as long as it is not worth it."""
    cleanable: list[tuple[SealedSegment, SegmentTimes]] = []
    youngest_ms = bounds.now_ms - config.min_compaction_lag_ms
    for segment, times in segments:
        is_dirty = segment.next_offset > bounds.first_dirty_offset
        is_young = config.min_compaction_lag_ms > 0 and times.largest_ms > youngest_ms
        if segment.next_offset > bounds.first_unstable_offset or (is_dirty and is_young):
            break
        cleanable.append((segment, times))
    dirty = [each for each in cleanable if each[0].next_offset > bounds.first_dirty_offset]
    dirty_bytes = sum(segment.size_bytes for segment, _ in dirty)
    if not dirty_bytes:
        return None
    total_bytes = sum(segment.size_bytes for segment, _ in cleanable)
    oldest_ms = min((times.first_ms for _, times in dirty if times.first_ms >= 0), default=None)
    is_overdue = oldest_ms is not None and (
        bounds.now_ms - oldest_ms > config.max_compaction_lag_ms
    )
    if not is_overdue and dirty_bytes < config.min_cleanable_dirty_ratio * total_bytes:
        return None
    return CleaningPlan(
        segments=tuple(segment for segment, _ in cleanable),
        first_dirty_offset=bounds.first_dirty_offset,
        dirty_share=dirty_bytes / total_bytes,
    )


def group_segments(
    segments: Iterable[SealedSegment], config: LogConfig
) -> list[tuple[SealedSegment, ...]]:
    """Neighbours that may become one segment: together not larger than segment.bytes.

    Their size is the one from before cleaning, so a log shrinks over several runs.
    """
    groups: list[tuple[SealedSegment, ...]] = []
    size_bytes = 0
    for segment in segments:
        size_bytes += segment.size_bytes
        if (
            groups
            and size_bytes <= config.segment_bytes
            and segment.next_offset - groups[-1][0].base_offset <= _RELATIVE_OFFSET_MAX
        ):
            groups[-1] += (segment,)
        else:
            groups.append((segment,))
            size_bytes = segment.size_bytes
    return groups


class KeyOffsets:
    """The newest offset of each key among the dirty batches below `end_offset`."""

    def __init__(
        self,
        first_dirty_offset: int,
        transactions: CleanedTransactions | None = None,
        *,
        bytes_max: int = KEY_MAP_BYTES_MAX,
    ) -> None:
        self.end_offset = first_dirty_offset
        self._transactions = transactions or CleanedTransactions()
        self._offsets: dict[bytes, int] = {}
        self._bytes = 0
        self._bytes_max = bytes_max

    def __len__(self) -> int:
        return len(self._offsets)

    def get(self, key: bytes) -> int | None:
        """The newest offset of a key."""
        return self._offsets.get(key)

    def add(self, batch: bytes) -> bool:
        """Take in the next batch; False when the run has to end before it.

        It ends when memory is used up. Records of aborted transactions replace nothing.

        :raises MalformedRecordsError: the records cannot be read.
        """
        header = parse_batch_header(batch)
        if self._offsets and self._bytes > self._bytes_max:
            return False
        offsets, base_offset = self._offsets, header.base_offset
        if header.is_control or self._transactions.is_aborted(header):
            if header.is_control:
                self._transactions.is_done(header, read_marker(batch))
            self.end_offset = header.last_offset + 1
            return True
        for span in _spans(batch, header):
            if span.key is None:
                continue
            if span.key not in offsets:
                self._bytes += len(span.key) + _BYTES_PER_KEY
            offsets[span.key] = base_offset + span.offset_delta
        self.end_offset = header.last_offset + 1
        return True


def _spans(batch: bytes, header: BatchHeader) -> Iterator[RecordSpan]:
    if not header.records_count:
        return iter(())
    return scan_records(plain_records(batch, header), header.records_count)


class BatchCleaner:
    """Takes out of batches what the newer records of their keys have replaced, or was aborted.

    `last_offsets` has, per producer id, the last offset of its newest batch (its marker, where that
    came last): that batch stays as an empty one, so that the producer's next sequence can be
    checked after a restart.
    """

    def __init__(
        self,
        keys: KeyOffsets,
        last_offsets: Mapping[int, int],
        *,
        now_ms: int,
        delete_retention_ms: int,
        transactions: CleanedTransactions | None = None,
    ) -> None:
        self.transactions = transactions or CleanedTransactions()
        self._keys = keys
        self._last_offsets = last_offsets
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms

    def clean(self, batch: bytes) -> bytes:
        """The batch without the records that may go; nothing when all may.

        :raises MalformedRecordsError: the records cannot be read.
        """
        header = parse_batch_header(batch)
        if header.is_control:
            is_void = self.transactions.is_done(header, read_marker(batch))
        else:
            is_void = self.transactions.is_aborted(header)
        if header.base_offset >= self._keys.end_offset:
            return batch
        if not header.records_count or (is_void and not header.is_control):
            return self._without_records(header)
        if header.is_control:
            return self._clean_marker(batch, header) if is_void else batch
        plain = plain_records(batch, header)
        horizon_ms = delete_horizon_ms(header)
        is_expired = horizon_ms is not None and self._now_ms >= horizon_ms
        kept = [
            span
            for span in scan_records(plain, header.records_count)
            if self._is_kept(header.base_offset, span, is_expired)
        ]
        if not kept:
            return self._without_records(header)
        has_new_tombstones = horizon_ms is None and any(span.is_tombstone for span in kept)
        if has_new_tombstones:
            horizon_ms = self._now_ms + self._delete_retention_ms
        elif len(kept) == header.records_count:
            return batch
        return rewrite_batch(header, plain, kept, horizon_ms=horizon_ms)

    def _clean_marker(self, batch: bytes, header: BatchHeader) -> bytes:
        """A marker without batches goes like a tombstone."""
        horizon_ms = delete_horizon_ms(header)
        if horizon_ms is None:
            plain = plain_records(batch, header)
            spans = list(scan_records(plain, header.records_count))
            horizon_ms = self._now_ms + self._delete_retention_ms
            return rewrite_batch(header, plain, spans, horizon_ms=horizon_ms)
        return self._without_records(header) if self._now_ms >= horizon_ms else batch

    def _is_kept(self, base_offset: int, span: RecordSpan, is_expired: bool) -> bool:
        if span.key is None:
            # Written before the topic was compacted; it can never be replaced.
            return False
        newest = self._keys.get(span.key)
        if newest is not None and base_offset + span.offset_delta < newest:
            return False
        return not (span.is_tombstone and is_expired)

    def _without_records(self, header: BatchHeader) -> bytes:
        is_needed = (
            header.producer_id >= 0
            and self._last_offsets.get(header.producer_id) == header.last_offset
        )
        return empty_batch(header) if is_needed else b""
