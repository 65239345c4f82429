"""InitProducerId, versions 0-5.

Behaviour: an idempotent producer gets a new producer id with epoch 0, out of a block that the
controller gave this broker. While there is none, COORDINATOR_LOAD_IN_PROGRESS makes it try again.
A transactional id keeps its producer id and gets the next epoch, which fences former instances; a
transaction that one of them left open is aborted first (CONCURRENT_TRANSACTIONS meanwhile).
Notes: from v3 on a producer tells which id and epoch it has (KIP-360). Before v4 PRODUCER_FENCED
was INVALID_PRODUCER_EPOCH.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.producer_ids import ProducerIdsUnavailableError
from broker.coordinator.transactions.transaction_metadata import Producer
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import CLUSTER
from broker.protocol import codec

API_KEY = 22
FENCED_SINCE = 4


@handles(api_key=API_KEY, versions=(0, 5), listener=Listener.CLIENT)
async def handle_init_producer_id(request: Request, node: NodeServices) -> Any:
    """A producer id for an idempotent producer."""
    message = request.message
    denial = _denial(request, node)
    if denial is not None:
        return _build(request, denial)
    if message.transactional_id is not None:
        return await _init_transactional(request, node)
    try:
        producer_id = await node.producer_ids.next_id()
    except ProducerIdsUnavailableError:
        return _build(request, ErrorCode.coordinator_load_in_progress)
    return _build(request, ErrorCode.none, producer_id=producer_id, producer_epoch=0)


def _denial(request: Request, node: NodeServices) -> ErrorCode | None:
    """Why the principal gets no id. A right to write to some topic is enough for idempotence."""
    authorization, context = node.authorization, request.context
    if (id_ := request.message.transactional_id) is not None:
        kind = ResourceKind.TRANSACTIONAL_ID
        is_refused = authorization.is_refused(context, Operation.WRITE, kind, id_)
        return ErrorCode.transactional_id_authorization_failed if is_refused else None
    is_allowed = authorization.is_allowed(
        context, Operation.IDEMPOTENT_WRITE, CLUSTER, is_told=False
    ) or authorization.is_allowed_some(context, Operation.WRITE, ResourceKind.TOPIC)
    return None if is_allowed else ErrorCode.cluster_authorization_failed


async def _init_transactional(request: Request, node: NodeServices) -> Any:
    message = request.message
    expected = Producer(getattr(message, "producer_id", -1), getattr(message, "producer_epoch", -1))
    if (expected.id < 0) is not (expected.epoch < 0):
        return _build(request, ErrorCode.invalid_request)
    found = await node.transactions.coordinator.init_producer(
        message.transactional_id,
        None if expected.id < 0 else expected,
        timeout_ms=round(message.transaction_timeout.total_seconds() * 1000),
    )
    error = found.error
    if error is CoordinatorError.PRODUCER_FENCED and request.api_version < FENCED_SINCE:
        error = CoordinatorError.INVALID_PRODUCER_EPOCH
    producer_id, epoch = found.producer
    return _build(request, error.code, producer_id=producer_id, producer_epoch=epoch)


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
