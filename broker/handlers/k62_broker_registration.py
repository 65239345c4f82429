"""BrokerRegistration, versions 0-4, between our nodes only.

Behaviour: the active controller takes a broker's process in, fenced at first; the broker epoch
is the offset of the registration record. Another process with the same id at another address is
refused while the session of the first stands.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.brokers import RegisterBroker
from broker.controller.controller_channel import ControllerRequest
from broker.handlers.controller_apis import node_api
from broker.metadata.records import NIL, BrokerEndpoint
from broker.protocol import codec

API_KEY: Final = 62


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    return codec.build_response(API_KEY, version, error_code=error, broker_epoch=-1)


@node_api(API_KEY, versions=(0, 4), refuse=_refuse)
async def execute_registration(active: ActiveController, request: ControllerRequest) -> Any:
    """Register a broker as the active controller."""
    message, version = request.message, request.api_version
    command = RegisterBroker(
        broker_id=int(message.broker_id),
        cluster_id=message.cluster_id,
        incarnation_id=message.incarnation_id or NIL,
        endpoints=tuple(
            BrokerEndpoint(
                name=listener.name,
                host=listener.host,
                port=int(listener.port),
                security_protocol=int(listener.security_protocol),
            )
            for listener in message.listeners
        ),
        rack=message.rack,
        log_dirs=tuple(directory or NIL for directory in getattr(message, "log_dirs", ())),
    )
    epoch = await active.register(command)
    return codec.build_response(API_KEY, version, error_code=ErrorCode.none, broker_epoch=epoch)
