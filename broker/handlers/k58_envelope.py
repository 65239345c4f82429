"""Envelope, version 0, between our nodes only.

Behaviour: carries a request of any broker to the active controller. The response data begins
with the offset of the metadata log that the answer stands on (8 bytes; ours, not Kafka's), so
that the broker that asked can catch up before it answers its client. Principal and address are
those of the client; a principal that cannot be read is PRINCIPAL_DESERIALIZATION_FAILURE. As in
Kafka a request that cannot be read is UNSUPPORTED_VERSION, and one that no broker forwards
INVALID_REQUEST.
"""

from dataclasses import replace
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.errors import NotControllerError
from broker.handlers.controller_apis import NODE_APIS, VERSIONS
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation
from broker.metadata.authorization import CLUSTER
from broker.protocol import codec
from broker.protocol.errors import MalformedRequestError, ProtocolError, RequestHeader
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
    message, frame = request.message, bytes(request.message.request_data)
    try:
        context = _context(message, request.context)
    except MalformedRequestError:
        return _refuse(ErrorCode.principal_deserialization_failure)
    try:
        refusal = _refusal(codec.decode_header(frame), context, node)
        if refusal is not None:
            return _refuse(refusal)
        answer = await node.controller.execute_enveloped(frame, context)
    except ProtocolError:
        return _refuse(ErrorCode.unsupported_version)
    except NotControllerError:
        return _refuse(ErrorCode.not_controller)
    return codec.build_response(API_KEY, 0, error_code=ErrorCode.none, response_data=answer)


def _refusal(
    header: RequestHeader, context: RequestContext, node: NodeServices
) -> ErrorCode | None:
    """Why this request is not executed."""
    if header.api_key not in VERSIONS:
        return ErrorCode.invalid_request
    oldest, newest = VERSIONS[header.api_key]
    if not oldest <= header.api_version <= newest:
        return ErrorCode.unsupported_version
    is_allowed = header.api_key not in NODE_APIS or node.authorization.is_allowed(
        context, Operation.CLUSTER_ACTION, CLUSTER
    )
    return None if is_allowed else ErrorCode.cluster_authorization_failed


def _context(message: Any, carrier: RequestContext) -> RequestContext:
    """The client's; that of the broker that forwards when it names no client."""
    if message.request_principal is None:
        return carrier
    host = address_text(bytes(message.client_host_address))
    principal = Principal.from_bytes(bytes(message.request_principal))
    return replace(carrier, principal=principal, client_host=host)


def _refuse(error: ErrorCode) -> Any:
    return codec.build_response(API_KEY, 0, error_code=error, response_data=None)
