"""DescribeTransactions, version 0 (KIP-664).

Behaviour: the coordinator tells state, producer, start and partitions of each transactional id;
one that it does not know is TRANSACTIONAL_ID_NOT_FOUND, one of another coordinator
NOT_COORDINATOR.
"""

import datetime
from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.transactions.transaction_metadata import TransactionMetadata
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind

API_KEY = 65
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_UNKNOWN: dict[str, Any] = {
    "transaction_state": "",
    "transaction_timeout": 0,
    "transaction_start_time": 0,
    "producer_id": 0,
    "producer_epoch": 0,
    "topics": [],
}


@handles(api_key=API_KEY, versions=(0, 0), listener=Listener.CLIENT)
async def handle_describe_transactions(request: Request, node: NodeServices) -> LargeAnswer:
    """Each transactional id that is asked for."""
    slices = Slices()
    states = await slices.all(
        _answer(request, node, str(asked))
        for asked in dict.fromkeys(request.message.transactional_ids)
    )
    return LargeAnswer(len(states), transaction_states=states)


def _answer(request: Request, node: NodeServices, transactional_id: str) -> dict[str, Any]:
    authorization, context, right = node.authorization, request.context, Operation.DESCRIBE
    kind = ResourceKind.TRANSACTIONAL_ID
    if authorization.is_refused(context, right, kind, transactional_id):
        error = ErrorCode.transactional_id_authorization_failed
        return {**_UNKNOWN, "transactional_id": transactional_id, "error_code": error}
    known = node.transactions.coordinator.describe(transactional_id)
    if isinstance(known, CoordinatorError):
        return {**_UNKNOWN, "transactional_id": transactional_id, "error_code": known.code}
    topics: dict[str, list[int]] = {}
    names = [topic for topic, _ in known.partitions]
    hidden = authorization.refused_now(context, right, ResourceKind.TOPIC, names, is_told=False)
    for topic, index in sorted(it for it in known.partitions if it[0] not in hidden):
        topics.setdefault(topic, []).append(index)
    return {
        **_row(known),
        "topics": [{"topic": name, "partitions": indexes} for name, indexes in topics.items()],
    }


def _row(known: TransactionMetadata) -> dict[str, Any]:
    return {
        "error_code": CoordinatorError.NONE.code,
        "transactional_id": known.transactional_id,
        "transaction_state": str(known.state),
        "transaction_timeout": known.timeout_ms,
        "transaction_start_time": _EPOCH + datetime.timedelta(milliseconds=known.start_ms),
        "producer_id": known.producer_id,
        "producer_epoch": known.epoch,
    }
