"""The reading half of a partition's log.

Reads answer with slices of files (for sendfile), never with parsed records; only looking for a
timestamp opens batches, one of them.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from broker.log.checkpoint.epoch_cache import EpochCache, EpochEnd
from broker.log.errors import CorruptSegmentError, OffsetOutOfRangeError
from broker.log.segment.batch_scan import BatchSpot
from broker.log.segment.open_files import FileSlice
from broker.log.segment.segment import Segment
from broker.log.segment.segment_reader import SegmentInfo, SegmentReader
from broker.log.segment.transaction_index import collect_aborted
from broker.protocol.errors import MalformedRecordsError
from broker.protocol.records import NO_TIMESTAMP, Record, iter_records

Point = tuple[int, int]
"""Where the log ended, and when: an offset, and milliseconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRead:
    """Whole batches in file order; `base_offset` is the first batch's (the offset asked for when
    there is none).
    """

    slices: tuple[FileSlice, ...]
    size_bytes: int
    base_offset: int

    def read(self) -> bytes:
        """The bytes of all slices."""
        if len(self.slices) == 1:
            return self.slices[0].read()
        return b"".join(each.read() for each in self.slices)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampOffset:
    """A record found by its timestamp, in ms since the epoch."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class LogReader:
    """Segments in rising order, the last one active; offsets from log_start_offset on."""

    def __init__(self, segments: list[Segment], epochs: EpochCache, log_start_offset: int) -> None:
        self._segments = segments
        self.epochs = epochs
        self.log_start_offset = max(log_start_offset, segments[0].base_offset)

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record will get."""
        return self._segments[-1].next_offset

    @property
    def size_bytes(self) -> int:
        """The sum of all segments."""
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def segment_count(self) -> int:
        """How many segments there are, the active one included."""
        return len(self._segments)

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch with a start offset in this log."""
        return self.epochs.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """Where an epoch ended, as OffsetForLeaderEpoch answers it; -1, -1 when unknown."""
        return self.epochs.end_offset(epoch, self.log_end_offset)

    def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments, oldest first."""
        return tuple(segment.info() for segment in self._segments)

    def end_times(self, count: int) -> tuple[Point, ...]:
        """When the log ended where (``end_times``).

        :raises StorageError: the disk refused.
        """
        return end_times(self._segments, count)

    def read(
        self, offset: int, *, max_bytes: int, max_offset: int, min_one_batch: bool = True
    ) -> LogRead:
        """Whole batches below `max_offset`, from the one that holds `offset` on.

        At most `max_bytes`, unless the first batch alone is larger and `min_one_batch` is set.

        :raises OffsetOutOfRangeError: outside log_start_offset..log_end_offset.
        :raises StorageError: the disk refused, or a segment is damaged.
        """
        if not self.log_start_offset <= offset <= self._segments[-1].next_offset:
            raise OffsetOutOfRangeError(offset, self.log_start_offset, self.log_end_offset)
        found = self._locate(offset) if offset < max_offset else None
        if found is None:
            return LogRead(slices=(), size_bytes=0, base_offset=offset)
        segment, spot = found
        end = self._end_position(segment, spot, max_bytes, max_offset)
        if end <= spot.position and min_one_batch and spot.last_offset < max_offset:
            end = spot.position + spot.size_bytes
        if end <= spot.position:
            return LogRead(slices=(), size_bytes=0, base_offset=offset)
        return LogRead(
            slices=(segment.slice(spot.position, end),),
            size_bytes=end - spot.position,
            base_offset=spot.base_offset,
        )

    def aborted_within(self, read: LogRead) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that may have records in what was
        read, and of some behind it.

        :raises StorageError: the disk refused.
        """
        if not read.slices:
            return []
        slot = self._slot(read.base_offset)
        end = self._segments[slot].offset_behind(read.slices[0].position + read.size_bytes)
        behind = islice(self._segments, slot, None)
        return [entry[:2] for entry in collect_aborted(behind, read.base_offset, end)]

    def read_bytes(
        self, offset: int, *, max_bytes: int, max_offset: int, min_one_batch: bool = True
    ) -> bytes:
        """Reads as `read` does, and returns bytes."""
        return self.read(
            offset, max_bytes=max_bytes, max_offset=max_offset, min_one_batch=min_one_batch
        ).read()

    def offset_for_timestamp(self, timestamp_ms: int, *, max_offset: int) -> TimestampOffset | None:
        """The first record below `max_offset` that is not older than a timestamp.

        :raises StorageError: the disk refused, or a segment is damaged.
        """
        for segment in self._segments:
            if segment.largest_timestamp()[0] < timestamp_ms:
                continue
            start = max(segment.indexes.offset_before(timestamp_ms), self.log_start_offset)
            for record, epoch in self._records_since(segment, start, timestamp_ms):
                if record.offset >= max_offset:
                    return None
                if record.timestamp >= timestamp_ms and record.offset >= self.log_start_offset:
                    return _found(record, epoch)
        return None

    def max_timestamp(self) -> TimestampOffset | None:
        """The record with the largest timestamp, the first of several.

        :raises StorageError: the disk refused, or a segment is damaged.
        """
        newest = max(self._segments, key=lambda segment: segment.largest_timestamp()[0])
        timestamp, offset = newest.largest_timestamp()
        if timestamp == NO_TIMESTAMP:
            return None
        for record, epoch in self._records_since(newest, offset, timestamp):
            if record.timestamp == timestamp:
                return _found(record, epoch)
        return None

    def _records_since(
        self, segment: Segment, offset: int, timestamp_ms: int
    ) -> Iterator[tuple[Record, int]]:
        """Records, with leader epochs, of batches that may hold a timestamp or a later one."""
        for header, position in segment.headers(segment.indexes.position_before(offset)):
            if header.max_timestamp < timestamp_ms or header.last_offset < offset:
                continue
            batch = segment.slice(position, position + header.size_bytes).read()
            try:
                for record in iter_records(batch):
                    yield record, header.partition_leader_epoch
            except MalformedRecordsError as error:
                raise CorruptSegmentError(segment.path, position, str(error)) from error

    def _locate(self, offset: int) -> tuple[Segment, BatchSpot] | None:
        for segment in islice(self._segments, self._slot(offset), None):
            spot = segment.locate(offset)
            if spot is not None:
                return segment, spot
        return None

    def _slot(self, offset: int) -> int:
        """The segment that holds an offset, if any does."""
        if offset >= self._segments[-1].base_offset:
            return len(self._segments) - 1
        return max(0, bisect_right(self._segments, offset, key=lambda s: s.base_offset) - 1)

    @staticmethod
    def _end_position(segment: Segment, spot: BatchSpot, max_bytes: int, max_offset: int) -> int:
        end = segment.size_bytes
        if max_offset < segment.next_offset:
            beyond = segment.locate(max_offset)
            end = beyond.position if beyond else end
        if end - spot.position <= max_bytes:
            return end
        return segment.boundary(spot.position, spot.position + max_bytes)


def _found(record: Record, leader_epoch: int) -> TimestampOffset:
    return TimestampOffset(
        timestamp_ms=record.timestamp, offset=record.offset, leader_epoch=leader_epoch
    )


def end_times(segments: Sequence[SegmentReader], count: int) -> tuple[Point, ...]:
    """At most ``count`` points (two at least), oldest first, about evenly over the offsets.

    From the time indexes alone; both figures rise. Empty for a log without timestamps.

    With records written one a second from noon, and an index entry for every tenth:
    (0, 12:00:00), (490, 12:08:10), (1000, 12:16:40).

    :raises StorageError: the disk refused.
    """
    start, end = segments[0].base_offset, segments[-1].next_offset
    targets = (start + (end - start) * step // (count - 1) for step in range(1, count - 1))
    found = {_point_before(segments, target) for target in targets}
    ends = {(end, max(segment.largest_timestamp()[0] for segment in segments[-2:]))}
    first_ms = segments[0].first_timestamp()
    points = found | ends | ({(start, first_ms)} if first_ms is not None else set())
    known = dict(sorted(point for point in points if point and point[1] >= 0))
    if len(known) < 2:
        return ()
    return tuple(zip(known, accumulate(known.values(), max), strict=True))


def _point_before(segments: Sequence[SegmentReader], offset: int) -> Point | None:
    """The last point of the index at or before an offset; None where there is none."""
    for segment in reversed(segments):
        if segment.base_offset < offset:
            if segment.next_offset <= offset:
                return segment.next_offset, segment.largest_timestamp()[0]
            return segment.indexes.end_before(offset)
    return None
