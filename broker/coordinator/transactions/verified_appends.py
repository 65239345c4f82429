"""First records of a transaction: the coordinator is asked before they enter a partition (KIP-890).

A record that came late, when its transaction has ended, would open one that nobody ends. Further
batches of the same producer wait behind the first one, and enter in their order.
"""

from collections.abc import Callable
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.background import Tasks, log_failure
from broker.coordinator.config import partition_for
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from broker.coordinator.transactions.transaction_markers import ToBroker
from broker.coordinator.transactions.transaction_metadata import Producer, TopicPartition
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
OnVerified = Callable[[CoordinatorError], None]
"""Called once: NONE, or what the producer is told. NOT_ENOUGH_REPLICAS makes it try again."""


class VerifiedAppends:
    """Asks for one producer and partition at a time; who comes meanwhile waits for the answer."""

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
        self._tasks = Tasks("verification of transactions", log_failure)

    async def stop(self) -> None:
        """End all questions: producers try again elsewhere."""
        await self._tasks.stop()
        waiting, self._waiting = self._waiting, {}
        for on_verified in (each for asked in waiting.values() for each in asked):
            on_verified(CoordinatorError.NOT_ENOUGH_REPLICAS)

    def is_busy(self, partition: TopicPartition, producer: Producer) -> bool:
        """Whether earlier batches of the producer are waiting."""
        return (partition, producer) in self._waiting

    def ask(
        self,
        transactional_id: str,
        producer: Producer,
        partition: TopicPartition,
        on_verified: OnVerified,
    ) -> None:
        """Whether the partition is part of the producer's open transaction."""
        key = (partition, producer)
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(on_verified)
            return
        self._waiting[key] = [on_verified]
        self._tasks.start(self._ask(transactional_id, key))

    async def _ask(self, transactional_id: str, key: tuple[TopicPartition, Producer]) -> None:
        error = CoordinatorError.UNKNOWN_SERVER_ERROR
        try:
            error = await self.verify(transactional_id, key[1], key[0])
        finally:
            for on_verified in self._waiting.pop(key, ()):
                on_verified(error)

    async def verify(
        self, transactional_id: str, producer: Producer, partition: TopicPartition
    ) -> CoordinatorError:
        """NONE, or what the producer is told."""
        error = await self._answer(transactional_id, producer, partition)
        if error in _RETRIABLE:
            return CoordinatorError.NOT_ENOUGH_REPLICAS
        if error is CoordinatorError.PRODUCER_FENCED:
            return CoordinatorError.INVALID_PRODUCER_EPOCH
        if error is CoordinatorError.TRANSACTION_ABORTABLE:
            return CoordinatorError.INVALID_TXN_STATE
        return error

    async def _answer(
        self, transactional_id: str, producer: Producer, partition: TopicPartition
    ) -> CoordinatorError:
        image = self._metadata.image
        topic = image.topics.get(TRANSACTION_TOPIC)
        if topic is None:
            return CoordinatorError.INVALID_TXN_STATE
        leader = topic.partitions[partition_for(transactional_id, len(topic.partitions))].leader
        if leader == self._node_id:
            asked = frozenset({partition})
            found = self._coordinator.verify_partitions(transactional_id, producer, asked)
            return found[partition]
        peer = self._to_broker(leader)
        if peer is None:
            return CoordinatorError.COORDINATOR_NOT_AVAILABLE
        message = _build_request(transactional_id, producer, partition)
        try:
            answer = await peer.send(ADD_PARTITIONS_TO_TXN, ADD_PARTITIONS_TO_TXN_VERSION, message)
        except OSError:
            return CoordinatorError.COORDINATOR_NOT_AVAILABLE
        return _read_answer(answer)


def _build_request(transactional_id: str, producer: Producer, partition: TopicPartition) -> Any:
    return codec.build_request(
        ADD_PARTITIONS_TO_TXN,
        ADD_PARTITIONS_TO_TXN_VERSION,
        transactions=[
            {
                "transactional_id": transactional_id,
                "producer_id": producer.id,
                "producer_epoch": producer.epoch,
                "verify_only": True,
                "topics": [{"name": partition[0], "partitions": [partition[1]]}],
            }
        ],
    )


def _read_answer(answer: Any) -> CoordinatorError:
    code = answer.error_code
    if code is ErrorCode.none:
        code = answer.results_by_transaction[0].topic_results[0].results_by_partition[0]
        code = code.partition_error_code
    try:
        return CoordinatorError(code.name)
    except ValueError:
        return CoordinatorError.UNKNOWN_SERVER_ERROR
