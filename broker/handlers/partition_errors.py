"""Errors of the log and of replication as the numbers of the wire."""

from typing import Final

from kio.schema.errors import ErrorCode

from broker.log import errors as log_errors
from broker.metadata.image import MetadataImage
from broker.protocol.hot.leaders import LeaderHint, NodeEndpoint
from broker.replication import errors

_CODES: Final[dict[type[Exception], ErrorCode]] = {
    errors.UnknownPartitionError: ErrorCode.unknown_topic_or_partition,
    errors.UnknownTopicIdError: ErrorCode.unknown_topic_id,
    errors.NotLeaderError: ErrorCode.not_leader_or_follower,
    errors.FencedLeaderEpochError: ErrorCode.fenced_leader_epoch,
    errors.UnknownLeaderEpochError: ErrorCode.unknown_leader_epoch,
    errors.NotEnoughReplicasError: ErrorCode.not_enough_replicas,
    errors.NotEnoughReplicasAfterAppendError: ErrorCode.not_enough_replicas_after_append,
    errors.AppendTimedOutError: ErrorCode.request_timed_out,
    errors.InvalidRequiredAcksError: ErrorCode.invalid_required_acks,
    errors.DeletionForbiddenError: ErrorCode.policy_violation,
    errors.FetchSessionIdNotFoundError: ErrorCode.fetch_session_id_not_found,
    errors.InvalidFetchSessionEpochError: ErrorCode.invalid_fetch_session_epoch,
    log_errors.CorruptBatchError: ErrorCode.corrupt_message,
    log_errors.BatchTooLargeError: ErrorCode.message_too_large,
    log_errors.UnsupportedMagicError: ErrorCode.unsupported_for_message_format,
    log_errors.InvalidTimestampError: ErrorCode.invalid_timestamp,
    log_errors.InvalidRecordError: ErrorCode.invalid_record,
    log_errors.OutOfOrderSequenceError: ErrorCode.out_of_order_sequence_number,
    log_errors.InvalidProducerEpochError: ErrorCode.invalid_producer_epoch,
    log_errors.InvalidTxnStateError: ErrorCode.invalid_txn_state,
    log_errors.CoordinatorFencedError: ErrorCode.transaction_coordinator_fenced,
    log_errors.OffsetOutOfRangeError: ErrorCode.offset_out_of_range,
}
_LEADER_MOVED: Final = (errors.NotLeaderError, errors.FencedLeaderEpochError)


class TransactionRefusedError(Exception):
    """A transaction's coordinator does not let records in; says so by its code."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(f"the coordinator of the transaction answered {code.name}")
        self.code = code


def partition_error_code(error: Exception | None) -> ErrorCode:
    """Kafka's code of an error; anything from the disk is KAFKA_STORAGE_ERROR."""
    if error is None:
        return ErrorCode.none
    if isinstance(error, log_errors.StorageError):
        return ErrorCode.kafka_storage_error
    if isinstance(error, TransactionRefusedError):
        return error.code
    return _CODES.get(type(error), ErrorCode.unknown_server_error)


def located_error(
    image: MetadataImage, topic: str, partition: int, error: Exception | None
) -> Exception | None:
    """A partition that has no replica here, but exists, is led elsewhere."""
    if isinstance(error, errors.UnknownPartitionError) and image.partition(topic, partition):
        return errors.NotLeaderError()
    return error


def leader_hint(
    image: MetadataImage, topic: str, partition: int, error: Exception | None
) -> LeaderHint | None:
    """Where a client that came to the wrong broker should go (KIP-951)."""
    if not isinstance(error, _LEADER_MOVED):
        return None
    found = image.partition(topic, partition)
    return None if found is None else LeaderHint(found.leader, found.leader_epoch)


def node_endpoints(
    image: MetadataImage, hints: set[LeaderHint], listener_name: str
) -> list[NodeEndpoint]:
    """The addresses of hinted leaders that have this listener."""
    brokers = (image.brokers.get(leader) for leader in sorted({h.leader_id for h in hints}))
    found = ((broker, broker.endpoint(listener_name)) for broker in brokers if broker is not None)
    return [
        NodeEndpoint(broker.id, endpoint.host, endpoint.port, broker.rack)
        for broker, endpoint in found
        if endpoint is not None
    ]
