"""Opens what a Fetch gave, record by record: what is damaged becomes a gap, the rest is shown.

Pure, and lazy: a batch that claims millions of records is opened as far as somebody asks.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

from broker.protocol.compression import decompress
from broker.protocol.errors import MalformedRecordsError
from broker.protocol.message_formats import crc_is_valid, iter_batches, open_batch
from broker.protocol.records import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC_V2,
    BatchHeader,
    Record,
)
from control.kafka.records.record import FetchedRecord, Gap, Item, MayMatch, Passed, Transaction
from control.model.ids import TopicPartition

_LENGTH: Final = struct.Struct(">i")
_LENGTH_POSITION: Final = 8
_ABORT: Final = b"\x00\x00\x00\x00"
"""The key of a marker that aborts a transaction: version 0, type 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTransaction:
    """A producer's transaction that was aborted, and its first offset in this partition."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedBytes:
    """The bytes of one partition in a Fetch answer.

    `end_offset` is the high watermark; at or behind `stable_offset` transactions are open.
    `aborted` is None where the broker was not asked for it.
    """

    data: bytes
    end_offset: int
    stable_offset: int
    log_start_offset: int = -1
    aborted: tuple[AbortedTransaction, ...] | None = None


class ChunkDecoder:
    """Opens the records of one partition's fetched bytes.

    `next_offset` is where to read on, as far as it has come. Where it stays at `position`, nothing
    of the bytes could be used: `damage` says why, or `partial_bytes` how large the batch is of
    which only a part was sent.
    """

    def __init__(
        self,
        partition: TopicPartition,
        fetched: FetchedBytes,
        position: int,
        *,
        first_offset: int | None = None,
        may_match: MayMatch | None = None,
    ) -> None:
        """`position` is what was asked for. The batch that holds it may begin earlier; its records
        count from `first_offset` on, else from `position` on. Batches in which nothing may match
        are not opened: they are one ``Passed``."""
        self._partition = partition
        self._fetched = fetched
        self._first_offset = position if first_offset is None else first_offset
        self._may_match = may_match
        self._marks = TransactionMarks(fetched)
        self._items = self._iterate()
        self.next_offset = position
        self.is_done = False
        self.damage: str | None = None
        self.partial_bytes = 0

    def take(self, count: int) -> list[Item]:
        """The next ones, fewer only at the end."""
        found = list(islice(self._items, count))
        self.is_done = len(found) < count
        return found

    def _iterate(self) -> Iterator[Item]:
        data = memoryview(self._fetched.data)
        end = 0
        try:
            for header, start in iter_batches(data):
                end = start + header.size_bytes
                yield from self._batch(data[start:end], header)
        except MalformedRecordsError as error:
            self.damage = str(error)
        if not end and self.damage is None and len(data) >= LOG_OVERHEAD_BYTES:
            (length,) = _LENGTH.unpack_from(data, _LENGTH_POSITION)
            self.partial_bytes = length + LOG_OVERHEAD_BYTES

    def _batch(self, batch: memoryview, header: BatchHeader) -> Iterator[Item]:
        if not self._is_plausible(header):
            span = f"offsets {header.base_offset} to {header.last_offset}"
            self.damage = f"the header of its batch is damaged ({span})"
            return
        if self.damage is not None and header.base_offset > self.next_offset:
            yield self._gap(self.next_offset, header.base_offset - 1, None, self.damage)
        self.damage = None
        read_to = max(self._first_offset, header.base_offset)
        try:
            if self._is_passed(batch, header):
                self._marks.transaction_of(header)
                if read_to <= header.last_offset:
                    yield Passed(read_to, header.max_timestamp, header.last_offset)
                self.next_offset = max(self.next_offset, header.last_offset + 1)
                return
            told, records = open_batch(batch, header)
            if header.is_control:
                self._marks.handle_control(header, records)
            else:
                read_to = max(self._first_offset, told.base_offset)
                for record in self._records(batch, told, records):
                    read_to = record.offset + 1
                    self.next_offset = max(self.next_offset, read_to)
                    yield record
        except MalformedRecordsError as error:
            if read_to <= header.last_offset:
                count = header.records_count if header.magic == MAGIC_V2 else None
                yield self._gap(read_to, header.last_offset, count, str(error))
        self.next_offset = max(self.next_offset, header.last_offset + 1)

    def _is_passed(self, batch: memoryview, header: BatchHeader) -> bool:
        """Whether nothing in it may match, as far as that is seen without opening it. Only opening
        tells which records compaction has left in a batch with holes."""
        if self._may_match is None or header.magic != MAGIC_V2 or header.is_control:
            return False
        if header.records_count != header.last_offset - header.base_offset + 1:
            return False
        return not self._may_match(decompress(header.codec, batch[HEADER_BYTES:]))

    def _records(
        self, batch: memoryview, header: BatchHeader, records: Iterable[Record]
    ) -> Iterator[FetchedRecord]:
        is_valid = crc_is_valid(batch, header)
        transaction = self._marks.transaction_of(header)
        for record in records:
            if not header.base_offset <= record.offset <= header.last_offset:
                raise MalformedRecordsError(f"a record claims offset {record.offset}")
            if record.offset >= self._first_offset:
                yield FetchedRecord(
                    topic=self._partition.topic,
                    partition=self._partition.partition,
                    offset=record.offset,
                    timestamp_ms=record.timestamp,
                    key=record.key,
                    value=record.value,
                    headers=record.headers,
                    batch=header,
                    crc_is_valid=is_valid,
                    transaction=transaction,
                )

    def _is_plausible(self, header: BatchHeader) -> bool:
        end = self._fetched.end_offset
        return 0 <= header.base_offset <= header.last_offset and (
            end < 0 or header.last_offset < end
        )

    def _gap(self, first: int, last: int, records: int | None, reason: str) -> Gap:
        return Gap(
            topic=self._partition.topic,
            partition=self._partition.partition,
            first_offset=first,
            last_offset=last,
            records=records,
            reason=reason,
        )


class TransactionMarks:
    """Which batches are of aborted transactions, as Kafka's consumer finds out: a transaction is
    aborted from its first offset to its marker. Behind the last stable offset, where no broker
    tells, the markers among the fetched bytes do."""

    def __init__(self, fetched: FetchedBytes) -> None:
        aborted = fetched.aborted
        self._fetched = fetched
        self._coming = sorted(aborted or (), key=lambda it: it.first_offset, reverse=True)
        self._aborted: set[int] = set()
        self._markers: dict[int, list[tuple[int, bool]]] | None = None

    def transaction_of(self, header: BatchHeader) -> Transaction:
        """State of the transaction of a batch; batches must come in order of offset."""
        if not header.is_transactional:
            return Transaction.NONE
        self._advance(header)
        if header.producer_id in self._aborted:
            return Transaction.ABORTED
        if self._fetched.aborted is not None and header.base_offset < self._fetched.stable_offset:
            return Transaction.COMMITTED
        if self._markers is None:
            self._markers = _markers_of(self._fetched.data)
        for offset, is_abort in self._markers.get(header.producer_id, ()):
            if offset > header.base_offset:
                return Transaction.ABORTED if is_abort else Transaction.COMMITTED
        return Transaction.OPEN

    def handle_control(self, header: BatchHeader, records: Iterable[Record]) -> None:
        """A marker ends its producer's transaction."""
        self._advance(header)
        if any(record.key == _ABORT for record in records):
            self.end_transaction(header)

    def end_transaction(self, header: BatchHeader) -> None:
        """The same of a batch that is known to hold a marker, whichever."""
        self._advance(header)
        self._aborted.discard(header.producer_id)

    def _advance(self, header: BatchHeader) -> None:
        while self._coming and self._coming[-1].first_offset <= header.last_offset:
            self._aborted.add(self._coming.pop().producer_id)


def _markers_of(data: bytes) -> dict[int, list[tuple[int, bool]]]:
    """By producer: the offsets of its markers, and whether they abort."""
    found: dict[int, list[tuple[int, bool]]] = {}
    view = memoryview(data)
    with suppress(MalformedRecordsError):
        for header, start in iter_batches(view):
            if header.is_control:
                _, records = open_batch(view[start : start + header.size_bytes], header)
                is_abort = any(record.key == _ABORT for record in records)
                found.setdefault(header.producer_id, []).append((header.base_offset, is_abort))
    return found
