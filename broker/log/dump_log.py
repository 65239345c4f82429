"""Looking into a partition's directory, without the broker that writes it.

Pure reading: nothing is locked, repaired or kept open, so it may look at a live partition, at
Kafka's own files and at what recovery set aside. What is damaged is shown as damaged.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from broker.log.errors import (
    CorruptSegmentError,
    OffsetOutOfRangeError,
    StorageError,
    storage_error,
)
from broker.log.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    base_offset_of,
    segment_path,
)
from broker.log.segment.batch_scan import header_damage
from broker.log.segment.index import OFFSET_ENTRY, TIME_ENTRY
from broker.log.segment.open_files import OpenFile
from broker.protocol.compression import codec_name
from broker.protocol.errors import MalformedRecordsError
from broker.protocol.message_formats import (
    MAGIC_POSITION,
    MAGIC_V0,
    MAGIC_V1,
    crc_is_valid,
    header_at,
    open_batch,
)
from broker.protocol.records import HEADER_BYTES, MAGIC_V2, NO_TIMESTAMP, BatchHeader, Record
from broker.protocol.rewrite import delete_horizon_ms

_WINDOW_BYTES: Final = 8192
"""Read at once: many headers when batches are small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentView:
    """One segment's files; sizes in bytes, times in ms since the epoch (-1 unknown).

    `records` counts what the batch headers say, `last_offset` is base_offset - 1 when empty.
    `damage` tells what is wrong in the .log and where, None when every header is in order.
    """

    base_offset: int
    last_offset: int
    path: str
    size_bytes: int
    batches: int
    records: int
    first_timestamp_ms: int
    largest_timestamp_ms: int
    modified_ms: int
    index_entries: int
    index_size_bytes: int
    time_index_entries: int
    time_index_size_bytes: int
    has_snapshot: bool
    is_active: bool
    damage: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """An entry of the .index: the last offset of the batch that starts at `position` (bytes)."""

    offset: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeIndexEntry:
    """An entry of the .timeindex: up to `offset` no record is younger than `timestamp_ms`."""

    timestamp_ms: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchView:
    """A batch as it lies in the file: `position` and `size_bytes` in bytes, codec by name."""

    header: BatchHeader
    position: int
    codec: str
    is_crc_valid: bool

    @property
    def size_bytes(self) -> int:
        """The whole batch, header included."""
        return self.header.size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """A record, the batch that holds it, and how a reader gets there.

    `index_entry` is where a look-up by offset enters the file; None: at its start.
    """

    record: Record
    batch: BatchView
    segment_path: str
    index_entry: IndexEntry | None


def list_segments(directory: str) -> tuple[SegmentView, ...]:
    """All segments, oldest first, each walked through by its batch headers.

    :raises StorageError: the directory cannot be read.
    """
    bases = _base_offsets(directory)
    return tuple(_segment_view(directory, base, is_active=base == bases[-1]) for base in bases)


