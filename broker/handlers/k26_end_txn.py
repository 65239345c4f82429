"""EndTxn, versions 0-5.

Behaviour: answers when the outcome is replicated; from there on it stands, whoever dies. Markers
are written afterwards: the next request of the producer is CONCURRENT_TRANSACTIONS meanwhile. The
same outcome may be asked for again.
Notes: before v2 PRODUCER_FENCED was INVALID_PRODUCER_EPOCH. v5 belongs to transactions of version
2: it answers the epoch of the next transaction, and aborts also where none is open.
"""

from typing import Any

from broker.coordinator.transactions.transaction_metadata import Producer
from broker.handlers.k24_add_partitions_to_txn import FENCED_SINCE, fenced_code
from broker.handlers.registry import Right, handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.protocol import codec

API_KEY = 26
NEW_EPOCH_SINCE = 5


@handles(
    api_key=API_KEY,
    versions=(0, 5),
    rights=(Right(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, "transactional_id"),),
    listener=Listener.CLIENT,
)
async def handle_end_txn(request: Request, node: NodeServices) -> Any:
    """Commit or abort the producer's transaction."""
    message, version = request.message, request.api_version
    coordinator, id_ = node.transactions.coordinator, str(message.transactional_id)
    producer = Producer(message.producer_id, message.producer_epoch)
    is_commit = bool(message.committed)
    if version >= NEW_EPOCH_SINCE:
        ended = await coordinator.end_epoch(id_, producer, is_commit=is_commit)
        producer_id, epoch = ended.producer
        return codec.build_response(
            API_KEY,
            version,
            error_code=ended.error.code,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
    verdict = await coordinator.end(id_, producer, is_commit=is_commit)
    error = fenced_code(verdict, is_known=version >= FENCED_SINCE)
    return codec.build_response(API_KEY, version, error_code=error)
