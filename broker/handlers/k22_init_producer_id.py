"""InitProducerId, versions 0-5.

Behaviour: an idempotent producer gets a new producer id with epoch 0, out of a block that the
controller gave this broker. While there is none, COORDINATOR_LOAD_IN_PROGRESS makes it try again.
Notes: transactions are not served; a transactional id is refused with INVALID_REQUEST, which ends
the producer instead of letting it retry for ever. A too long transaction timeout is refused first.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.coordinator.producer_ids import ProducerIdsUnavailableError
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.protocol import codec

API_KEY = 22


@handles(api_key=API_KEY, versions=(0, 5), listener=Listener.CLIENT)
async def handle_init_producer_id(request: Request, node: NodeServices) -> Any:
    """A producer id for an idempotent producer."""
    message = request.message
    if message.transactional_id is not None:
        return _build(request, _refuse_transaction(message, node.config))
    try:
        producer_id = await node.producer_ids.next_id()
    except ProducerIdsUnavailableError:
        return _build(request, ErrorCode.coordinator_load_in_progress)
    return _build(request, ErrorCode.none, producer_id=producer_id, producer_epoch=0)


def _refuse_transaction(message: Any, config: Any) -> ErrorCode:
    timeout_ms = message.transaction_timeout.total_seconds() * 1000
    if not 0 < timeout_ms <= config.transaction_max_timeout_ms:
        return ErrorCode.invalid_transaction_timeout
    return ErrorCode.invalid_request


def _build(
    request: Request, error: ErrorCode, *, producer_id: int = -1, producer_epoch: int = -1
) -> Any:
    return codec.build_response(
        API_KEY,
        request.api_version,
        error_code=error,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
