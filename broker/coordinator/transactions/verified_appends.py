"""First records of a transaction: the coordinator is asked before they enter a partition (KIP-890).

In version 2 clients add no partitions: the leader does, with the same request.

A record that came late, when its transaction has ended, would open one that nobody ends. Further
batches of the same producer wait behind the first one, and enter in their order.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.background import Tasks, log_failure
from broker.coordinator.config import partition_for
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from broker.coordinator.transactions.transaction_markers import ToBroker
from broker.coordinator.transactions.transaction_metadata import (
    VERSION_2,
    Producer,
    SupportedOperation,
    TopicPartition,
)
from broker.metadata.metadata_service import MetadataService
from broker.metadata.topic_names import TRANSACTION_TOPIC
from broker.protocol import codec

ADD_PARTITIONS_TO_TXN: Final = 24
ADD_PARTITIONS_TO_TXN_VERSION: Final = 5
_RETRIABLE: Final = (
    CoordinatorError.CONCURRENT_TRANSACTIONS,
    CoordinatorError.COORDINATOR_LOAD_IN_PROGRESS,
    CoordinatorError.COORDINATOR_NOT_AVAILABLE,
    CoordinatorError.NOT_COORDINATOR,
)
_RETRY_S_MIN: Final = 0.005
_RETRY_S_MAX: Final = 0.05
"""Asked again, for some 100 ms, while another change of the transaction is being written."""
Begin = Callable[[], object]
"""Takes the token that lets first records into the log. A marker makes it void: it is taken before
each question, since the marker of the transaction before may come between two of them."""
OnVerified = Callable[[CoordinatorError, object], None]
"""Called once with NONE, or what the producer is told, and the token. NOT_ENOUGH_REPLICAS makes it
try again."""
Verdict = tuple[CoordinatorError, object]
_Asked = tuple[str, Producer, SupportedOperation]
Verdicts = Mapping[TopicPartition, CoordinatorError]


class VerifiedAppends:
    """Asks once for a producer and partition; who comes meanwhile waits for the answer. Partitions
    of one Produce request are asked for together."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        metadata: MetadataService,
        to_broker: ToBroker,
        *,
        node_id: int,
    ) -> None:
        self._coordinator = coordinator
        self._metadata = metadata
        self._to_broker = to_broker
        self._node_id = node_id
        self._waiting: dict[tuple[TopicPartition, Producer], list[OnVerified]] = {}
        self._next: dict[_Asked, dict[TopicPartition, Begin]] = {}
        self._tasks = Tasks("verification of transactions", log_failure)

    async def stop(self) -> None:
        """End all questions: producers try again elsewhere."""
        await self._tasks.stop()
        self._next.clear()
        waiting, self._waiting = self._waiting, {}
        for on_verified in (each for asked in waiting.values() for each in asked):
            on_verified(CoordinatorError.NOT_ENOUGH_REPLICAS, None)

    def is_busy(self, partition: TopicPartition, producer: Producer) -> bool:
        """Whether earlier batches of the producer are waiting."""
        return (partition, producer) in self._waiting

    def ask(
        self,
        transactional_id: str,
        producer: Producer,
        partition: TopicPartition,
        begin: Begin,
        on_verified: OnVerified,
        *,
        operation: SupportedOperation = SupportedOperation.DEFAULT_ERROR,
    ) -> None:
        """Whether the partition is part of the producer's open transaction, or add it."""
        key = (partition, producer)
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(on_verified)
            return
        self._waiting[key] = [on_verified]
        asked = (transactional_id, producer, operation)
        if asked in self._next:
            self._next[asked][partition] = begin
            return
        self._next[asked] = {partition: begin}
        self._tasks.start(self._ask(asked))

    async def _ask(self, asked: _Asked) -> None:
        begins = self._next.pop(asked)
        verdicts: Mapping[TopicPartition, Verdict] = {}
        try:
            verdicts = await self._verdicts(asked, begins)
        finally:
            unknown = (CoordinatorError.UNKNOWN_SERVER_ERROR, None)
            for partition in begins:
                verdict = verdicts.get(partition, unknown)
                for on_verified in self._waiting.pop((partition, asked[1]), ()):
                    on_verified(*verdict)

    async def verify(
        self,
        transactional_id: str,
        producer: Producer,
        partition: TopicPartition,
        begin: Begin,
        operation: SupportedOperation = SupportedOperation.DEFAULT_ERROR,
    ) -> Verdict:
        """NONE, or what the producer is told, and the token."""
        asked = (transactional_id, producer, operation)
        verdicts = await self._verdicts(asked, {partition: begin})
        return verdicts[partition]

    async def _verdicts(
        self, asked: _Asked, begins: Mapping[TopicPartition, Begin]
    ) -> Mapping[TopicPartition, Verdict]:
        retry_s, operation = _RETRY_S_MIN, asked[2]
        while True:
            tokens = {key: begin() for key, begin in begins.items()}
            answers = await self._answers(asked, frozenset(begins))
            is_concurrent = CoordinatorError.CONCURRENT_TRANSACTIONS in answers.values()
            is_adding = operation is SupportedOperation.ADD_PARTITION
            if not (is_adding and is_concurrent) or retry_s >= _RETRY_S_MAX:
                break
            await asyncio.sleep(retry_s)
            retry_s *= 2
        unknown = CoordinatorError.UNKNOWN_SERVER_ERROR
        return {
            key: (_told(answers.get(key, unknown), operation), token)
            for key, token in tokens.items()
        }

    async def _answers(self, asked: _Asked, partitions: frozenset[TopicPartition]) -> Verdicts:
        transactional_id, producer, operation = asked
        is_adding = operation is SupportedOperation.ADD_PARTITION
        image = self._metadata.image
        topic = image.topics.get(TRANSACTION_TOPIC)
        if topic is None:
            return dict.fromkeys(partitions, CoordinatorError.INVALID_TXN_STATE)
        leader = topic.partitions[partition_for(transactional_id, len(topic.partitions))].leader
        if leader == self._node_id and is_adding:
            error = await self._coordinator.add_partitions(
                transactional_id, producer, partitions, version=VERSION_2
            )
            return dict.fromkeys(partitions, error)
        if leader == self._node_id:
            return self._coordinator.verify_partitions(transactional_id, producer, partitions)
        unreached = dict.fromkeys(partitions, CoordinatorError.COORDINATOR_NOT_AVAILABLE)
        peer = self._to_broker(leader)
        if peer is None:
            return unreached
        message = _build_request(asked, partitions)
        try:
            answer = await peer.send(ADD_PARTITIONS_TO_TXN, ADD_PARTITIONS_TO_TXN_VERSION, message)
        except OSError:
            return unreached
        return _read_answer(answer, partitions)


