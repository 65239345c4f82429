"""State of a log's producers: their epoch, their last five batches, their open transactions.

A batch that repeats one of the five is answered with that batch's offsets and not written again;
one that does not follow the last sequence is refused. Sequences are int32 and wrap to 0.

A client's batch that begins a transaction needs a verification: whoever asked the coordinator has
taken a token before (`begin_verification`), and a marker that comes in between makes it void. So
no batch comes late into a transaction that has ended, where no marker would follow it (KIP-890).
Source: KIP-98, org.apache.kafka.storage.internals.log.{ProducerStateManager,ProducerAppendInfo}.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from broker.log.errors import (
    CoordinatorFencedError,
    InvalidProducerEpochError,
    OutOfOrderSequenceError,
)
from broker.log.segment.transaction_index import AbortedTransaction
from broker.protocol.control_records import Marker
from broker.protocol.records import BatchHeader

BATCHES_RETAINED: Final = 5
"""Kafka's NUM_BATCHES_TO_RETAIN: as many requests as a client may have in flight."""
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_OFFSET: Final = -1
SEQUENCE_MAX: Final = 2**31 - 1


class ProducerBatch(NamedTuple):
    """One batch of a producer in the log."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        """The offset of its first record."""
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        """The sequence of its first record."""
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MAX


@dataclass(slots=True, kw_only=True)
class ProducerEntry:
    """One producer id; `batches` has the oldest first."""

    producer_id: int
    epoch: int = NO_EPOCH
    batches: "deque[ProducerBatch]" = field(default_factory=lambda: deque(maxlen=BATCHES_RETAINED))
    last_timestamp: int = -1
    coordinator_epoch: int = -1
    current_txn_first_offset: int = NO_OFFSET
    last_marker: int = NO_OFFSET
    """Where the marker of its last transaction is; unknown after a restart."""

    @property
    def last_sequence(self) -> int:
        """The sequence of the newest record, -1 when no batch is remembered."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def copy(self) -> "ProducerEntry":
        """A second entry that can be changed without this one noticing."""
        return ProducerEntry(
            producer_id=self.producer_id,
            epoch=self.epoch,
            batches=self.batches.copy(),
            last_timestamp=self.last_timestamp,
            coordinator_epoch=self.coordinator_epoch,
            current_txn_first_offset=self.current_txn_first_offset,
            last_marker=self.last_marker,
        )

    def find_duplicate(self, header: BatchHeader) -> ProducerBatch | None:
        """The remembered batch that `header` repeats."""
        if header.producer_epoch != self.epoch:
            return None
        for batch in self.batches:
            if (
                batch.last_sequence == header.last_sequence
                and batch.first_sequence == header.base_sequence
            ):
                return batch
        return None

    def check(self, header: BatchHeader, marker: Marker | None) -> None:
        """Refuse what a fenced producer or coordinator sends, and what leaves a gap.

        :raises InvalidProducerEpochError: an older epoch.
        :raises CoordinatorFencedError: a marker of an older coordinator.
        :raises OutOfOrderSequenceError: not the next sequence.
        """
        if marker is not None and marker.coordinator_epoch < self.coordinator_epoch:
            raise CoordinatorFencedError(
                f"coordinator epoch {marker.coordinator_epoch} was followed by "
                f"{self.coordinator_epoch}, which has ended transactions of producer "
                f"{header.producer_id}"
            )
        if header.producer_epoch < self.epoch:
            raise InvalidProducerEpochError(
                f"producer {header.producer_id} sent epoch {header.producer_epoch}, "
                f"which epoch {self.epoch} has fenced"
            )
        if header.is_control or header.base_sequence < 0 or self.epoch == NO_EPOCH:
            # Markers, and offsets that the coordinator of a group writes, carry no sequence.
            # A producer that this log does not know (any more) may start anywhere.
            return
        expected = 0
        if header.producer_epoch == self.epoch:
            expected = (self.last_sequence + 1) & SEQUENCE_MAX
        if header.base_sequence != expected:
            raise OutOfOrderSequenceError(
                f"producer {header.producer_id} epoch {header.producer_epoch} sent sequence "
                f"{header.base_sequence} where {expected} was due"
            )

    def add(self, header: BatchHeader, base_offset: int, marker: Marker | None) -> None:
        """Take in a batch that enters the log at `base_offset`."""
        if header.is_control and marker is None:
            return  # compaction left nothing of the transaction
        if header.producer_epoch != self.epoch:
            self.epoch = header.producer_epoch
            self.batches.clear()
        self.last_timestamp = header.max_timestamp
        if marker is not None:
            # The end of a transaction; markers carry no sequence.
            self.coordinator_epoch = marker.coordinator_epoch
            self.last_marker = base_offset
            self.current_txn_first_offset = NO_OFFSET
            return
        if header.is_transactional and self.current_txn_first_offset == NO_OFFSET:
            self.current_txn_first_offset = base_offset
        if header.base_sequence >= 0:
            self.batches.append(
                ProducerBatch(
                    header.last_sequence,
                    base_offset + header.last_offset_delta,
                    header.last_offset_delta,
                    header.max_timestamp,
                )
            )


