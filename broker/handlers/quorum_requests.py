"""What the voters' requests have in common: translate, ask the quorum, translate back."""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.handlers.services import NodeServices, Request
from broker.protocol import codec
from broker.quorum import wire
from broker.quorum.errors import NotLeaderError


async def ask_quorum(request: Request, node: NodeServices) -> Any:
    """The quorum's answer to another voter; BROKER_NOT_AVAILABLE when it takes no part."""
    asked = wire.from_request(request.api_key, request.message)
    try:
        return wire.to_response(await node.controller.quorum.handle(asked))
    except NotLeaderError:
        return codec.build_response(
            request.api_key, request.api_version, error_code=ErrorCode.broker_not_available
        )
