"""BrokerHeartbeat, versions 0-2, between our nodes only.

Behaviour: keeps a broker's session; unfences it once it has caught up with its registration;
want_shut_down moves its partitions away, until should_shut_down lets it go.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.brokers import Heartbeat
from broker.controller.errors import BrokerNotRegisteredError, StaleBrokerEpochError
from broker.handlers.controller_apis import controller_api, error_code
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.protocol import codec

API_KEY: Final = 63


@handles(api_key=API_KEY, versions=(0, 2), listener=Listener.CONTROLLER)
async def handle_broker_heartbeat(request: Request, node: NodeServices) -> Any:
    """Take a heartbeat, if this node is the active controller."""
    active: ActiveController = node.controller.active
    if not active.is_active:
        return codec.build_response(
            API_KEY, request.api_version, error_code=ErrorCode.not_controller
        )
    return await execute_heartbeat(active, request.message, request.api_version)


@controller_api(API_KEY)
async def execute_heartbeat(active: ActiveController, message: Any, version: int) -> Any:
    """Take a heartbeat as the active controller."""
    cordoned = getattr(message, "cordoned_log_dirs", None)
    command = Heartbeat(
        broker_id=int(message.broker_id),
        broker_epoch=int(message.broker_epoch),
        metadata_offset=int(message.current_metadata_offset),
        wants_fence=message.want_fence,
        wants_shutdown=message.want_shut_down,
        cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
    )
    try:
        answer = await active.heartbeat(command)
    except (BrokerNotRegisteredError, StaleBrokerEpochError) as error:
        return codec.build_response(API_KEY, version, error_code=error_code(error))
    return codec.build_response(
        API_KEY,
        version,
        error_code=ErrorCode.none,
        is_caught_up=answer.is_caught_up,
        is_fenced=answer.is_fenced,
        should_shut_down=answer.should_shut_down,
    )
