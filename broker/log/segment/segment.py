"""One segment: a `.log` of whole batches, its two sparse indexes, named by its base offset.

The newest segment of a partition is active (appended to), the others are sealed (only read).
Source: org.apache.kafka.storage.internals.log.LogSegment (Kafka 4.x).
"""

import logging
import os
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from broker.log.config import LogConfig
from broker.log.errors import StorageError, storage_error
from broker.log.segment.offset_check import check_offsets
from broker.log.segment.open_files import write_all
from broker.log.segment.recent_batches import RecentBatches
from broker.log.segment.segment_indexes import PlacedBatch
from broker.log.segment.segment_reader import APPENDING, SegmentReader

_logger: Final = logging.getLogger(__name__)
OFFSET_MAX: Final = 2**63 - 1


class Segment(SegmentReader):
    """A segment that can also be appended to, sealed, cut and made active again.

    While `_torn` is set, bytes of a failed append may lie behind the last batch, and entries of
    them behind those of the indexes: nothing is written before they are cut off.
    """

    _torn: tuple[int, int] | None = None

    def append(
        self,
        buffers: list[memoryview | bytes],
        batches: Sequence[PlacedBatch],
        config: LogConfig,
    ) -> None:
        """Write whole batches to the end, in one system call where the kernel takes them at once.

        :raises StorageError: the disk refused; what was written is cut off, now or before the
            next append.
        """
        if self._torn is not None:
            self._mend()
        indexes = self.indexes
        entries = indexes.entries()
        try:
            write_all(self.open().fd, buffers)
            indexes.note(batches, self.size_bytes, config)
        except (OSError, StorageError) as error:
            self._torn = entries
            try:
                self._mend()
            except StorageError as second:
                _logger.error("%s", second)
            if isinstance(error, StorageError):
                raise
            raise storage_error(f"Appending to {self.path} failed", error) from error
        if not self.size_bytes:
            self._first_timestamp = batches[0].max_timestamp
        position = self.size_bytes
        for batch in batches:
            self._recent.add(batch.base_offset, batch.last_offset, position)
            position += batch.size_bytes
        self.size_bytes = position
        self.next_offset = batches[-1].last_offset + 1

    def _mend(self) -> None:
        """Back to the last good batch; making files shorter works on a full disk too.

        :raises StorageError: the disk refused; the segment stays torn.
        """
        if self._torn is None:
            return
        try:
            os.ftruncate(self.open().fd, self.size_bytes)
            self._indexes.undo(self._torn)
        except OSError as error:
            raise storage_error(f"Cutting {self.path} back failed", error) from error
        self._torn = None

    def activate(self) -> None:
        """Make a segment found on disk appendable again: find its end from the last entry.

        :raises CorruptSegmentError: its tail is not whole batches that follow each other.
        """
        indexes = self.indexes
        start = indexes.offsets.last[1]
        tail = list(self.headers(start))
        offset_range = (self.base_offset, OFFSET_MAX)
        places = ((header.base_offset, header.last_offset, at) for header, at in tail)
        check_offsets(
            places, indexes, path=self.path, offset_range=offset_range, end=self.size_bytes
        )
        self._files.forget(self.path)
        self._flags = APPENDING
        self.is_active = True
        self.next_offset = self.base_offset
        self._recent = RecentBatches()
        for header, position in tail:
            self._recent.add(header.base_offset, header.last_offset, position)
            self.next_offset = header.last_offset + 1
        indexes.observe(tail)

    def seal(self) -> None:
        """Close the segment for appends: final time entry, indexes read-only. An empty one gets no
        index files: with thousands of idle partitions, making them took most of a stop.

        :raises StorageError: the disk refused; the segment stays active.
        """
        self._mend()
        try:
            if self.size_bytes:
                self.open()
                self.indexes.seal()
        except OSError as error:
            raise storage_error(f"Sealing {self.path} failed", error) from error
        self.is_active = False
        self._recent = RecentBatches()
        self._files.forget(self.path)
        self._flags = os.O_RDONLY

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that holds `offset` or more, from this active segment.

        :raises StorageError: the disk refused.
        """
        self._mend()
        self.transactions.keep_below(offset)
        spot = self.locate(offset)
        if spot is None:
            # Only a gap lies behind `offset`.
            self.next_offset = min(self.next_offset, max(offset, self.base_offset))
            return
        # Up to the last entry of the .index, the .timeindex knows the largest timestamp.
        before = self.headers(self.indexes.boundary_before(spot.position - 1))
        kept = list(takewhile(lambda each: each[1] < spot.position, before))
        try:
            # In this order a failure in between leaves sparser indexes, which are right.
            self.indexes.cut(spot.position, spot.base_offset)
            os.ftruncate(self.open().fd, spot.position)
        except OSError as error:
            raise storage_error(f"Truncating {self.path} failed", error) from error
        self._recent.truncate(spot.position)
        self.size_bytes = spot.position
        self.next_offset = min(offset, spot.base_offset)
        if not self.size_bytes:
            self._first_timestamp = None
        self.indexes.observe(kept)
