"""The state of one transactional id, and how requests may change it. Pure.

| from | to | by |
|---|---|---|
| Empty, CompleteCommit, CompleteAbort | Empty | InitProducerId: the next epoch or producer id |
| Empty, CompleteCommit, CompleteAbort, Ongoing | Ongoing | AddPartitionsToTxn, AddOffsetsToTxn |
| Ongoing | PrepareCommit, PrepareAbort | EndTxn; its time is over; a new instance of the producer |
| Empty, Complete* | PrepareAbort | EndTxn in version 2: an abort takes an epoch |
| PrepareCommit, PrepareAbort | CompleteCommit, CompleteAbort | every partition has its marker |

Once a Prepare state is written the outcome stands. A change is a new value, which takes the old
one's place when its record is replicated. Each function answers the next value, or the error.

In version 2 (KIP-890) each transaction has an epoch of its own: EndTxn tells the next one, and the
markers carry it. Where the epochs are used up, the next producer id takes over with epoch 0.
Source: KIP-98, KIP-360, KIP-890,
kafka.coordinator.transaction.{TransactionMetadata,TransactionCoordinator}.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple

from broker.coordinator.errors import CoordinatorError

TopicPartition = tuple[str, int]
NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
EPOCH_MAX: Final = 2**15 - 1
VERSION_2: Final = 2
"""Of transactions (transaction.version): each has its own epoch."""


class SupportedOperation(Enum):
    """How a leader asks the coordinator about first records, by the version of the request that
    brought them (Kafka's TransactionSupportedOperation)."""

    DEFAULT_ERROR = "verify; the client knows INVALID_TXN_STATE alone"
    GENERIC_ERROR_SUPPORTED = "verify; the client knows TRANSACTION_ABORTABLE"
    ADD_PARTITION = "add: the client has not added it"


class TransactionState(Enum):
    """Kafka's states, with their numbers in __transaction_state."""

    EMPTY = (0, "Empty")
    ONGOING = (1, "Ongoing")
    PREPARE_COMMIT = (2, "PrepareCommit")
    PREPARE_ABORT = (3, "PrepareAbort")
    COMPLETE_COMMIT = (4, "CompleteCommit")
    COMPLETE_ABORT = (5, "CompleteAbort")
    DEAD = (6, "Dead")
    PREPARE_EPOCH_FENCE = (7, "PrepareEpochFence")

    @property
    def number(self) -> int:
        """Its number in a record."""
        return self.value[0]

    def __str__(self) -> str:
        return self.value[1]

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome stands, and markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_ended(self) -> bool:
        """Whether no transaction is open."""
        return self in _ENDED


_COMPLETE: Final = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
_ENDED: Final = (TransactionState.EMPTY, *_COMPLETE)
STATES: Final = {state.number: state for state in TransactionState}


class Producer(NamedTuple):
    """A producer id and its epoch."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """One transactional id as its record has it; times in ms since the epoch, -1 unknown."""

    transactional_id: str
    producer_id: int
    epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH
    """The epoch before a bump that its producer asked for: a repeated request is known by it."""
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """It takes over once every partition has its marker: the epochs of this one are used up."""
    version: int = 0
    """The version of transactions that the client used last."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = -1
    update_ms: int = -1

    @property
    def producer(self) -> Producer:
        """The one that may write now."""
        return Producer(self.producer_id, self.epoch)

    @property
    def next_producer(self) -> Producer:
        """The one that may write once the transaction has ended."""
        if self.next_producer_id == NO_PRODUCER_ID:
            return self.producer
        return Producer(self.next_producer_id, 0)

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the next bump needs another producer id."""
        return self.epoch >= EPOCH_MAX - 1

    def is_timed_out(self, now_ms: int) -> bool:
        """Whether the transaction has been open for too long."""
        is_open = self.state is TransactionState.ONGOING
        return is_open and self.start_ms + self.timeout_ms < now_ms


Step = TransactionMetadata | CoordinatorError


def begin_instance(
    known: TransactionMetadata,
    expected: Producer | None,
    *,
    timeout_ms: int,
    now_ms: int,
    new_producer_id: int | None,
) -> Step:
    """InitProducerId where no transaction is open; `expected` is what the producer believes to be.

    `new_producer_id` is needed where the epoch is exhausted.
    """
    if expected is not None and expected.id not in (known.producer_id, known.previous_producer_id):
        return CoordinatorError.PRODUCER_FENCED
    epoch, last_epoch = known.epoch + 1, NO_EPOCH
    producer_id, previous = known.producer_id, known.previous_producer_id
    if known.is_epoch_exhausted and (expected is None or expected.epoch == known.epoch):
        if new_producer_id is None:
            return CoordinatorError.CONCURRENT_TRANSACTIONS
        producer_id, previous, epoch = new_producer_id, known.producer_id, 0
        last_epoch = NO_EPOCH if expected is None else known.epoch
    elif expected is not None and known.epoch != NO_EPOCH:
        if expected.epoch == known.epoch:
            last_epoch = known.epoch
        elif expected.epoch == known.last_epoch:
            epoch, last_epoch = known.epoch, known.last_epoch
        else:
            return CoordinatorError.PRODUCER_FENCED
    return replace(
        known,
        producer_id=producer_id,
        previous_producer_id=previous,
        epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        partitions=frozenset(),
        start_ms=-1,
        update_ms=now_ms,
    )


def check_producer(known: TransactionMetadata | None, producer: Producer) -> CoordinatorError:
    """Whether a request comes from the producer that has the transactional id."""
    if known is None or known.producer_id != producer.id:
        return CoordinatorError.INVALID_PRODUCER_ID_MAPPING
    if known.epoch != producer.epoch:
        return CoordinatorError.PRODUCER_FENCED
    return CoordinatorError.NONE


def add_partitions(
    known: TransactionMetadata,
    partitions: frozenset[TopicPartition],
    *,
    now_ms: int,
    version: int = 0,
) -> Step:
    """The transaction with further partitions; it begins with the first ones."""
    if known.state.is_prepared:
        return CoordinatorError.CONCURRENT_TRANSACTIONS
    is_open = known.state is TransactionState.ONGOING
    if is_open and partitions <= known.partitions:
        return known
    return replace(
        known,
        state=TransactionState.ONGOING,
        partitions=known.partitions | partitions if is_open else partitions,
        start_ms=known.start_ms if is_open else now_ms,
        update_ms=now_ms,
        version=version,
    )


def prepare_end(known: TransactionMetadata, *, is_commit: bool, now_ms: int) -> Step:
    """The outcome of an open transaction; the same value where it stands already."""
    prepared, completed = outcome_states(is_commit)
    if known.state is TransactionState.ONGOING:
        return replace(known, state=prepared, update_ms=now_ms, version=0)
    if known.state is completed:
        return known
    if known.state is prepared:
        return CoordinatorError.CONCURRENT_TRANSACTIONS
    return CoordinatorError.INVALID_TXN_STATE


def end_epoch(
    known: TransactionMetadata,
    sent: Producer,
    *,
    is_commit: bool,
    now_ms: int,
    new_producer_id: int | None,
) -> Step:
    """The outcome in version 2, with the next epoch; the same value where `sent` asks again.

    `new_producer_id` is needed where the epoch is exhausted.
    """
    if known.producer == sent:
        return _end_epoch(known, is_commit, now_ms, new_producer_id)
    error = _check_repeated(known, sent)
    if error is not CoordinatorError.NONE:
        return error
    if known.state is outcome_states(is_commit)[1]:
        return known
    if known.state is outcome_states(is_commit)[0]:
        return CoordinatorError.CONCURRENT_TRANSACTIONS
    return CoordinatorError.INVALID_TXN_STATE


def _check_repeated(known: TransactionMetadata, sent: Producer) -> CoordinatorError:
    """Whether the transaction that ended last was of the epoch that `sent` has."""
    is_ended = known.state.is_prepared or known.state in _COMPLETE
    is_new_id = sent == (known.previous_producer_id, EPOCH_MAX - 1) and known.epoch == 0
    if known.state in _COMPLETE and is_new_id:
        return CoordinatorError.NONE
    if known.producer_id != sent.id:
        return CoordinatorError.INVALID_PRODUCER_ID_MAPPING
    is_repeated = is_ended and known.version >= VERSION_2 and known.epoch == sent.epoch + 1
    return CoordinatorError.NONE if is_repeated else CoordinatorError.PRODUCER_FENCED


def _end_epoch(
    known: TransactionMetadata, is_commit: bool, now_ms: int, new_producer_id: int | None
) -> Step:
    if known.state.is_prepared:
        return CoordinatorError.CONCURRENT_TRANSACTIONS
    is_open = known.state is TransactionState.ONGOING
    if is_commit and not is_open:
        return CoordinatorError.INVALID_TXN_STATE
    if known.is_epoch_exhausted and new_producer_id is None:
        return CoordinatorError.CONCURRENT_TRANSACTIONS
    return replace(
        known,
        state=outcome_states(is_commit)[0],
        epoch=min(known.epoch + 1, EPOCH_MAX),
        last_epoch=known.epoch,
        next_producer_id=NO_PRODUCER_ID if new_producer_id is None else new_producer_id,
        start_ms=known.start_ms if is_open else now_ms,
        update_ms=now_ms,
        version=VERSION_2,
    )


def fence(known: TransactionMetadata, *, now_ms: int) -> TransactionMetadata:
    """An open transaction, aborted without its producer, whose epoch is over.

    The largest epoch is never a producer's: nobody can go beyond it.
    """
    return replace(
        known,
        epoch=min(known.epoch + 1, EPOCH_MAX),
        last_epoch=NO_EPOCH,
        state=TransactionState.PREPARE_ABORT,
        update_ms=now_ms,
    )


def complete(known: TransactionMetadata, *, now_ms: int) -> TransactionMetadata:
    """Every partition has its marker."""
    _, completed = outcome_states(known.state is TransactionState.PREPARE_COMMIT)
    ended = replace(known, state=completed, partitions=frozenset(), update_ms=now_ms)
    if known.next_producer_id == NO_PRODUCER_ID:
        return ended
    producer_id, epoch = known.next_producer
    return replace(
        ended,
        producer_id=producer_id,
        epoch=epoch,
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )


def outcome_states(is_commit: bool) -> tuple[TransactionState, TransactionState]:
    """While markers are written, and afterwards."""
    if is_commit:
        return TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT
    return TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT
