"""WriteTxnMarkers, version 1, between brokers; tools abort hanging transactions with it.

Behaviour: the leader of each partition writes the marker and answers when it is replicated. A
marker of an older coordinator is TRANSACTION_COORDINATOR_FENCED, of an older producer epoch
INVALID_PRODUCER_EPOCH. Into a partition of __consumer_offsets it settles the pending offsets.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.coordinator.transactions.transaction_markers import EndedTransaction
from broker.coordinator.transactions.transaction_metadata import Producer
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.partition_errors import located_error, partition_error_code
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation
from broker.metadata.authorization import CLUSTER
from broker.protocol.control_records import Marker

API_KEY = 27
_LAST = Operation.CLUSTER_ACTION
"""The right that brokers have; people who may alter the cluster abort transactions, too."""


@handles(api_key=API_KEY, versions=(1, 1), listener=Listener.CLIENT)
async def handle_write_txn_markers(request: Request, node: NodeServices) -> LargeAnswer:
    """Write markers into partitions that this node leads."""
    is_allowed = any(
        node.authorization.is_allowed(request.context, right, CLUSTER, is_told=right is _LAST)
        for right in (Operation.ALTER, _LAST)
    )
    write = _write if is_allowed else _refuse
    answers = [await write(node, marker) for marker in request.message.markers]
    entries = sum(len(topic["partitions"]) for it in answers for topic in it["topics"])
    return LargeAnswer(len(answers) + entries, markers=answers)


async def _refuse(_node: NodeServices, asked: Any) -> dict[str, Any]:
    error = ErrorCode.cluster_authorization_failed
    topics = [
        {
            "name": topic.name,
            "partitions": [
                {"partition_index": it, "error_code": error} for it in topic.partition_indexes
            ],
        }
        for topic in asked.topics
    ]
    return {"producer_id": asked.producer_id, "topics": topics}


async def _write(node: NodeServices, asked: Any) -> dict[str, Any]:
    ended = EndedTransaction(
        producer=Producer(asked.producer_id, asked.producer_epoch),
        marker=Marker(bool(asked.transaction_result), asked.coordinator_epoch),
    )
    keys = dict.fromkeys(
        (str(topic.name), int(index)) for topic in asked.topics for index in topic.partition_indexes
    )
    errors = await node.transactions.markers.write(ended, keys)
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, index), error in errors.items():
        located = located_error(node.metadata.image, topic, index, error)
        row = {"partition_index": index, "error_code": partition_error_code(located)}
        topics.setdefault(topic, []).append(row)
    return {
        "producer_id": asked.producer_id,
        "topics": [{"name": name, "partitions": rows} for name, rows in topics.items()],
    }
