"""ListTransactions, versions 0-2 (KIP-664).

Behaviour: the transactional ids that this broker coordinates; tools ask every broker. Filters: by
state (names that are none are told), producer id, from v1 by time since the start in ms, from v2 by
a pattern of the transactional id. COORDINATOR_LOAD_IN_PROGRESS while some are being read.
"""

from typing import Any

import re2
from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.coordinator.transactions.transaction_metadata import (
    TransactionMetadata,
    TransactionState,
)
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import Resource

API_KEY = 66
_STATES = {str(state): state for state in TransactionState}


@handles(api_key=API_KEY, versions=(0, 2), listener=Listener.CLIENT)
async def handle_list_transactions(request: Request, node: NodeServices) -> LargeAnswer:
    """Transactions on this broker, filtered."""
    message = request.message
    coordinator = node.transactions.coordinator
    unknown = [name for name in message.state_filters if name not in _STATES]
    if coordinator.runtime.is_loading:
        return _failed(ErrorCode.coordinator_load_in_progress, unknown)
    pattern = getattr(message, "transactional_id_pattern", None)
    try:
        expression = None if not pattern else re2.compile(pattern)
    except re2.error:
        return _failed(ErrorCode.invalid_regular_expression, unknown)
    rows, slices, now_ms = list[dict[str, Any]](), Slices(), node.clock.wall_ms()
    for known in coordinator.transactions():
        await slices.pause()
        is_named = expression is None or expression.fullmatch(known.transactional_id)
        if is_named and _passes(known, message, now_ms) and _is_seen(known, request, node):
            rows.append(
                {
                    "transactional_id": known.transactional_id,
                    "producer_id": known.producer_id,
                    "transaction_state": str(known.state),
                }
            )
    return LargeAnswer(
        len(rows),
        error_code=ErrorCode.none,
        unknown_state_filters=unknown,
        transaction_states=rows,
    )


def _failed(error: ErrorCode, unknown: list[str]) -> LargeAnswer:
    return LargeAnswer(0, error_code=error, unknown_state_filters=unknown, transaction_states=[])


def _is_seen(known: TransactionMetadata, request: Request, node: NodeServices) -> bool:
    kind = ResourceKind.TRANSACTIONAL_ID
    resource = Resource(kind=kind, name=known.transactional_id)
    authorization, right = node.authorization, Operation.DESCRIBE
    return authorization.is_allowed(request.context, right, resource, is_told=False)


def _passes(known: TransactionMetadata, message: Any, now_ms: int) -> bool:
    if message.producer_id_filters and known.producer_id not in message.producer_id_filters:
        return False
    if message.state_filters and str(known.state) not in message.state_filters:
        return False
    duration_ms = getattr(message, "duration_filter", -1)
    return duration_ms < 0 or (known.start_ms >= 0 and now_ms - known.start_ms >= duration_ms)
