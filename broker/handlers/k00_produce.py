"""Produce, versions 3-13 (advertised from 0 for a librdkafka bug, as Kafka does: KAFKA-18659).

Behaviour: each partition's batches are appended as they came and answered for by itself. acks=1
answers after the append, acks=all when every in-sync replica has it, or after the request's timeout
with REQUEST_TIMED_OUT; the time begins when the disk has what flush.messages asks for. acks=0 is
never answered. Where it fails the connection is closed, so that the producer refreshes its metadata
(kafka.server.KafkaApis).
Notes: no task, future or timer per request. From v10 NOT_LEADER_OR_FOLLOWER names the leader;
from v13 topics come as ids. The first records of a transaction in a partition wait until its
coordinator has told that the partition was added (KIP-890); from v12 on, which clients use in
version 2 of transactions, it is added here. From v11 on they know TRANSACTION_ABORTABLE.
"""

from collections.abc import Callable
from functools import partial

from kio.schema.errors import ErrorCode

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.transactions.transaction_metadata import Producer
from broker.handlers.k24_add_partitions_to_txn import supported_operation
from broker.handlers.partition_errors import (
    TransactionRefusedError,
    leader_hint,
    located_error,
    node_endpoints,
    partition_error_code,
)
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request, ResponseSlot
from broker.handlers.topic_view import topic_name
from broker.log.errors import RecordsRejectedError
from broker.log.log_validator import AppendInfo
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.topic_names import INTERNAL_TOPICS
from broker.protocol.compression import ZSTD
from broker.protocol.hot.leaders import LeaderHint
from broker.protocol.hot.produce import (
    ProducedPartition,
    ProduceRequest,
    ProduceResult,
    TopicKey,
    decode_produce,
    encode_produce_response,
)
from broker.protocol.records import HEADER_BYTES, MAGIC_V2, BatchHeader, parse_batch_header
from broker.protocol.request_context import RequestContext
from broker.replication.errors import UnknownTopicIdError

API_KEY = 0
ACKS_NONE = 0
ABORTABLE_SINCE = 11
ADDING_SINCE = 12
ZSTD_SINCE = 7
"""Clients of older versions cannot read what they would write."""
PARTITION_BYTES = 1_024
"""What a partition of a request that waits takes in memory, without its records."""


@handles(api_key=API_KEY, versions=(3, 13), listener=Listener.CLIENT, advertised_min=0)
def handle_produce(request: Request, node: NodeServices, slot: ResponseSlot) -> None:
    """Append everything, answer when every partition is done."""
    produce = decode_produce(request.header, request.frame)
    operation = _Operation(request, produce, node, slot)
    denied = _denied(produce, request.context, node) if node.authorization.is_enabled else {}
    for topic, partitions in produce.topics:
        if topic in denied:
            operation.refuse_topic(topic, partitions, denied[topic])
        else:
            operation.append_topic(topic, partitions)
    operation.maybe_answer()


