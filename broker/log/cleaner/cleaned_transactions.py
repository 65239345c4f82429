"""Transactions as compaction meets them: which batches were aborted, which markers may go. Pure.

Records of aborted transactions go at once. A marker goes when no batch of its transaction is left,
and delete.retention.ms has passed since that was first seen; so a reader that began before still
finds it. An entry of the `.txnindex` stays as long as its marker has batches.
Source: org.apache.kafka.storage.internals.log.CleanedTransactionMetadata (Kafka 4.x).
"""

from collections import deque
from collections.abc import Iterable

from broker.log.segment.transaction_index import AbortedTransaction
from broker.protocol.control_records import Marker
from broker.protocol.records import BatchHeader


class CleanedTransactions:
    """Hears of every batch of a log, in order."""

    def __init__(self, aborted: Iterable[AbortedTransaction] = ()) -> None:
        self._to_come = deque(sorted(aborted, key=lambda entry: entry.first_offset))
        self._aborting: dict[int, AbortedTransaction] = {}
        self._with_batches: set[int] = set()
        self._kept: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch of records belongs to a transaction that is aborted later on."""
        if not header.is_transactional:
            return False
        self._advance(header)
        self._with_batches.add(header.producer_id)
        return header.producer_id in self._aborting

    def is_done(self, header: BatchHeader, marker: Marker | None) -> bool:
        """Whether nothing is left of the transaction that a control batch ends."""
        if header.producer_id < 0:
            return False
        self._advance(header)
        if marker is None:
            return True
        had_batches = header.producer_id in self._with_batches
        self._with_batches.discard(header.producer_id)
        if not marker.is_commit:
            entry = self._aborting.pop(header.producer_id, None)
            if entry is not None and had_batches:
                self._kept.append(entry)
        return not had_batches

    def take_kept(self) -> list[AbortedTransaction]:
        """Entries of the markers since the last call that still have batches."""
        kept, self._kept = self._kept, []
        return kept

    def _advance(self, header: BatchHeader) -> None:
        while self._to_come and self._to_come[0].first_offset <= header.last_offset:
            entry = self._to_come.popleft()
            self._aborting[entry.producer_id] = entry
