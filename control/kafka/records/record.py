"""Records that a topic gives, gaps where nothing can be read, and words about both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import compress
from typing import Final, NamedTuple

from broker.protocol.compression import codec_name
from broker.protocol.records import BatchHeader
from control.model.ids import TopicPartition

KEPT_BYTES: Final = 64 << 10
"""Of a key, a value or a header that is read to be shown in a list; a page can ask for the rest."""


class Transaction(StrEnum):
    """State of the transaction that wrote a record."""

    NONE = ""
    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    """Neither committed nor aborted when it was read."""


class Isolation(StrEnum):
    """Which records of transactions are read, in Kafka's own words."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeSizes:
    """Sizes in bytes before a record was cut."""

    key: int
    value: int
    headers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedPart:
    """A key or value after masking rules replaced fields of it, or all: a document is JSON text."""

    format: str
    """As it was decoded."""
    is_document: bool
    schema_id: int | None = None
    type_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRecord:
    """A record and the batch it came in. `key` and `value` null is null, not empty; where
    `whole` is set, they and the headers' values may be only the beginning. Where `masked` is set,
    masking rules have replaced something: the record is not what the log holds."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    batch: BatchHeader
    crc_is_valid: bool
    transaction: Transaction = Transaction.NONE
    whole: WholeSizes | None = None
    masked: Mapping[str, MaskedPart] | None = None
    """By ``key`` and ``value``, where these were masked; empty: only headers were."""

    @property
    def codec_name(self) -> str:
        """Compression of the batch."""
        return codec_name(self.batch.codec)

    @property
    def size_bytes(self) -> int:
        """Key and value, without overhead, whole."""
        return self.key_bytes + self.value_bytes

    @property
    def key_bytes(self) -> int:
        """Size of the whole key; 0 for null."""
        return self.whole.key if self.whole else len(self.key or b"")

    @property
    def value_bytes(self) -> int:
        """Size of the whole value; 0 for null."""
        return self.whole.value if self.whole else len(self.value or b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Offsets `first_offset` to `last_offset` of a partition that could not be read, and why.

    `records` is how many the batch claims to hold; None where that cannot be known.
    """

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    records: int | None
    reason: str

    @property
    def count(self) -> int:
        """How many records are missing, at most."""
        offsets = self.last_offset - self.first_offset + 1
        return offsets if self.records is None else min(self.records, offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A partition that could not be read to the end that was asked for, and why."""

    partition: TopicPartition
    reason: str


class Passed(NamedTuple):
    """Records in a row, without a hole, that were scanned and are not looked for.

    `timestamp_ms` is the newest time among them.
    """

    offset: int
    timestamp_ms: int
    last_offset: int

    @property
    def record_count(self) -> int:
        """One for each offset."""
        return self.last_offset - self.offset + 1


Item = FetchedRecord | Gap | Passed
Mask = Callable[[FetchedRecord], FetchedRecord]
"""Gives the record as who reads may see it."""
Matches = Callable[[FetchedRecord], bool]
Matching = Callable[[Sequence[FetchedRecord]], Sequence[bool]]
"""A test of many records at a time, where one at a time would cost more."""
MayMatch = Callable[[bytes | memoryview], bool]
"""Whether the decompressed records of a batch may hold one that is looked for."""


def looked_for(
    records: Iterable[FetchedRecord], matches: Matches | None, matching: Matching | None
) -> list[FetchedRecord]:
    """Those that pass both tests, where there are any."""
    found = [each for each in records if matches is None or matches(each)]
    if matching is None or not found:
        return found
    return list(compress(found, matching(found)))


def first_offset_of(item: Item) -> int:
    """Where an item begins."""
    return item.first_offset if isinstance(item, Gap) else item.offset


def last_offset_of(item: Item) -> int:
    """Where an item ends."""
    return item.offset if isinstance(item, FetchedRecord) else item.last_offset


def cut_record(record: FetchedRecord, kept_bytes: int) -> FetchedRecord:
    """The record with at most so much of its key, its value and each header."""
    sizes = [len(value or b"") for _, value in record.headers]
    key_bytes, value_bytes = len(record.key or b""), len(record.value or b"")
    if max(key_bytes, value_bytes, *sizes, 0) <= kept_bytes:
        return record
    return replace(
        record,
        key=None if record.key is None else record.key[:kept_bytes],
        value=None if record.value is None else record.value[:kept_bytes],
        headers=tuple(
            (name, None if value is None else value[:kept_bytes]) for name, value in record.headers
        ),
        whole=WholeSizes(key=key_bytes, value=value_bytes, headers=sum(sizes)),
    )