def _told(error: CoordinatorError, operation: SupportedOperation) -> CoordinatorError:
    """A verdict, as the client of the request understands it."""
    is_adding = operation is SupportedOperation.ADD_PARTITION
    if error is CoordinatorError.CONCURRENT_TRANSACTIONS and is_adding:
        return error  # every commit makes it: a producer of version 2 knows it
    if error in _RETRIABLE:
        return CoordinatorError.NOT_ENOUGH_REPLICAS
    if error is CoordinatorError.PRODUCER_FENCED:
        return CoordinatorError.INVALID_PRODUCER_EPOCH
    is_old = operation is SupportedOperation.DEFAULT_ERROR
    if error is CoordinatorError.TRANSACTION_ABORTABLE and is_old:
        return CoordinatorError.INVALID_TXN_STATE
    return error


def _build_request(asked: _Asked, partitions: Iterable[TopicPartition]) -> Any:
    transactional_id, producer, operation = asked
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return codec.build_request(
        ADD_PARTITIONS_TO_TXN,
        ADD_PARTITIONS_TO_TXN_VERSION,
        transactions=[
            {
                "transactional_id": transactional_id,
                "producer_id": producer.id,
                "producer_epoch": producer.epoch,
                "verify_only": operation is not SupportedOperation.ADD_PARTITION,
                "topics": [{"name": name, "partitions": it} for name, it in topics.items()],
            }
        ],
    )


def _read_answer(answer: Any, partitions: Iterable[TopicPartition]) -> Verdicts:
    if answer.error_code is not ErrorCode.none:
        return dict.fromkeys(partitions, _error(answer.error_code))
    return {
        (str(topic.name), int(row.partition_index)): _error(row.partition_error_code)
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for row in topic.results_by_partition
    }


def _error(code: ErrorCode) -> CoordinatorError:
    try:
        return CoordinatorError(code.name)
    except ValueError:
        return CoordinatorError.UNKNOWN_SERVER_ERROR
