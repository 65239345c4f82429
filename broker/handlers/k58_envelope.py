"""Envelope, version 0, between our nodes only.

Behaviour: carries a request of any broker to the active controller. The response data begins
with the offset of the metadata log that the answer stands on (8 bytes; ours, not Kafka's), so
that the broker that asked can catch up before it answers its client. Principal and address are
those of the client; a principal that cannot be read is PRINCIPAL_DESERIALIZATION_FAILURE.
"""

from dataclasses import replace
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.errors import NotControllerError
from broker.handlers.authorization import Operation
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.protocol import codec
from broker.protocol.errors import MalformedRequestError
from broker.protocol.request_context import Principal, RequestContext, address_text

API_KEY: Final = 58


@handles(
    api_key=API_KEY,
    versions=(0, 0),
    listener=Listener.CONTROLLER,
    cluster_operation=Operation.CLUSTER_ACTION,
)
async def handle_envelope(request: Request, node: NodeServices) -> Any:
    """Execute a forwarded request, if this node is the active controller."""
    message = request.message
    try:
        context = _context(message, request.context)
    except MalformedRequestError:
        return _refuse(ErrorCode.principal_deserialization_failure)
    try:
        answer = await node.controller.execute_enveloped(bytes(message.request_data), context)
    except NotControllerError:
        return _refuse(ErrorCode.not_controller)
    return codec.build_response(API_KEY, 0, error_code=ErrorCode.none, response_data=answer)


def _context(message: Any, carrier: RequestContext) -> RequestContext:
    """The client's; that of the broker that forwards when it names no client."""
    if message.request_principal is None:
        return carrier
    host = address_text(bytes(message.client_host_address))
    principal = Principal.from_bytes(bytes(message.request_principal))
    return replace(carrier, principal=principal, client_host=host)


def _refuse(error: ErrorCode) -> Any:
    return codec.build_response(API_KEY, 0, error_code=error, response_data=None)
