"""SaslHandshake, versions 0-1, where no login is due; the connection itself answers in a login.

Behaviour: ILLEGAL_SASL_STATE on a listener without SASL, and after a login, as Kafka answers.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.protocol import codec

API_KEY = 17


@handles(api_key=API_KEY, versions=(0, 1), listener=Listener.BOTH)
def handle_sasl_handshake(request: Request, node: NodeServices) -> Any:
    """Refuse a login that is not due."""
    fields = {"mechanisms": ()}
    error_code = ErrorCode.illegal_sasl_state
    return codec.build_response(API_KEY, request.api_version, error_code=error_code, **fields)
