"""EndTxn, versions 0-4.

Behaviour: answers when the outcome is replicated; from there on it stands, whoever dies. Markers
are written afterwards: the next request of the producer is CONCURRENT_TRANSACTIONS meanwhile. The
same outcome may be asked for again.
Notes: before v2 PRODUCER_FENCED was INVALID_PRODUCER_EPOCH. v5 belongs to transactions of version 2
(a new epoch for each of them), which are not announced.
"""

from typing import Any

from broker.coordinator.transactions.transaction_metadata import Producer
from broker.handlers.k24_add_partitions_to_txn import FENCED_SINCE, fenced_code
from broker.handlers.registry import Right, handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.protocol import codec

API_KEY = 26


@handles(
    api_key=API_KEY,
    versions=(0, 4),
    rights=(Right(Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, "transactional_id"),),
    listener=Listener.CLIENT,
)
async def handle_end_txn(request: Request, node: NodeServices) -> Any:
    """Commit or abort the producer's transaction."""
    message, version = request.message, request.api_version
    verdict = await node.transactions.coordinator.end(
        str(message.transactional_id),
        Producer(message.producer_id, message.producer_epoch),
        is_commit=bool(message.committed),
    )
    error = fenced_code(verdict, is_known=version >= FENCED_SINCE)
    return codec.build_response(API_KEY, version, error_code=error)
