"""AddPartitionsToTxn, versions 0-5.

Behaviour: partitions become part of the producer's open transaction, which begins with the first
ones; all or none. Those that do not exist are UNKNOWN_TOPIC_OR_PARTITION, the others then
OPERATION_NOT_ATTEMPTED.
Notes: clients ask up to v3. From v4 on leaders of partitions ask, for several transactions: to add
in version 2 of transactions, else only to verify (KIP-890): TRANSACTION_ABORTABLE where a partition
was not added, before v5 INVALID_TXN_STATE. Before v2 PRODUCER_FENCED was INVALID_PRODUCER_EPOCH.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kio.schema.errors import ErrorCode

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.transactions.transaction_metadata import (
    VERSION_2,
    Producer,
    SupportedOperation,
    TopicPartition,
)
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import CLUSTER
from broker.protocol import codec

API_KEY = 24
FENCED_SINCE = 2
OF_BROKERS = 4
ABORTABLE_SINCE = 5


@handles(api_key=API_KEY, versions=(0, 5), listener=Listener.CLIENT)
async def handle_add_partitions_to_txn(request: Request, node: NodeServices) -> Any:
    """Add, or verify, partitions of one transaction or several."""
    message, version = request.message, request.api_version
    if version < OF_BROKERS:
        producer = Producer(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch)
        partitions = _partitions(message.v3_and_below_topics)
        verdicts = await _refused(request, node, partitions)
        if not verdicts:
            id_ = str(message.v3_and_below_transactional_id)
            verdicts = await _add(node, id_, producer, partitions)
        topics = _topic_results(verdicts, version)
        return LargeAnswer(len(verdicts), results_by_topic_v3_and_below=topics)
    if not node.authorization.is_allowed(request.context, Operation.CLUSTER_ACTION, CLUSTER):
        refused = ErrorCode.cluster_authorization_failed
        return codec.build_response(API_KEY, version, error_code=refused, results_by_transaction=[])
    results, entries = [], 0
    for asked in message.transactions:
        verdicts = await _answer(node, asked)
        entries += 1 + len(verdicts)
        results.append(
            {
                "transactional_id": asked.transactional_id,
                "topic_results": _topic_results(verdicts, version),
            }
        )
    return LargeAnswer(entries, error_code=ErrorCode.none, results_by_transaction=results)


async def _refused(
    request: Request, node: NodeServices, keys: Sequence[TopicPartition]
) -> Mapping[TopicPartition, CoordinatorError]:
    """Verdicts where the principal lacks a right to the transaction or to one of the topics."""
    authorization, context, right = node.authorization, request.context, Operation.WRITE
    id_ = str(request.message.v3_and_below_transactional_id)
    if authorization.is_refused(context, right, ResourceKind.TRANSACTIONAL_ID, id_):
        return dict.fromkeys(keys, CoordinatorError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    names = [topic for topic, _ in keys]
    refused = await authorization.refused(context, right, ResourceKind.TOPIC, names)
    if not refused:
        return {}
    denied, other = (
        CoordinatorError.TOPIC_AUTHORIZATION_FAILED,
        CoordinatorError.OPERATION_NOT_ATTEMPTED,
    )
    return {key: denied if key[0] in refused else other for key in keys}


async def _answer(node: NodeServices, asked: Any) -> Mapping[TopicPartition, CoordinatorError]:
    producer = Producer(asked.producer_id, asked.producer_epoch)
    partitions = _partitions(asked.topics)
    if not asked.verify_only:
        id_ = str(asked.transactional_id)
        return await _add(node, id_, producer, partitions, version=VERSION_2)
    return node.transactions.coordinator.verify_partitions(
        str(asked.transactional_id), producer, frozenset(partitions)
    )


async def _add(
    node: NodeServices,
    transactional_id: str,
    producer: Producer,
    keys: Sequence[TopicPartition],
    *,
    version: int = 0,
) -> Mapping[TopicPartition, CoordinatorError]:
    image = node.metadata.image
    unknown = [key for key in keys if image.partition(*key) is None]
    if unknown:
        verdicts = dict.fromkeys(keys, CoordinatorError.OPERATION_NOT_ATTEMPTED)
        return verdicts | dict.fromkeys(unknown, CoordinatorError.UNKNOWN_TOPIC_OR_PARTITION)
    error = await node.transactions.coordinator.add_partitions(
        transactional_id, producer, frozenset(keys), version=version
    )
    return dict.fromkeys(keys, error)


def _partitions(topics: Sequence[Any]) -> list[TopicPartition]:
    return [(str(topic.name), int(index)) for topic in topics for index in topic.partitions]


def _topic_results(
    verdicts: Mapping[TopicPartition, CoordinatorError], version: int
) -> list[dict[str, Any]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, index), verdict in verdicts.items():
        code = _code(verdict, version)
        row = {"partition_index": index, "partition_error_code": code}
        topics.setdefault(topic, []).append(row)
    return [{"name": name, "results_by_partition": rows} for name, rows in topics.items()]


def _code(verdict: CoordinatorError, version: int) -> ErrorCode:
    if verdict is CoordinatorError.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return ErrorCode.invalid_txn_state
    return fenced_code(verdict, is_known=version >= FENCED_SINCE)


def fenced_code(verdict: CoordinatorError, *, is_known: bool) -> ErrorCode:
    """A verdict for clients that may not know PRODUCER_FENCED yet."""
    if verdict is CoordinatorError.PRODUCER_FENCED and not is_known:
        return ErrorCode.invalid_producer_epoch
    return verdict.code


def supported_operation(version: int, *, abortable: int, adding: int) -> SupportedOperation:
    """The question of a leader about a request in `version`: its client knows
    TRANSACTION_ABORTABLE from one version on, and adds no partitions from another one on."""
    if version >= adding:
        return SupportedOperation.ADD_PARTITION
    if version >= abortable:
        return SupportedOperation.GENERIC_ERROR_SUPPORTED
    return SupportedOperation.DEFAULT_ERROR