class _Operation:
    """One request until its last partition is done."""

    __slots__ = (
        "_answers",
        "_context",
        "_header",
        "_node",
        "_pending",
        "_request",
        "_size_bytes",
        "_slot",
        "_time",
    )

    def __init__(
        self, asked: Request, request: ProduceRequest, node: NodeServices, slot: ResponseSlot
    ) -> None:
        self._header = asked.header
        self._context = asked.context
        self._size_bytes = len(asked.frame)
        self._time = asked.time
        self._request = request
        self._node = node
        self._slot = slot
        self._answers: list[tuple[TopicKey, list[ProduceResult]]] = []
        partitions = sum(len(topic.partitions) for topic in request.topics)
        self._pending = partitions + 1
        slot.hold(partitions * PARTITION_BYTES)

    def refuse_topic(
        self, key: TopicKey, partitions: list[ProducedPartition], error: ErrorCode
    ) -> None:
        """Take no records of a topic."""
        self._answers.append((key, [ProduceResult(it, int(error)) for it, _ in partitions]))
        self._pending -= len(partitions)

    def append_topic(self, key: TopicKey, partitions: list[ProducedPartition]) -> None:
        """Append the records of one topic; answers fill `results` in the request's order."""
        image = self._node.metadata.image
        name = topic_name(image, key)
        results = [ProduceResult(partition) for partition, _ in partitions]
        self._answers.append((key, results))
        for place, (partition, records) in enumerate(partitions):
            on_done = partial(self._done, results, place, name or "")
            refusal = _refusal(name, records, self._header.api_version)
            if refusal is not None or records is None or name is None:
                results[place] = ProduceResult(partition, int(refusal or 0))
                self._pending -= 1
                continue
            if self._request.transactional_id is not None and self._must_verify(
                name, partition, records
            ):
                self._append_verified(name, partition, bytes(records), on_done)
                continue
            self._append(name, partition, records, on_done)

    def _append(
        self,
        topic: str,
        partition: int,
        records: memoryview,
        on_done: Callable[[AppendInfo], None],
        verification: object = None,
    ) -> None:
        self._node.replicas.appender.append(
            topic,
            partition,
            records,
            acks=self._request.acks,
            on_done=on_done,
            timeout_ms=self._request.timeout_ms,
            is_from_client=True,
            verification=verification,
        )

    def _must_verify(self, topic: str, partition: int, records: memoryview) -> bool:
        """Whether these may be the first records of a transaction in a partition."""
        found = self._node.replicas.partition(topic, partition)
        if found is None or not found.is_leader or len(records) < HEADER_BYTES:
            return False
        header = parse_batch_header(records)
        if header.magic != MAGIC_V2 or not header.is_transactional:
            return False
        producer = _producer(header)
        is_behind = self._node.transactions.verified.is_busy((topic, partition), producer)
        return is_behind or not found.log.producers.state.has_open_transaction(*producer)

    def _append_verified(
        self, topic: str, partition: int, records: bytes, on_done: Callable[[AppendInfo], None]
    ) -> None:
        self._slot.hold(len(records))
        found = self._node.replicas.partition(topic, partition)
        assert found is not None
        producer = _producer(parse_batch_header(records))
        begin = partial(found.log.producers.state.begin_verification, producer.id)

        def append(error: CoordinatorError, token: object) -> None:
            if error is CoordinatorError.NONE:
                self._append(topic, partition, memoryview(records), on_done, token)
            else:
                on_done(AppendInfo(error=TransactionRefusedError(error.code)))

        transactional_id = self._request.transactional_id or ""
        operation = supported_operation(
            self._header.api_version, abortable=ABORTABLE_SINCE, adding=ADDING_SINCE
        )
        self._node.transactions.verified.ask(
            transactional_id, producer, (topic, partition), begin, append, operation=operation
        )

    def _done(
        self, results: list[ProduceResult], place: int, topic: str, result: AppendInfo
    ) -> None:
        partition = results[place].partition
        if result.error is None:
            results[place] = ProduceResult(
                partition,
                0,
                result.base_offset,
                result.log_append_time_ms,
                result.log_start_offset,
            )
        else:
            image = self._node.metadata.image
            error = located_error(image, topic, partition, result.error)
            refused = result.error
            results[place] = ProduceResult(
                partition,
                int(partition_error_code(error)),
                log_start_offset=result.log_start_offset,
                error_message=str(error) or None,
                leader=leader_hint(image, topic, partition, error),
                record_errors=refused.records if isinstance(refused, RecordsRejectedError) else {},
            )
        self.maybe_answer()

    def maybe_answer(self) -> None:
        """One part of the request less; the last one answers."""
        self._pending -= 1
        if self._pending:
            return
        throttle_ms = self._throttle_ms() if self._node.quotas.is_enabled else 0
        if throttle_ms:
            self._slot.throttle(throttle_ms)
        if self._request.acks == ACKS_NONE:
            self._end_without_answer()
            return
        hints: set[LeaderHint] = {
            result.leader
            for _, results in self._answers
            for result in results
            if result.leader is not None
        }
        image, listener_name = self._node.metadata.image, self._context.listener_name
        endpoints = node_endpoints(image, hints, listener_name) if hints else ()
        self._slot.complete(
            (encode_produce_response(self._header, self._answers, endpoints, throttle_ms),)
        )

    def _throttle_ms(self) -> int:
        """The time of a request that is not answered does not count, as in Kafka."""
        quotas, context = self._node.quotas, self._context
        of_bytes = quotas.produce.record(context, self._size_bytes)
        if self._request.acks == ACKS_NONE:
            return of_bytes
        spent_ns = 0 if self._time is None else self._time.spent_ns
        return max(of_bytes, quotas.record_request(context, spent_ns))

    def _end_without_answer(self) -> None:
        failed = [result for _, results in self._answers for result in results if result.error_code]
        if failed:
            code = ErrorCode(failed[0].error_code).name
            self._slot.close_connection(f"a Produce request with acks=0 failed with {code}")
        else:
            self._slot.no_response()


def _is_transactional(records: memoryview | None) -> bool:
    if records is None or len(records) < HEADER_BYTES:
        return False
    header = parse_batch_header(records)
    return header.magic == MAGIC_V2 and header.is_transactional


def _denied(
    request: ProduceRequest, context: RequestContext, node: NodeServices
) -> dict[TopicKey, ErrorCode]:
    """Topics whose records the principal may not write, and how that is told."""
    authorization, image, id_ = node.authorization, node.metadata.image, request.transactional_id
    keys = [key for key, _ in request.topics]
    kind = ResourceKind.TRANSACTIONAL_ID
    if any(_is_transactional(records) for _, rows in request.topics for _, records in rows) and (
        id_ is None or authorization.is_refused(context, Operation.WRITE, kind, id_)
    ):
        return dict.fromkeys(keys, ErrorCode.transactional_id_authorization_failed)
    names = {key: topic_name(image, key) for key in keys}
    known = [name for name in names.values() if name is not None]
    refused = authorization.refused_now(context, Operation.WRITE, ResourceKind.TOPIC, known)
    error = ErrorCode.topic_authorization_failed
    return {key: error for key, name in names.items() if name in refused}


def _producer(header: BatchHeader) -> Producer:
    return Producer(header.producer_id, header.producer_epoch)


def _refusal(topic: str | None, records: memoryview | None, version: int) -> ErrorCode | None:
    """Why a partition's records are not even looked at."""
    if topic is None:
        return partition_error_code(UnknownTopicIdError())
    if topic in INTERNAL_TOPICS:
        return ErrorCode.invalid_topic_exception
    if records is None or not len(records):
        return ErrorCode.invalid_record
    return _refusal_of_batch(records, version) if len(records) >= HEADER_BYTES else None


def _refusal_of_batch(records: memoryview, version: int) -> ErrorCode | None:
    """Kafka takes one batch of a partition in a request (ProduceRequest.validateRecords): of
    several, a duplicate could not be answered for by itself."""
    header = parse_batch_header(records)
    if header.magic == MAGIC_V2 and header.size_bytes < len(records):
        return ErrorCode.invalid_record
    if header.magic == MAGIC_V2 and header.codec == ZSTD and version < ZSTD_SINCE:
        return ErrorCode.unsupported_compression_type
    return None
