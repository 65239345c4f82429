"""Log compaction, the writing half: one run over a log, one group of segments after the other.

A group is written beside the log as `….log.cleaned` and its indexes, forced to the disk, and
then takes the place of its segments (`segment_swap`). The writing happens in a thread; it reads
files that nobody changes, and gives way to the event loop after every batch.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from broker.log.cleaner.cleaned_transactions import CleanedTransactions
from broker.log.cleaner.cleaning_policy import (
    BatchCleaner,
    CleaningPlan,
    KeyOffsets,
    SealedSegment,
    group_segments,
)
from broker.log.config import LogConfig
from broker.log.disk.durable import force, is_there
from broker.log.errors import CorruptSegmentError, StorageError
from broker.log.names import (
    CLEANED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    TXN_INDEX_SUFFIX,
    segment_path,
)
from broker.log.segment.batch_scan import iter_file_headers
from broker.log.segment.open_files import FilePool, OpenFile, write_all
from broker.log.segment.segment_indexes import SegmentIndexes, placed
from broker.log.segment.segment_swap import drop_cleaned
from broker.log.segment.transaction_index import AbortedTransaction, TransactionIndex
from broker.protocol.errors import MalformedRecordsError
from broker.protocol.records import (
    MAGIC_V2,
    BatchHeader,
    batch_crc_is_valid,
    parse_batch_header,
)

_WRITE_BYTES: Final = 1024 * 1024

T = TypeVar("T")
GiveWay = Callable[[], None]
"""Called between batches: sleeps as long as is fair, and raises to end the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """Input of a cleaning run, taken when it was planned; `last_offsets` is per producer id, and
    `aborted` has every aborted transaction with records in the segments."""

    directory: str
    config: LogConfig
    last_offsets: Mapping[int, int]
    truncations: int
    now_ms: int
    aborted: Sequence[AbortedTransaction] = ()


@dataclass(slots=True, kw_only=True)
class CompactionStats:
    """Progress of a cleaning run; sizes in bytes."""

    segments_before: int = 0
    segments_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


@dataclass(slots=True, kw_only=True)
class Compaction:
    """A run; `next_group` until it answers None, each group swapped in before the next."""

    plan: CleaningPlan
    settings: CompactionSettings
    stats: CompactionStats = field(default_factory=CompactionStats)
    _cleaner: BatchCleaner | None = None
    _groups: list[tuple[SealedSegment, ...]] = field(default_factory=list)
    _end_offset: int = -1

    @property
    def end_offset(self) -> int:
        """Up to here the log is clean once every group is swapped in."""
        return self._end_offset

    def next_group(self, give_way: GiveWay) -> tuple[SealedSegment, ...] | None:
        """Write the next group beside the log; None when all are done.

        :raises StorageError: a segment is damaged.
        :raises OSError: the disk refused.
        """
        if self._cleaner is None:
            self._cleaner = self._read_keys(give_way)
        if not self._groups:
            return None
        group = self._groups.pop(0)
        try:
            size_bytes = write_cleaned(self.settings, group, self._cleaner, give_way)
        except (OSError, StorageError):
            # What is half done must not take room, least of all on a full disk.
            drop_cleaned(self.settings.directory, group[0].base_offset)
            raise
        self.stats.segments_before += len(group)
        self.stats.segments_after += 1
        self.stats.bytes_before += sum(segment.size_bytes for segment in group)
        self.stats.bytes_after += size_bytes
        return group

    def _read_keys(self, give_way: GiveWay) -> BatchCleaner:
        """The newest offset of each dirty key, and what can be cleaned with that."""
        aborted = self.settings.aborted
        keys = KeyOffsets(self.plan.first_dirty_offset, CleanedTransactions(aborted))
        self._end_offset = self._gather(keys, give_way)
        if self._end_offset > self.plan.first_dirty_offset:
            within = [s for s in self.plan.segments if s.base_offset < self._end_offset]
            self._groups = group_segments(within, self.settings.config)
        return BatchCleaner(
            keys,
            self.settings.last_offsets,
            now_ms=self.settings.now_ms,
            delete_retention_ms=self.settings.config.delete_retention_ms,
            transactions=CleanedTransactions(aborted),
        )

    def _gather(self, keys: KeyOffsets, give_way: GiveWay) -> int:
        for segment in self.plan.segments:
            if segment.next_offset <= self.plan.first_dirty_offset:
                continue
            for header, position, batch in read_batches(segment):
                give_way()
                if header.last_offset < self.plan.first_dirty_offset:
                    continue
                if not _apply(keys.add, batch, segment, position):
                    return keys.end_offset
        return self.plan.end_offset


