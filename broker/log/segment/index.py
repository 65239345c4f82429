"""Sparse indexes of a segment, in Kafka's formats.

`.index`: 8-byte entries, int32 offset relative to the base offset, int32 position in the .log.
`.timeindex`: 12-byte entries, int64 timestamp, int32 relative offset of the batch that had it.
Both are sorted. Kafka pads the files of an active segment with zeros, because it maps them; its
own tools then call the time index corrupt. Ours end with their last entry at every moment, which
Kafka opens just as well. Only the last entry is kept in memory, and the whole index of the few
segments in which somebody looks for old records. Files are written, not mapped: on a full disk a
write fails with an error where a mapped page would kill the process.
Source: org.apache.kafka.storage.internals.log.{OffsetIndex,TimeIndex} (Kafka 4.x).
"""

import errno
import os
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from broker.log.disk.durable import force
from broker.log.errors import StorageError, UnreadableFileError
from broker.log.segment.index_cache import Columns
from broker.log.segment.open_files import FilePool

_ZEROS: Final = (0, 0)


class SparseIndex:
    """Fixed-size entries of two rising fields; `entries` is their number."""

    def __init__(self, path: str, layout: struct.Struct, *, files: FilePool) -> None:
        self.path = path
        self.entries = 0
        self.last: tuple[int, int] = _ZEROS
        self._layout = layout
        self._files = files
        self._is_on_disk = False
        self._flags = os.O_RDONLY

    def load(self) -> bool:
        """Take over what is on disk; False when it is missing or not made of whole entries.

        :raises UnreadableFileError: the disk refused.
        """
        try:
            size_bytes = os.stat(self.path).st_size
        except FileNotFoundError:
            return False
        except OSError as error:
            raise UnreadableFileError(self.path, error) from error
        if size_bytes % self._layout.size:
            return False
        self._is_on_disk = True
        self.entries = size_bytes // self._layout.size
        self.last = self.entry(self.entries - 1) if self.entries else _ZEROS
        return self.last != _ZEROS or self.entries <= 1

    def entry(self, slot: int) -> tuple[int, int]:
        """The entry in `slot`, 0 <= slot < entries.

        :raises StorageError: it cannot be read.
        """
        size = self._layout.size
        first, second = self._layout.unpack(self._read(size, slot * size))
        return first, second

    def _read(self, size_bytes: int, position: int) -> bytes:
        raw = self._files.open(self.path, self._flags).read(size_bytes, position)
        if len(raw) < size_bytes:
            raise StorageError(
                f"{self.path} has become shorter",
                f"{size_bytes} bytes at position {position} are missing",
                "Another program changed it: restart this broker, which makes the index anew",
            )
        return raw

    def add(self, entries: Sequence[tuple[int, int]]) -> None:
        """Append entries.

        :raises OSError: the index then still has its old entries.
        """
        if not entries:
            return
        fd = self._open_for_writing()
        packed = b"".join([self._layout.pack(*entry) for entry in entries])
        written = os.pwrite(fd, packed, self.entries * self._layout.size)
        if written < len(packed):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        self._is_on_disk = True
        self.entries += len(entries)
        self.last = entries[-1]
        if (columns := self._files.indexes.get(self.path)) is not None:
            for first, second in entries:
                columns[0].append(first)
                columns[1].append(second)

    def floor(self, field: int, target: int) -> int:
        """The last slot whose field (0 or 1) is <= target, or -1."""
        if not self.entries:
            return -1
        if self.last[field] <= target:
            return self.entries - 1
        return bisect_right(self._columns()[field], target) - 1

    def _columns(self) -> Columns:
        """Both fields of all entries, read when first needed."""
        columns = self._files.indexes.get(self.path)
        if columns is None or len(columns[0]) != self.entries:
            raw = self._read(self.entries * self._layout.size, 0)
            columns = array("q"), array("q")
            for first, second in self._layout.iter_unpack(raw):
                columns[0].append(first)
                columns[1].append(second)
            self._files.indexes.put(self.path, columns)
        return columns

    def keep(self, entries: int) -> None:
        """Drop all but the first `entries`, and whatever a failed `add` left behind them."""
        if not self._is_on_disk:
            return
        last = self.last
        if entries != self.entries:
            last = self.entry(entries - 1) if entries else _ZEROS
            self._files.indexes.forget(self.path)
        os.ftruncate(self._open_for_writing(), entries * self._layout.size)
        self.entries, self.last = entries, last

    def reset(self) -> None:
        """Forget every entry, in memory and on disk."""
        os.ftruncate(self._open_for_writing(), 0)
        self._files.indexes.forget(self.path)
        self.entries = 0
        self.last = _ZEROS
        self._is_on_disk = True

    def flush(self) -> None:
        """Force the entries to the disk.

        :raises ForceFailedError: they may be lost.
        """
        force(self._open_for_writing(), self.path)

    def seal(self) -> None:
        """From now on open read-only; an index without entries becomes an empty file."""
        if not self._is_on_disk:
            self._open_for_writing()
            self._is_on_disk = True
        self._files.forget(self.path)
        self._flags = os.O_RDONLY

    def _open_for_writing(self) -> int:
        if self._flags == os.O_RDONLY:
            self._files.forget(self.path)
            self._flags = os.O_RDWR | os.O_CREAT
        return self._files.open(self.path, self._flags).fd

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return (self.entry(slot) for slot in range(self.entries))


OFFSET_ENTRY: Final = struct.Struct(">ii")
TIME_ENTRY: Final = struct.Struct(">qi")


def offset_index(path: str, files: FilePool) -> SparseIndex:
    """Entries (relative offset, position)."""
    return SparseIndex(path, OFFSET_ENTRY, files=files)


def time_index(path: str, files: FilePool) -> SparseIndex:
    """Entries (timestamp in ms, relative offset)."""
    return SparseIndex(path, TIME_ENTRY, files=files)
