"""Writing to an internal topic: one batch per request, acknowledged by all in-sync replicas."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from broker.clock import Clock
from broker.coordinator.errors import CoordinatorError
from broker.log.errors import (
    BatchTooLargeError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    StorageError,
)
from broker.protocol.records import NO_PRODUCER_ID, NewRecord, build_batch
from broker.replication.errors import (
    AppendTimedOutError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderError,
    UnknownPartitionError,
)
from broker.replication.replica_manager import ReplicaManager

KeyValue = tuple[bytes, bytes | None]

# What a client must do about a failed append, as Kafka tells it (GroupMetadataManager).
_VERDICTS: Final[tuple[tuple[type[Exception], CoordinatorError], ...]] = (
    (UnknownPartitionError, CoordinatorError.COORDINATOR_NOT_AVAILABLE),
    (NotEnoughReplicasError, CoordinatorError.COORDINATOR_NOT_AVAILABLE),
    (NotEnoughReplicasAfterAppendError, CoordinatorError.COORDINATOR_NOT_AVAILABLE),
    (AppendTimedOutError, CoordinatorError.COORDINATOR_NOT_AVAILABLE),
    (NotLeaderError, CoordinatorError.NOT_COORDINATOR),
    (StorageError, CoordinatorError.NOT_COORDINATOR),
    (BatchTooLargeError, CoordinatorError.INVALID_COMMIT_OFFSET_SIZE),
    (InvalidProducerEpochError, CoordinatorError.INVALID_PRODUCER_EPOCH),
    (InvalidTxnStateError, CoordinatorError.INVALID_TXN_STATE),
)


_UNEXPECTED: Final = CoordinatorError.UNKNOWN_SERVER_ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """Where the batch begins in the log, or why it is not there."""

    error: CoordinatorError = CoordinatorError.NONE
    base_offset: int = -1


class PartitionWriter:
    """Appends records to a partition of `topic` that this node leads (Kafka's PartitionWriter)."""

    def __init__(
        self, topic: str, replicas: ReplicaManager, clock: Clock, *, codec: int, timeout_ms: int
    ) -> None:
        """`codec` is a number as in the attributes of a batch."""
        self._topic = topic
        self._replicas = replicas
        self._clock = clock
        self._codec = codec
        self._timeout_ms = timeout_ms

    def build_batch(
        self, records: Sequence[KeyValue], producer: tuple[int, int] | None = None
    ) -> bytes:
        """One batch of all records, as of now; a thread may build a large one. With a producer's id
        and epoch it is part of that producer's transaction."""
        now_ms = self._clock.wall_ms()
        return build_batch(
            [NewRecord(key=k, value=v, timestamp=now_ms) for k, v in records],
            codec=self._codec,
            producer_id=NO_PRODUCER_ID if producer is None else producer[0],
            producer_epoch=-1 if producer is None else producer[1],
            is_transactional=producer is not None,
        )

    def can_append(self, partition: int) -> bool:
        """Whether enough replicas are in sync for an append of now."""
        local = self._replicas.partition(self._topic, partition)
        return local is not None and local.state.has_enough_replicas

    def begin_verification(self, partition: int, producer_id: int) -> object | None:
        """See ProducerState; None where this node has no such partition."""
        local = self._replicas.partition(self._topic, partition)
        return None if local is None else local.log.producers.state.begin_verification(producer_id)

    async def append(
        self, partition: int, batch: bytes, *, verification: object = None
    ) -> Appended:
        """Append a batch and wait until it is durable; one of a transaction was verified."""
        result = await self._replicas.append_and_wait(
            self._topic,
            partition,
            batch,
            acks=-1,
            timeout_ms=self._timeout_ms,
            verification=verification,
        )
        if result.error is not None:
            return Appended(error=_verdict(result.error))
        return Appended(base_offset=result.base_offset)


def _verdict(error: Exception) -> CoordinatorError:
    return next((v for kind, v in _VERDICTS if isinstance(error, kind)), _UNEXPECTED)
