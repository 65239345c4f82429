"""Where the records end that a consumer with ``isolation.level=read_committed`` gets: behind that
offset are only control records, records of aborted transactions, and open transactions. Pure.

    a commit that stands, with lag -> Fetch a little there, as such a consumer does
        -> a batch that it gets: records wait for the group
        -> none up to the last stable offset: nothing waits for it

Headers tell what a batch is, so a few bytes suffice; batches are passed one by one.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

from broker.protocol.errors import MalformedRecordsError
from broker.protocol.message_formats import header_at
from broker.protocol.records import HEADER_BYTES, BatchHeader
from control.collector.image import PartitionState
from control.kafka.records.decoding import FetchedBytes, TransactionMarks
from control.kafka.records.record import Transaction
from control.model.ids import TopicPartition

STANDS_MS: Final = 8_000
"""A commit that has stood for so long is looked at: before it can count as stopped."""
FRESH_MS: Final = 30_000
"""What was found longer ago is told no more, if the log has grown since."""
FETCH_BYTES: Final = 16 << 10
"""Of one partition at a time."""
FETCHED_MAX: Final = 20
"""So many partitions of a broker are looked at in one request."""


@dataclass(slots=True)
class _Tail:
    leader_epoch: int
    begin: int
    """Nothing that a consumer gets lies from here …"""
    end: int
    """… to here."""
    readable: int = -1
    """The last record known that it gets."""
    told: int | None = None
    """From here on there was none when that was looked at last."""
    looked_ms: int = 0


class ReadableEnds:
    """Readable ends of the partitions that one collector watches, as far as they are found."""

    def __init__(self) -> None:
        self._since: dict[TopicPartition, dict[int, int]] = {}
        self._tails: dict[TopicPartition, _Tail] = {}

    def see(self, lagging: Mapping[TopicPartition, Collection[int]], now_ms: int) -> None:
        """Notes all commits with lag, as they are now."""
        before = self._since
        self._since = {
            key: {it: before.get(key, {}).get(it, now_ms) for it in offsets}
            for key, offsets in lagging.items()
        }
        self._tails = {key: it for key, it in self._tails.items() if key in lagging}

    def wanted(self, led: Collection[PartitionState], now_ms: int) -> dict[TopicPartition, int]:
        """Offsets to fetch at; who was looked at longest ago comes first."""
        found: list[tuple[int, TopicPartition, int]] = []
        for state in led:
            at = self._position(state, now_ms) if state.key in self._since else None
            if at is not None:
                found.append((self._tails[state.key].looked_ms, state.key, at))
        found.sort(key=lambda it: it[0])
        return {key: at for _, key, at in islice(found, FETCHED_MAX)}

    def take(self, key: TopicPartition, fetched: FetchedBytes, now_ms: int) -> None:
        """Notes what a Fetch at the wanted offset gave."""
        tail, marks = self._tails.get(key), TransactionMarks(fetched)
        if tail is None:
            return
        for header in _headers(fetched.data):
            if not 0 <= header.base_offset <= header.last_offset < fetched.end_offset:
                break  # A damaged one: nothing is known of what follows.
            if header.last_offset < tail.end:
                continue
            if _is_read(header, marks):
                tail.readable = header.last_offset
                if tail.told is not None and tail.told <= tail.readable:
                    tail.told = None
            elif tail.readable < tail.begin:
                tail.end = header.last_offset + 1
        self.take_stable(key, fetched.stable_offset, now_ms)

    def take_stable(self, key: TopicPartition, offset: int, now_ms: int) -> None:
        """Notes the last stable offset: behind it are open transactions."""
        tail = self._tails.get(key)
        if tail is None:
            return
        tail.looked_ms = now_ms
        if tail.readable < tail.begin and tail.end >= offset:
            tail.told = tail.begin

    def told(self, key: TopicPartition, now_ms: int) -> int | None:
        """The offset after the last record that a consumer gets, or below it; None: not known."""
        tail = self._tails.get(key)
        return tail.told if tail is not None and now_ms - tail.looked_ms <= FRESH_MS else None

    def _position(self, state: PartitionState, now_ms: int) -> int | None:
        """Where to fetch next; None: nothing stands, or all is known."""
        standing = [it for it, ms in self._since[state.key].items() if now_ms - ms >= STANDS_MS]
        end, tail = state.high_watermark, self._tails.get(state.key)
        if end is None or not standing:
            return None
        if tail is not None and tail.leader_epoch != state.leader_epoch:
            tail = None  # Its log may be another.
        readable = -1 if tail is None else tail.readable
        offsets = [it for it in standing if it > readable]
        if not offsets:
            return None
        if tail is None:
            tail = _Tail(state.leader_epoch, min(offsets), min(offsets))
            self._tails[state.key] = tail
        elif tail.begin <= tail.readable or min(offsets) < tail.begin:
            tail.begin = tail.end = min(offsets)
        if tail.told == tail.begin and tail.end == end:
            tail.looked_ms = now_ms
            return None
        return tail.end if tail.end >= (state.log_start_offset or 0) else None


def _headers(data: bytes) -> Iterator[BatchHeader]:
    """Headers of the batches, also of the last one if so much of it was sent."""
    position = 0
    with suppress(MalformedRecordsError):
        while len(data) - position >= HEADER_BYTES:
            header = header_at(data, position)
            yield header
            position += header.size_bytes


def _is_read(header: BatchHeader, marks: TransactionMarks) -> bool:
    """Whether a consumer gets any record of a batch."""
    transaction = marks.transaction_of(header)
    if header.is_control:
        marks.end_transaction(header)
        return False
    return transaction is not Transaction.ABORTED and header.records_count != 0
