"""Writing to __consumer_offsets: one batch per request, acknowledged by all in-sync replicas."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from broker.clock import Clock
from broker.coordinator.config import GroupConfig
from broker.coordinator.errors import GroupError
from broker.coordinator.ports import ReplicaPort
from broker.log.errors import BatchTooLargeError, StorageError
from broker.metadata.topic_names import OFFSETS_TOPIC
from broker.protocol.records import NewRecord, build_batch
from broker.replication.errors import (
    AppendTimedOutError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderError,
    UnknownPartitionError,
)

KeyValue = tuple[bytes, bytes | None]

# What a client must do about a failed append, as Kafka tells it (GroupMetadataManager).
_VERDICTS: Final[tuple[tuple[type[Exception], GroupError], ...]] = (
    (UnknownPartitionError, GroupError.COORDINATOR_NOT_AVAILABLE),
    (NotEnoughReplicasError, GroupError.COORDINATOR_NOT_AVAILABLE),
    (NotEnoughReplicasAfterAppendError, GroupError.COORDINATOR_NOT_AVAILABLE),
    (AppendTimedOutError, GroupError.COORDINATOR_NOT_AVAILABLE),
    (NotLeaderError, GroupError.NOT_COORDINATOR),
    (StorageError, GroupError.NOT_COORDINATOR),
    (BatchTooLargeError, GroupError.INVALID_COMMIT_OFFSET_SIZE),
)


_UNEXPECTED: Final = GroupError.UNKNOWN_SERVER_ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """Where the batch begins in the log, or why it is not there."""

    error: GroupError = GroupError.NONE
    base_offset: int = -1


class GroupLog:
    """Appends records to a partition of the offsets topic that this node leads."""

    def __init__(self, replicas: ReplicaPort, clock: Clock, config: GroupConfig) -> None:
        self._replicas = replicas
        self._clock = clock
        self._config = config

    async def append(self, partition: int, records: Sequence[KeyValue]) -> Appended:
        """Append all records as one batch and wait until it is durable."""
        now_ms = self._clock.wall_ms()
        batch = build_batch(
            [NewRecord(key=k, value=v, timestamp=now_ms) for k, v in records],
            codec=self._config.offsets_topic_codec,
        )
        result = await self._replicas.append_and_wait(
            OFFSETS_TOPIC,
            partition,
            batch,
            acks=-1,
            timeout_ms=self._config.offsets_commit_timeout_ms,
        )
        if result.error is not None:
            return Appended(error=_verdict(result.error))
        return Appended(base_offset=result.base_offset)


def _verdict(error: Exception) -> GroupError:
    return next((v for kind, v in _VERDICTS if isinstance(error, kind)), _UNEXPECTED)
