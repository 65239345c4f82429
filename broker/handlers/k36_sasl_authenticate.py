"""SaslAuthenticate, versions 0-2, where no login is due; the connection answers in a login itself.

Behaviour: ILLEGAL_SASL_STATE on a listener without SASL, and after a login, as Kafka answers.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.protocol import codec

API_KEY = 36


@handles(api_key=API_KEY, versions=(0, 2), listener=Listener.BOTH)
def handle_sasl_authenticate(request: Request, node: NodeServices) -> Any:
    """Refuse a login that is not due."""
    fields = {
        "error_message": "SaslAuthenticate request received after successful authentication",
        "auth_bytes": b"",
    }
    error_code = ErrorCode.illegal_sasl_state
    return codec.build_response(API_KEY, request.api_version, error_code=error_code, **fields)
