"""The reading half of a segment: look-ups by offset, position and time, and its files.

A sealed segment keeps no file open and nothing loaded until somebody asks.
Source: org.apache.kafka.storage.internals.log.LogSegment (Kafka 4.x).
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from broker.log.config import LogConfig
from broker.log.disk.durable import force, is_there, rename
from broker.log.errors import UnreadableFileError, storage_error
from broker.log.names import INDEX_SUFFIXES, LOG_SUFFIX, TXN_INDEX_SUFFIX, segment_path
from broker.log.segment.batch_scan import BatchSpot, iter_file_headers, spot_of
from broker.log.segment.offset_check import OffsetCheck, check_offsets, indexable, iter_places
from broker.log.segment.open_files import FilePool, FileSlice, OpenFile
from broker.log.segment.recent_batches import RecentBatches
from broker.log.segment.segment_indexes import SegmentIndexes
from broker.log.segment.transaction_index import TransactionIndex
from broker.protocol.records import BatchHeader

APPENDING: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentInfo:
    """Figures of a segment for the screens; times in ms since the epoch, -1 when unknown."""

    base_offset: int
    size_bytes: int
    index_entries: int
    time_index_entries: int
    created_ms: int
    largest_timestamp_ms: int
    is_active: bool


class SegmentReader:
    """`size_bytes` of whole batches with offsets in base_offset..next_offset - 1."""

    def __init__(
        self, directory: str, base_offset: int, *, files: FilePool, created_ms: int
    ) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.size_bytes = 0
        self.created_ms = created_ms
        self.is_active = True
        self.path = segment_path(directory, base_offset, LOG_SUFFIX)
        self._files = files
        self._flags = APPENDING
        self._indexes = SegmentIndexes(directory, base_offset, files=files)
        self.transactions = TransactionIndex(segment_path(directory, base_offset, TXN_INDEX_SUFFIX))
        self._is_loaded = True
        self._recent = RecentBatches()
        self._first_timestamp: int | None = None
        self._offset_check = OffsetCheck(0)

    @classmethod
    def found(cls, directory: str, base_offset: int, *, files: FilePool, next_offset: int) -> Self:
        """A sealed segment on disk; its indexes are opened when first needed.

        :raises UnreadableFileError: the disk refused.
        """
        path = segment_path(directory, base_offset, LOG_SUFFIX)
        try:
            stat = os.stat(path)
        except OSError as error:
            raise UnreadableFileError(path, error) from error
        created_ms = stat.st_mtime_ns // 1_000_000
        segment = cls(directory, base_offset, files=files, created_ms=created_ms)
        segment.size_bytes = stat.st_size
        segment._offset_check = OffsetCheck(stat.st_size)
        segment.next_offset = next_offset
        segment.is_active = False
        segment._flags = os.O_RDONLY
        segment._is_loaded = False
        return segment

    def open(self) -> OpenFile:
        """The .log file: for appending while active (created if need be), else read-only.

        :raises UnreadableFileError: the disk refused.
        """
        return self._files.open(self.path, self._flags)

    @property
    def indexes(self) -> SegmentIndexes:
        """Both indexes, loaded; made anew when they are missing or cannot be right."""
        if not self._is_loaded:
            if not self._indexes.load(self.size_bytes):
                self.rebuild_indexes(LogConfig())
            self._is_loaded = True
        return self._indexes

    def first_timestamp(self) -> int | None:
        """The largest timestamp of the first batch, which rolling by time counts from."""
        if self._first_timestamp is None and self.size_bytes:
            header, _ = next(self.headers(0))
            self._first_timestamp = header.max_timestamp
        return self._first_timestamp

    def slice(self, position: int, end: int) -> FileSlice:
        """The bytes between two positions.

        :raises UnreadableFileError: the disk refused, now or when bytes of this file were sent.
        :raises CorruptSegmentError: the base offset of a batch cannot be right.
        """
        if position < self._offset_check.found_bytes:
            self._check_found(position, end)
        found = FileSlice(file=self.open(), position=position, size_bytes=end - position)
        if found.file.is_suspect:
            found.verify()
        return found

    def _check_found(self, position: int, end: int) -> None:
        """Checks what was in the file at the start, before it counts for the first time."""
        check = self._offset_check
        if position >= check.found_bytes or not check.needs(position, end):
            return
        start = self.indexes.boundary_before(position - 1) if position else 0
        check_offsets(
            iter_places(self.open(), self.path, start, self.size_bytes),
            self.indexes,
            path=self.path,
            offset_range=(self.base_offset, self.next_offset),
            end=min(end, check.found_bytes),
        )
        check.note(position, end)

    def headers(self, position: int) -> Iterator[tuple[BatchHeader, int]]:
        """(header, position) of each batch from a batch start on.

        :raises CorruptSegmentError: the bytes on the way are not batches.
        """
        return iter_file_headers(self.open(), self.path, position, self.size_bytes)

    def locate(self, offset: int) -> BatchSpot | None:
        """The first batch whose last offset is >= `offset`; None when there is none here.

        :raises CorruptSegmentError: the bytes on the way are not batches.
        """
        if self._recent.covers_offset(offset):
            return self._recent.locate(offset, self.size_bytes)
        start = self.indexes.position_before(offset)
        for header, position in self.headers(start):
            if header.last_offset >= offset:
                return spot_of(header, position)
        self._check_found(start, self.size_bytes)
        return None

    def boundary(self, start: int, limit: int) -> int:
        """A batch boundary in start..limit, near `limit`; `start` must be one itself."""
        if limit >= self.size_bytes:
            return self.size_bytes
        if self._recent.covers_position(limit):
            return max(start, self._recent.boundary(limit))
        if (indexed := self.indexes.boundary_before(limit)) > start:
            return indexed
        boundary = start
        for header, position in self.headers(start):
            if position + header.size_bytes > limit:
                break
            boundary = position + header.size_bytes
        return boundary

    def offset_behind(self, position: int) -> int:
        """An offset that no batch before this position reaches, soon behind them."""
        return self.indexes.offset_behind(position) or self.next_offset

    def largest_timestamp(self) -> tuple[int, int]:
        """(timestamp in ms, last offset of its batch); the timestamp is -1 when none is known."""
        indexes = self.indexes
        return indexes.max_timestamp, indexes.max_timestamp_offset

    def info(self) -> SegmentInfo:
        """Figures for the screens."""
        index_entries, time_index_entries = self.indexes.entries()
        return SegmentInfo(
            base_offset=self.base_offset,
            size_bytes=self.size_bytes,
            index_entries=index_entries,
            time_index_entries=time_index_entries,
            created_ms=self.created_ms,
            largest_timestamp_ms=self.indexes.max_timestamp,
            is_active=self.is_active,
        )

    def rebuild_indexes(self, config: LogConfig) -> None:
        """Make both indexes anew from the batch headers.

        :raises StorageError: the disk refused, or the bytes are not batches.
        """
        try:
            headers = indexable(self.headers(0), self.path, self.base_offset)
            self._indexes.rebuild(headers, config)
            if not self.is_active:
                self._indexes.seal()
        except OSError as error:
            raise storage_error(f"Indexing {self.path} failed", error) from error
        self._is_loaded = True

    def flush(self) -> None:
        """Force the file to the disk; the indexes too once they are sealed.

        Those of an active segment are made anew after a crash.

        :raises StorageError: the disk refused.
        """
        try:
            force(self.open().fd, self.path)
            if not self.is_active:
                self.indexes.flush()
            self.transactions.flush()
        except OSError as error:
            raise storage_error(f"Flushing {self.path} failed", error) from error

    def close(self) -> None:
        """Give the open files back; those still being sent close when they are done."""
        for path in (self.path, self._indexes.offsets.path, self._indexes.times.path):
            self._files.forget(path)

    def remove(self, suffix: str = "") -> list[str]:
        """Take the files out of the partition.

        With a suffix they are renamed (and the new paths answered), else deleted at once.

        :raises StorageError: the disk refused; the .log is still there, for it goes last.
        """
        stem = self.path.removesuffix(LOG_SUFFIX)
        moved = []
        self.close()
        self._is_loaded = False
        self._flags &= ~os.O_CREAT
        try:
            for each in (*INDEX_SUFFIXES, LOG_SUFFIX):
                path = stem + each
                if not is_there(path):
                    continue
                if suffix:
                    rename(path, path + suffix)
                    moved.append(path + suffix)
                else:
                    os.unlink(path)
        except OSError as error:
            raise storage_error(f"Deleting {self.path} failed", error) from error
        return moved
