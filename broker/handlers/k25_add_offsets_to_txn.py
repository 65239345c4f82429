"""AddOffsetsToTxn, versions 0-4.

Behaviour: the partition of __consumer_offsets that keeps a group becomes part of the producer's
transaction, before it commits offsets of that group (TxnOffsetCommit).
Notes: before v2 PRODUCER_FENCED was INVALID_PRODUCER_EPOCH.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.coordinator.config import partition_for
from broker.coordinator.transactions.transaction_metadata import Producer
from broker.handlers.k10_find_coordinator import ensure_topic
from broker.handlers.k24_add_partitions_to_txn import FENCED_SINCE, fenced_code
from broker.handlers.registry import Right, handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.topic_names import OFFSETS_TOPIC
from broker.protocol import codec

API_KEY = 25


@handles(
    api_key=API_KEY,
    versions=(0, 4),
    rights=(
        Right(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, "transactional_id"),
        Right(Operation.READ, ResourceKind.GROUP, "group_id"),
    ),
    listener=Listener.CLIENT,
)
async def handle_add_offsets_to_txn(request: Request, node: NodeServices) -> Any:
    """Add the partition that keeps the group."""
    message, version = request.message, request.api_version
    await ensure_topic(node, OFFSETS_TOPIC)
    topic = node.metadata.image.topics.get(OFFSETS_TOPIC)
    if not message.group_id:
        return codec.build_response(API_KEY, version, error_code=ErrorCode.invalid_group_id)
    if topic is None:
        error = ErrorCode.coordinator_not_available
        return codec.build_response(API_KEY, version, error_code=error)
    index = partition_for(message.group_id, len(topic.partitions))
    verdict = await node.transactions.coordinator.add_partitions(
        str(message.transactional_id),
        Producer(message.producer_id, message.producer_epoch),
        frozenset({(OFFSETS_TOPIC, index)}),
    )
    error = fenced_code(verdict, is_known=version >= FENCED_SINCE)
    return codec.build_response(API_KEY, version, error_code=error)
