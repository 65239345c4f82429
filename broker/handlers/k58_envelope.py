"""Envelope, version 0, between our nodes only.

Behaviour: carries a request of any broker to the active controller. The response data begins
with the offset of the metadata log that the answer stands on (8 bytes; ours, not Kafka's), so
that the broker that asked can catch up before it answers its client.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.errors import NotControllerError
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.protocol import codec

API_KEY: Final = 58


@handles(api_key=API_KEY, versions=(0, 0), listener=Listener.CONTROLLER)
async def handle_envelope(request: Request, node: NodeServices) -> Any:
    """Execute a forwarded request, if this node is the active controller."""
    try:
        answer = await node.controller.execute_enveloped(bytes(request.message.request_data))
    except NotControllerError:
        return codec.build_response(
            API_KEY, 0, error_code=ErrorCode.not_controller, response_data=None
        )
    return codec.build_response(API_KEY, 0, error_code=ErrorCode.none, response_data=answer)
