"""The transactional ids that one partition of __transaction_state keeps."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from broker.coordinator.errors import RecordFormatError
from broker.coordinator.transactions.transaction_metadata import TransactionMetadata
from broker.coordinator.transactions.transaction_records import decode_key, decode_value
from broker.metadata.topic_names import TRANSACTION_TOPIC
from broker.protocol.records import Record

_LOG = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class TransactionEntry:
    """A transactional id; `current` is None before its first record is replicated. One change at a
    time: further requests wait outside until its record is."""

    current: TransactionMetadata | None = None
    is_changing: bool = False


class TransactionShard:
    """Transactions by id, once the records are replayed."""

    def __init__(
        self,
        index: int,
        *,
        loaded: Callable[["TransactionShard"], None],
    ) -> None:
        """`loaded` hears when the transactions are there."""
        self.index = index
        self.is_loaded = False
        self.entries: dict[str, TransactionEntry] = {}
        self._loaded = loaded

    def replay(self, record: Record, producer_id: int | None) -> None:
        """Account for one record; they come in the order of the log."""
        try:
            transactional_id = None if record.key is None else decode_key(record.key)
            if transactional_id is None:
                return
            if record.value is None:
                self.entries.pop(transactional_id, None)
                return
            current = decode_value(transactional_id, record.value)
        except RecordFormatError as error:
            _LOG.warning(
                "record %d of %s-%d is not readable: %s",
                *(record.offset, TRANSACTION_TOPIC, self.index, error),
            )
            return
        self.entries[transactional_id] = TransactionEntry(current)

    def replay_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """Transactions are not written within transactions."""

    async def on_loaded(self) -> None:
        """Requests are answered from here on."""
        self.is_loaded = True
        self._loaded(self)

    def on_unloaded(self) -> None:
        """Another node goes on with what is here."""
        self.is_loaded = False
        self.entries.clear()