class ProducerState:
    """All producers of one log."""

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self._open: dict[int, int] = {}
        """Where the open transaction of a producer starts."""
        self._first_open: int | None = None
        self._ended: deque[tuple[int, int]] = deque()
        """Start and marker of transactions that ended, until their markers are replicated."""
        self._verifications: dict[int, object] = {}

    def restore(self, entry: ProducerEntry) -> None:
        """Take in a producer as a snapshot has it."""
        self.entries[entry.producer_id] = entry
        self.note_transaction(entry.producer_id, entry.current_txn_first_offset, NO_OFFSET)

    def find_duplicate(self, header: BatchHeader) -> ProducerBatch | None:
        """The remembered batch that `header` repeats."""
        entry = self.entries.get(header.producer_id)
        return entry.find_duplicate(header) if entry else None

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether records of a producer's transaction are here already."""
        entry = self.entries.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset != NO_OFFSET
            and entry.epoch == epoch
        )

    def begin_verification(self, producer_id: int) -> object:
        """A token for a batch that is to begin a transaction; good until a marker comes."""
        return self._verifications.setdefault(producer_id, object())

    def end_verification(self, producer_id: int) -> None:
        """Void earlier verifications: a marker came."""
        self._verifications.pop(producer_id, None)

    def is_verified(self, header: BatchHeader, verification: object) -> bool:
        """Whether a transactional batch may enter: its transaction is open or verified."""
        if self.has_open_transaction(header.producer_id, header.producer_epoch):
            return True
        token = self._verifications.get(header.producer_id)
        return token is not None and token is verification

    def begin(self) -> "ProducerAppend":
        """Check and collect the batches of one append before anything is written."""
        return ProducerAppend(self)

    def replay(self, header: BatchHeader, marker: Marker | None = None) -> list[AbortedTransaction]:
        """Take in a batch that is in the log already; answers the transaction that it aborts."""
        if header.producer_id < 0:
            return []
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self.entries[header.producer_id] = ProducerEntry(producer_id=header.producer_id)
        before, offset = entry.current_txn_first_offset, header.base_offset
        entry.add(header, offset, marker)
        if entry.current_txn_first_offset == before:
            return []
        self.note_transaction(header.producer_id, entry.current_txn_first_offset, offset)
        if marker is None or marker.is_commit:
            return []
        stable = offset + 1 if self._first_open is None else self._first_open
        return [AbortedTransaction(header.producer_id, before, offset, stable)]

    def expire(self, *, before_ms: int) -> int:
        """Forget producers silent since `before_ms` that have no open transaction."""
        silent = [
            entry.producer_id
            for entry in self.entries.values()
            if entry.last_timestamp < before_ms and entry.current_txn_first_offset == NO_OFFSET
        ]
        for producer_id in silent:
            del self.entries[producer_id]
            self._verifications.pop(producer_id, None)
        return len(silent)

    def note_transaction(self, producer_id: int, starts: int, marker: int) -> None:
        """A producer's transaction starts at an offset, or ended (NO_OFFSET) with a marker."""
        ended = self._open.pop(producer_id, None)
        self._verifications.pop(producer_id, None)
        if starts != NO_OFFSET:
            self._open[producer_id] = starts
            self._first_open = starts if self._first_open is None else min(starts, self._first_open)
        elif ended is not None:
            self._ended.append((ended, marker))
            if ended == self._first_open:
                self._first_open = min(self._open.values(), default=None)

    def open_transactions(self) -> dict[int, int]:
        """Where the open transaction of a producer starts, by producer id."""
        return dict(self._open)

    def last_offsets(self) -> dict[int, int]:
        """Where the newest batch of a producer ends, or its marker where no batch is known, by
        producer id."""
        return {
            entry.producer_id: entry.batches[-1].last_offset if entry.batches else entry.last_marker
            for entry in self.entries.values()
        }

    def last_stable_offset(self, high_watermark: int) -> int:
        """Below it no transaction is open, nor has one ended with a marker that is not replicated
        (ProducerStateManager.firstUnstableOffset)."""
        while self._ended and self._ended[0][1] < high_watermark:
            self._ended.popleft()
        if self._first_open is None and not self._ended:
            return high_watermark
        stable = high_watermark if self._first_open is None else self._first_open
        return min(stable, high_watermark, *(first for first, _ in self._ended))