def read_index(directory: str, base_offset: int) -> tuple[IndexEntry, ...]:
    """The .index of a segment; empty when there is none.

    :raises StorageError: it cannot be read.
    """
    content = _read_whole(segment_path(directory, base_offset, OFFSET_INDEX_SUFFIX))
    whole = content[: len(content) // OFFSET_ENTRY.size * OFFSET_ENTRY.size]
    return tuple(
        IndexEntry(offset=base_offset + relative, position=position)
        for relative, position in OFFSET_ENTRY.iter_unpack(whole)
        if position or relative
    )


def read_time_index(directory: str, base_offset: int) -> tuple[TimeIndexEntry, ...]:
    """The .timeindex of a segment; empty when there is none.

    :raises StorageError: it cannot be read.
    """
    content = _read_whole(segment_path(directory, base_offset, TIME_INDEX_SUFFIX))
    whole = content[: len(content) // TIME_ENTRY.size * TIME_ENTRY.size]
    return tuple(
        TimeIndexEntry(timestamp_ms=timestamp, offset=base_offset + relative)
        for timestamp, relative in TIME_ENTRY.iter_unpack(whole)
        if timestamp or relative
    )


def iter_batches(
    directory: str, base_offset: int, *, position: int = 0, limit: int | None = None
) -> Iterator[BatchView]:
    """The batches of a segment from a batch start on, CRCs checked.

    :raises CorruptSegmentError: after the last good batch, when what follows is not one.
    :raises StorageError: the file cannot be read.
    """
    path = segment_path(directory, base_offset, LOG_SUFFIX)
    file, size_bytes = _open(path)
    for header, start in islice(_iter_headers(file, path, position, size_bytes), limit):
        yield _batch_view(file, header, start)


def iter_records_of(directory: str, base_offset: int, batch: BatchView) -> Iterator[Record]:
    """The records of a batch of any format, decompressed.

    :raises CorruptSegmentError: at the first that cannot be opened.
    """
    path = segment_path(directory, base_offset, LOG_SUFFIX)
    file, _ = _open(path)
    content = os.pread(file.fd, batch.size_bytes, batch.position)
    try:
        _, records = open_batch(content, batch.header)
        yield from records
    except MalformedRecordsError as error:
        raise CorruptSegmentError(path, batch.position, str(error)) from error


def find_record(directory: str, offset: int) -> RecordView:
    """The record at an offset, found as a broker finds it: segment, index entry, batch.

    :raises OffsetOutOfRangeError: no batch of this partition holds it.
    :raises StorageError: a file cannot be read, or is damaged on the way.
    """
    bases = _base_offsets(directory)
    slot = bisect_right(bases, offset) - 1
    if slot >= 0:
        base = bases[slot]
        entry = _entry_before(read_index(directory, base), offset)
        start = entry.position if entry else 0
        for batch in iter_batches(directory, base, position=start):
            if batch.header.last_offset < offset:
                continue
            for record in iter_records_of(directory, base, batch):
                if record.offset == offset:
                    path = segment_path(directory, base, LOG_SUFFIX)
                    return RecordView(
                        record=record, batch=batch, segment_path=path, index_entry=entry
                    )
            break
    first = bases[0] if bases else 0
    raise OffsetOutOfRangeError(offset, first, _end_offset(directory, bases))


def _entry_before(entries: tuple[IndexEntry, ...], offset: int) -> IndexEntry | None:
    slot = bisect_right(entries, offset, key=lambda entry: entry.offset) - 1
    return entries[slot] if slot >= 0 else None


def _end_offset(directory: str, bases: list[int]) -> int:
    if not bases:
        return 0
    return _segment_view(directory, bases[-1], is_active=True).last_offset + 1


@dataclass(slots=True, kw_only=True)
class _Walk:
    """Sums over the batch headers of a segment."""

    last_offset: int
    batches: int = 0
    records: int = 0
    first_timestamp_ms: int = NO_TIMESTAMP
    largest_timestamp_ms: int = NO_TIMESTAMP
    damage: str | None = None

    def add(self, header: BatchHeader) -> None:
        if not self.batches:
            # Where compaction has set a delete horizon, it stands in the base timestamp's place.
            has_horizon = delete_horizon_ms(header) is not None
            self.first_timestamp_ms = NO_TIMESTAMP if has_horizon else header.base_timestamp
        self.batches += 1
        is_old_wrapper = header.magic < MAGIC_V2 and header.codec
        # What it holds it does not say; its offsets do, as long as nothing was compacted away.
        spanned = header.last_offset - self.last_offset
        self.records += spanned if is_old_wrapper else header.records_count
        self.last_offset = header.last_offset
        self.largest_timestamp_ms = max(self.largest_timestamp_ms, header.max_timestamp)


def _iter_headers(
    file: OpenFile, path: str, position: int, end: int
) -> Iterator[tuple[BatchHeader, int]]:
    """As ``iter_file_headers``, of every format that Kafka has written."""
    window, window_position = b"", position
    while position < end:
        if position + HEADER_BYTES > window_position + len(window):
            window, window_position = os.pread(file.fd, _WINDOW_BYTES, position), position
        at = position - window_position
        if len(window) - at <= MAGIC_POSITION:
            raise CorruptSegmentError(path, position, f"only {end - position} bytes of a batch")
        try:
            header = header_at(window[at : at + HEADER_BYTES].ljust(HEADER_BYTES, b"\0"), 0)
        except MalformedRecordsError as error:
            raise CorruptSegmentError(path, position, str(error)) from error
        is_old = header.magic in (MAGIC_V0, MAGIC_V1) and header.size_bytes <= end - position
        if not is_old and (reason := header_damage(header, end - position)) is not None:
            raise CorruptSegmentError(path, position, reason)
        yield header, position
        position += header.size_bytes


def _walk(file: OpenFile, path: str, base_offset: int, size_bytes: int) -> _Walk:
    walk = _Walk(last_offset=base_offset - 1)
    try:
        for header, _ in _iter_headers(file, path, 0, size_bytes):
            walk.add(header)
    except CorruptSegmentError as error:
        walk.damage = f"{error.reason} at position {error.position}"
    return walk


def _segment_view(directory: str, base_offset: int, *, is_active: bool) -> SegmentView:
    path = segment_path(directory, base_offset, LOG_SUFFIX)
    file, size_bytes = _open(path)
    walk = _walk(file, path, base_offset, size_bytes)
    return SegmentView(
        base_offset=base_offset,
        last_offset=walk.last_offset,
        path=path,
        size_bytes=size_bytes,
        batches=walk.batches,
        records=walk.records,
        first_timestamp_ms=walk.first_timestamp_ms,
        largest_timestamp_ms=walk.largest_timestamp_ms,
        modified_ms=os.fstat(file.fd).st_mtime_ns // 1_000_000,
        index_entries=len(read_index(directory, base_offset)),
        index_size_bytes=_size_of(segment_path(directory, base_offset, OFFSET_INDEX_SUFFIX)),
        time_index_entries=len(read_time_index(directory, base_offset)),
        time_index_size_bytes=_size_of(segment_path(directory, base_offset, TIME_INDEX_SUFFIX)),
        has_snapshot=os.path.exists(segment_path(directory, base_offset, SNAPSHOT_SUFFIX)),
        is_active=is_active,
        damage=walk.damage,
    )


def _batch_view(file: OpenFile, header: BatchHeader, position: int) -> BatchView:
    return BatchView(
        header=header,
        position=position,
        codec=codec_name(header.codec),
        is_crc_valid=crc_is_valid(os.pread(file.fd, header.size_bytes, position), header),
    )


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        raise StorageError(
            f"{directory} does not exist",
            "no partition lies there",
            "Give the directory of a partition, <log.dirs>/<topic>-<partition>, of a broker that "
            "has a replica of it",
        ) from None
    except OSError as error:
        raise storage_error(f"Reading {directory} failed", error) from error


def _base_offsets(directory: str) -> list[int]:
    bases = (base_offset_of(name, LOG_SUFFIX) for name in _names(directory))
    return sorted(base for base in bases if base is not None)


def _open(path: str) -> tuple[OpenFile, int]:
    """A file and its size as it is now; a live one may grow while it is read."""
    try:
        file = OpenFile(path, os.O_RDONLY)
    except OSError as error:
        raise storage_error(f"Opening {path} failed", error) from error
    return file, os.fstat(file.fd).st_size


def _size_of(path: str) -> int:
    return os.stat(path).st_size if os.path.exists(path) else 0


def _read_whole(path: str) -> bytes:
    if not os.path.exists(path):
        return b""
    file, size_bytes = _open(path)
    return os.pread(file.fd, size_bytes, 0)