def read_batches(segment: SealedSegment) -> Iterator[tuple[BatchHeader, int, bytes]]:
    """Every batch of a segment with its position, checksums checked.

    :raises CorruptSegmentError: what is there is not a whole batch.
    :raises OSError: the file cannot be read.
    """
    file = OpenFile(segment.path, os.O_RDONLY)
    for header, position in iter_file_headers(file, segment.path, 0, segment.size_bytes):
        batch = file.read(header.size_bytes, position)
        if header.magic != MAGIC_V2 or not batch_crc_is_valid(batch, header):
            reason = f"the CRC of the batch at offset {header.base_offset} is wrong"
            raise CorruptSegmentError(segment.path, position, reason)
        yield header, position, batch


def write_cleaned(
    settings: CompactionSettings,
    group: tuple[SealedSegment, ...],
    cleaner: BatchCleaner,
    give_way: GiveWay,
) -> int:
    """Write what is left of a group, with its indexes, under `.cleaned` names, on the disk.

    The file is as old as the newest of its sources. Answers its size in bytes.

    :raises StorageError: a segment is damaged.
    :raises OSError: the disk refused.
    """
    base_offset = group[0].base_offset
    stem = segment_path(settings.directory, base_offset, "")
    for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
        if is_there(path := f"{stem}{suffix}{CLEANED_SUFFIX}"):
            os.unlink(path)
    path = f"{stem}{LOG_SUFFIX}{CLEANED_SUFFIX}"
    target = OpenFile(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    indexes = SegmentIndexes(
        settings.directory, base_offset, files=FilePool(), suffix=CLEANED_SUFFIX
    )
    size_bytes = 0
    pending: list[memoryview | bytes] = []
    pending_bytes = 0
    for segment in group:
        for _, position, batch in read_batches(segment):
            give_way()
            kept = _apply(cleaner.clean, batch, segment, position)
            if not kept:
                continue
            indexes.note([placed(parse_batch_header(kept))], size_bytes, settings.config)
            size_bytes += len(kept)
            pending.append(kept)
            pending_bytes += len(kept)
            if pending_bytes >= _WRITE_BYTES:
                write_all(target.fd, pending)
                pending, pending_bytes = [], 0
    write_all(target.fd, pending)
    indexes.seal()
    indexes.flush()
    _write_aborted(group, stem, cleaner)
    newest = os.stat(group[-1].path)
    os.utime(path, ns=(newest.st_atime_ns, newest.st_mtime_ns))
    force(target.fd, path)
    return size_bytes


def _write_aborted(group: tuple[SealedSegment, ...], stem: str, cleaner: BatchCleaner) -> None:
    """The .txnindex of a group, if one of its segments has one."""
    kept = cleaner.transactions.take_kept()
    sources = (segment.path.removesuffix(LOG_SUFFIX) + TXN_INDEX_SUFFIX for segment in group)
    if any(map(is_there, sources)):
        TransactionIndex(f"{stem}{TXN_INDEX_SUFFIX}{CLEANED_SUFFIX}").write(kept)


def _apply(step: Callable[[bytes], T], batch: bytes, segment: SealedSegment, position: int) -> T:
    try:
        return step(batch)
    except MalformedRecordsError as error:
        raise CorruptSegmentError(segment.path, position, str(error)) from error