class ProducerAppend:
    """The producers of one append, changed aside; `commit` once the bytes are written."""

    __slots__ = ("_aborts", "_changed", "_ended", "_state", "_transactions")

    def __init__(self, state: ProducerState) -> None:
        self._state = state
        self._changed: dict[int, ProducerEntry] = {}
        self._transactions: list[tuple[int, int, int]] = []
        self._ended: set[int] = set()
        self._aborts: set[int] = set()

    def add(
        self,
        header: BatchHeader,
        base_offset: int,
        marker: Marker | None = None,
        *,
        is_checked: bool,
    ) -> None:
        """Take in one batch; a leader checks it, a follower takes what its leader took.

        :raises InvalidProducerEpochError: an older epoch.
        :raises CoordinatorFencedError: a marker of an older coordinator.
        :raises OutOfOrderSequenceError: not the next sequence.
        """
        entry = self._changed.get(header.producer_id)
        if entry is None:
            known = self._state.entries.get(header.producer_id)
            entry = known.copy() if known else ProducerEntry(producer_id=header.producer_id)
            self._changed[header.producer_id] = entry
        if is_checked:
            entry.check(header, marker)
        before = entry.current_txn_first_offset
        entry.add(header, base_offset, marker)
        if marker is not None:
            self._ended.add(header.producer_id)
            if not marker.is_commit:
                self._aborts.add(base_offset)
        if entry.current_txn_first_offset != before:
            changed = (header.producer_id, entry.current_txn_first_offset, base_offset)
            self._transactions.append(changed)

    def aborted(self) -> list[AbortedTransaction]:
        """Transactions that this append aborts, in the order of their markers; before `commit`."""
        if not self._aborts:
            return []
        found: list[AbortedTransaction] = []
        open_now = self._state.open_transactions()
        for producer_id, starts, offset in self._transactions:
            if starts != NO_OFFSET:
                open_now[producer_id] = starts
                continue
            first = open_now.pop(producer_id)
            if offset in self._aborts:
                stable = min(open_now.values(), default=offset + 1)
                found.append(AbortedTransaction(producer_id, first, offset, stable))
        return found

    def commit(self) -> None:
        """Make the changes the log's state."""
        self._state.entries.update(self._changed)
        for changed in self._transactions:
            self._state.note_transaction(*changed)
        for producer_id in self._ended:
            self._state.end_verification(producer_id)
