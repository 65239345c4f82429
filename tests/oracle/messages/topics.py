"""Random topics, as bytes of batches and as the records that they hold: all codecs, binary keys,
doubled headers, holes, deleted beginnings, transactions, and times in order or not."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from broker.protocol.records import NewRecord, build_batch

NOW_MS: Final = 1_780_000_000_000
CODECS: Final = 5
_COMMIT, _ABORT = b"\x00\x00\x00\x01", b"\x00\x00\x00\x00"
_WILD: Final = (0, 1, NOW_MS, NOW_MS + 1, NOW_MS * 1_000, 2**53, 951_782_400_000)
KEYS: Final = (
    None, b"", b"null", b'"null"', b'""', b"order-7", b"order-\xff7", b"order-\n7", b"a.b", b"a*b",
    b"0xdead", b'"0xdead"', b"\xde\xad", b"0xdead-1", b"\xde\xad\xbe\xef", b"0x", b"\xff", b"\x00",
    "Grüße".encode(), "ΣΙΓΜΑ".encode(), b"axb", b"a\xffb", b"a\nb", b"dead",
)  # fmt: skip
VALUES: Final = (
    None, b"", b'{"n": 3}', b'{"n": 7, "s": "order-7"}', b"[1]", b"plain order-7", b"\xde\xad\x00",
    b"a\xff order-\n7 b", "STRASSE É".encode(), b"0xdead", b"{", b"x" * 3_000,
)  # fmt: skip
NAMES: Final = ("trace", "t", "", "Grüße", "a=b")
NO_PRODUCER: Final = -1
Header = tuple[str, bytes | None]


class Written(NamedTuple):
    """A record as it was written."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    producer: int


@dataclass
class Part:
    """A partition: what it holds, and what a broker tells of it."""

    records: list[Written] = field(default_factory=list)
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """Producer, first offset and marker of each transaction that was aborted."""
    aborted_offsets: set[int] = field(default_factory=set)
    markers: dict[int, int] = field(default_factory=dict)
    """Where transactions end, and when: brokers find them by time as they find records."""
    start: int = 0
    end: int = 0
    stable: int = 0


def random_bytes(dice: Random, chosen: Sequence[bytes | None]) -> bytes | None:
    return dice.randbytes(dice.randint(1, 6)) if dice.random() < 0.15 else dice.choice(chosen)


def random_time(dice: Random) -> int:
    """Of a topic whose times are not in order."""
    return dice.choice(_WILD) if dice.random() < 0.2 else NOW_MS + dice.randint(-9_000, 9_000)


def random_headers(dice: Random) -> tuple[Header, ...]:
    count = dice.choice((0, 0, 1, 2, 3))
    return tuple((dice.choice(NAMES), random_bytes(dice, KEYS)) for _ in range(count))


class _Writer:
    """Appends random batches to a partition."""

    def __init__(self, dice: Random, number: int, *, is_ordered: bool) -> None:
        self.dice, self.number, self.is_ordered = dice, number, is_ordered
        self.part = Part()
        self.at_ms = NOW_MS - dice.randint(0, 5_000)
        self.open: dict[int, list[int]] = {}

    def time(self) -> int:
        if self.is_ordered:
            self.at_ms += self.dice.choice((0, 1, 1, 900))
            return self.at_ms
        return random_time(self.dice)

    def batch(self, *, is_transactional: bool) -> None:
        dice, part = self.dice, self.part
        producer = dice.choice((7, 8, 9)) if is_transactional else NO_PRODUCER
        count, first = dice.randint(1, 8), part.end
        kept = (
            [n for n in range(count) if dice.random() < 0.7]
            if dice.random() < 0.4
            else range(count)
        )
        part.end += count
        if not kept:
            return
        builder = DefaultRecordBatchBuilder(
            2, dice.randrange(CODECS), int(is_transactional), producer, 0, 0, 1 << 20
        )
        for delta in kept:
            it = Written(self.number, first + delta, self.time(), random_bytes(dice, KEYS),
                         random_bytes(dice, VALUES), random_headers(dice), producer)  # fmt: skip
            assert builder.append(delta, it.timestamp_ms, it.key, it.value, list(it.headers))
            part.records.append(it)
        if is_transactional:
            self.open.setdefault(producer, []).extend(first + delta for delta in kept)
        data = struct.pack(">q", first) + bytes(builder.build())[8:]
        part.batches.append((first, first + kept[-1], data))

    def marker(self) -> None:
        producer = self.dice.choice(sorted(self.open))
        offsets, is_abort = self.open.pop(producer), self.dice.random() < 0.5
        marker = NewRecord(key=_ABORT if is_abort else _COMMIT, value=bytes(6), timestamp=NOW_MS)
        part = self.part
        data = build_batch([marker], base_offset=part.end, producer_id=producer, producer_epoch=0,
                           is_control=True, is_transactional=True)  # fmt: skip
        part.batches.append((part.end, part.end, data))
        part.markers[part.end] = NOW_MS
        part.end += 1
        if is_abort:
            part.aborted.append((producer, offsets[0], part.end - 1))
            part.aborted_offsets |= set(offsets)

    def finished(self) -> Part:
        part = self.part
        part.stable = min((offsets[0] for offsets in self.open.values()), default=part.end)
        if self.dice.random() < 0.3:
            part.start = self.dice.randint(0, part.stable)
            part.records = [it for it in part.records if it.offset >= part.start]
            part.batches = [it for it in part.batches if it[1] >= part.start]
            part.markers = {at: its for at, its in part.markers.items() if at >= part.start}
        return part


def random_topic(dice: Random, *, is_ordered: bool) -> list[Part]:
    """Partitions of a topic."""
    has_transactions = dice.random() < 0.5
    parts = []
    for number in range(dice.randint(1, 4)):
        writer = _Writer(dice, number, is_ordered=is_ordered)
        for _ in range(dice.choice((0, 1, 12, 30))):
            writer.batch(is_transactional=has_transactions and dice.random() < 0.6)
            if writer.open and dice.random() < 0.3:
                writer.marker()
        parts.append(writer.finished())
    return parts
