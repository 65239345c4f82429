"""The `.txnindex` of a segment: transactions that a marker in it aborted.

Entries are fixed: version int16 = 0, producer id int64, first offset int64, last offset int64 (the
marker's), last stable offset int64 once the marker stood; in the order of their markers. Most
segments have no such file. Nothing of it is kept in memory.
Source: org.apache.kafka.storage.internals.log.{TransactionIndex,AbortedTxn} (Kafka 4.x).
"""

import os
import struct
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from broker.log.disk.durable import force_file, write_new
from broker.log.errors import storage_error

_ENTRY: Final = struct.Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    """A transaction whose records, from `first_offset` to its marker at `last_offset`, are void."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class _LastOffsets:
    """The last offsets of packed entries, as a sequence."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed) // _ENTRY.size

    def __getitem__(self, place: int) -> int:
        last: int = _ENTRY.unpack_from(self._packed, place * _ENTRY.size)[3]
        return last


class TransactionIndex:
    """The file of one segment, made with its first entry."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._is_there: bool | None = None

    def add(self, entries: Iterable[AbortedTransaction]) -> None:
        """Append; what an earlier append left behind is cut off before.

        :raises StorageError: the disk refused.
        """
        new = b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries)
        if not new:
            return
        self.keep_below(_LastOffsets(new)[0])
        try:
            with open(self.path, "ab") as file:
                file.write(new)
        except OSError as error:
            raise storage_error(f"Writing {self.path} failed", error) from error
        self._is_there = True

    def write(self, entries: Iterable[AbortedTransaction]) -> None:
        """Make the file, be there entries or not, on the disk.

        :raises OSError: the disk refused.
        """
        packed = (_ENTRY.pack(_VERSION, *entry) for entry in entries)
        write_new(self.path, packed, is_forced=True)
        self._is_there = True

    def keep_below(self, offset: int) -> None:
        """Drop the entries of markers at `offset` and above, and half an entry at the end.

        :raises StorageError: the disk refused.
        """
        packed = self._read()
        size_bytes = bisect_left(_LastOffsets(packed), offset) * _ENTRY.size
        if size_bytes == len(packed):
            return
        try:
            os.truncate(self.path, size_bytes)
        except OSError as error:
            raise storage_error(f"Truncating {self.path} failed", error) from error

    def entries(self) -> list[AbortedTransaction]:
        """All of them.

        :raises StorageError: the disk refused.
        """
        return _unpack(self._read())

    def collect(self, offset: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """Transactions that may have records within `offset`..`end`, and whether no later segment
        has further ones.

        :raises StorageError: the disk refused.
        """
        packed = self._read()
        start = bisect_left(_LastOffsets(packed), offset)
        found = []
        for entry in _unpack(packed[start * _ENTRY.size :]):
            if entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found, True
        return found, False

    def flush(self) -> None:
        """Force the file to the disk, if there is one.

        :raises OSError: the disk refused.
        """
        if self._is_there or os.path.exists(self.path):
            force_file(self.path)

    def _read(self) -> bytes:
        if self._is_there is False:
            return b""
        try:
            with open(self.path, "rb") as file:
                packed = file.read()
        except FileNotFoundError:
            self._is_there = False
            return b""
        except OSError as error:
            raise storage_error(f"Reading {self.path} failed", error) from error
        self._is_there = True
        return packed


class HasTransactions(Protocol):
    """A segment."""

    transactions: TransactionIndex


def collect_aborted(
    segments: Iterable[HasTransactions], offset: int, end: int
) -> list[AbortedTransaction]:
    """Aborted transactions that may have records within `offset`..`end`; `segments` are the one
    that holds `offset` and those behind it.

    :raises StorageError: the disk refused.
    """
    found: list[AbortedTransaction] = []
    for segment in segments:
        entries, is_complete = segment.transactions.collect(offset, end)
        found += entries
        if is_complete:
            break
    return found


def _unpack(packed: bytes) -> list[AbortedTransaction]:
    whole = len(packed) // _ENTRY.size * _ENTRY.size
    entries = (AbortedTransaction(*fields) for _, *fields in _ENTRY.iter_unpack(packed[:whole]))
    return list(entries)
