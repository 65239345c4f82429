"""Both indexes of a segment and the rule by which batches enter them.

For each batch: when more than index.interval.bytes were written since the last entry, the batch
gets one (its last offset, its position), and the largest timestamp so far gets one in the time
index if it rose; then the batch's size is counted. Sealing adds the final largest timestamp.
Source: org.apache.kafka.storage.internals.log.LogSegment.append (Kafka 4.x).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from broker.log.config import LogConfig
from broker.log.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_path
from broker.log.segment.index import OFFSET_ENTRY, TIME_ENTRY, offset_index, time_index
from broker.log.segment.open_files import FilePool
from broker.protocol.records import NO_TIMESTAMP, BatchHeader


class PlacedBatch(NamedTuple):
    """A batch on its way into the log: its final offsets and what indexes need of it."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    size_bytes: int


def placed(header: BatchHeader) -> PlacedBatch:
    """A batch that already has its offsets."""
    return PlacedBatch(
        header.base_offset, header.last_offset, header.max_timestamp, header.size_bytes
    )


class SegmentIndexes:
    """`max_timestamp` in ms and the last offset of the batch that has it; -1 when none is known.

    `suffix` is added to the names of both files.
    """

    def __init__(
        self, directory: str, base_offset: int, *, files: FilePool, suffix: str = ""
    ) -> None:
        self.base_offset = base_offset
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        stem = segment_path(directory, base_offset, "")
        self.offsets = offset_index(f"{stem}{OFFSET_INDEX_SUFFIX}{suffix}", files)
        self.times = time_index(f"{stem}{TIME_INDEX_SUFFIX}{suffix}", files)
        self._unindexed_bytes = 0

    def note(self, batches: Sequence[PlacedBatch], position: int, config: LogConfig) -> None:
        """Index batches that were written from `position` on.

        :raises OSError: the disk refused; see `undo`.
        """
        unindexed = self._unindexed_bytes
        timestamp, timestamp_offset = self.max_timestamp, self.max_timestamp_offset
        last_time = self.times.last[0] if self.times.entries else NO_TIMESTAMP
        offset_entries: list[tuple[int, int]] = []
        time_entries: list[tuple[int, int]] = []
        for batch in batches:
            if batch.max_timestamp > timestamp:
                timestamp, timestamp_offset = batch.max_timestamp, batch.last_offset
            if unindexed > config.index_interval_bytes:
                offset_entries.append((batch.last_offset - self.base_offset, position))
                if timestamp > last_time:
                    time_entries.append((timestamp, timestamp_offset - self.base_offset))
                    last_time = timestamp
                unindexed = 0
            unindexed += batch.size_bytes
            position += batch.size_bytes
        if offset_entries:
            self.offsets.add(offset_entries)
            self.times.add(time_entries)
        self._unindexed_bytes = unindexed
        self.max_timestamp, self.max_timestamp_offset = timestamp, timestamp_offset

    def entries(self) -> tuple[int, int]:
        """The numbers of offset and time entries, for `undo`."""
        return self.offsets.entries, self.times.entries

    def undo(self, entries: tuple[int, int]) -> None:
        """Back to earlier numbers of entries."""
        self.offsets.keep(entries[0])
        self.times.keep(entries[1])

    def is_full(self, config: LogConfig) -> bool:
        """Whether an index has no room for another entry."""
        offset_entries_max = config.segment_index_bytes // OFFSET_ENTRY.size
        # One time entry stays free for the one that sealing adds.
        time_entries_max = config.segment_index_bytes // TIME_ENTRY.size - 1
        return self.offsets.entries >= offset_entries_max or self.times.entries >= time_entries_max

    def position_before(self, offset: int) -> int:
        """A batch start from which a walk forward meets `offset` soon."""
        slot = self.offsets.floor(0, offset - self.base_offset)
        return self.offsets.entry(slot)[1] if slot >= 0 else 0

    def boundary_before(self, limit: int) -> int:
        """The last indexed batch start at or before the position `limit`."""
        slot = self.offsets.floor(1, limit)
        return self.offsets.entry(slot)[1] if slot >= 0 else 0

    def last_offset_at(self, position: int) -> int | None:
        """The last offset of the batch that starts at a position, if it has an entry."""
        slot = self.offsets.floor(1, position)
        if slot < 0 or self.offsets.entry(slot)[1] != position:
            return None
        return self.base_offset + self.offsets.entry(slot)[0]

    def offset_behind(self, position: int) -> int | None:
        """The offset behind the first indexed batch from a position on, if there is one."""
        slot = self.offsets.floor(1, position - 1) + 1
        if slot >= self.offsets.entries:
            return None
        return self.base_offset + self.offsets.entry(slot)[0] + 1

    def offset_before(self, timestamp: int) -> int:
        """An offset before which no record has this timestamp or a later one."""
        slot = self.times.floor(0, timestamp - 1)
        return self.base_offset + (self.times.entry(slot)[1] if slot >= 0 else 0)

    def end_before(self, offset: int) -> tuple[int, int] | None:
        """End of the log, and timestamp, at the last time entry before an offset."""
        slot = self.times.floor(1, offset - 1 - self.base_offset)
        if slot < 0:
            return None
        timestamp, relative_offset = self.times.entry(slot)
        return self.base_offset + relative_offset + 1, timestamp

    def load(self, size_bytes: int) -> bool:
        """Take over the files of a segment of this size; False when they cannot be right."""
        if not (self.offsets.load() and self.times.load()):
            return False
        if self.offsets.entries and self.offsets.last[1] >= size_bytes:
            return False
        self._take_last_time()
        self._unindexed_bytes = size_bytes - self.offsets.last[1]
        return self.times.entries > 0 or size_bytes == 0

    def cut(self, position: int, base_offset: int) -> None:
        """Drop what concerns batches from this position and base offset on."""
        self.offsets.keep(self.offsets.floor(1, position - 1) + 1)
        self.times.keep(self.times.floor(1, base_offset - 1 - self.base_offset) + 1)
        self._unindexed_bytes = position - self.offsets.last[1]
        self._take_last_time()

    def _take_last_time(self) -> None:
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        if self.times.entries:
            self.max_timestamp = self.times.last[0]
            self.max_timestamp_offset = self.base_offset + self.times.last[1]

    def observe(self, headers: Iterable[tuple[BatchHeader, int]]) -> None:
        """Raise the largest timestamp by batches behind the last time entry."""
        for header, _ in headers:
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp = header.max_timestamp
                self.max_timestamp_offset = header.last_offset

    def rebuild(self, headers: Iterable[tuple[BatchHeader, int]], config: LogConfig) -> None:
        """Make both files anew from all batches of the segment."""
        self.offsets.reset()
        self.times.reset()
        self._unindexed_bytes = 0
        self._take_last_time()
        batches = [placed(header) for header, _ in headers]
        if batches:
            self.note(batches, 0, config)

    def seal(self) -> None:
        """Add the final time entry; open both files read-only from now on."""
        last_time = self.times.last[0] if self.times.entries else NO_TIMESTAMP
        if self.max_timestamp > last_time:
            entry = (self.max_timestamp, self.max_timestamp_offset - self.base_offset)
            self.times.add([entry])
        self.offsets.seal()
        self.times.seal()

    def flush(self) -> None:
        """Force both files to the disk."""
        self.offsets.flush()
        self.times.flush()
