"""BrokerHeartbeat, versions 0-2, between our nodes only.

Behaviour: keeps a broker's session; unfences it once it has caught up with its registration;
want_shut_down moves its partitions away, until should_shut_down lets it go.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.brokers import Heartbeat
from broker.controller.controller_channel import ControllerRequest
from broker.handlers.controller_apis import node_api
from broker.metadata.records import NIL
from broker.protocol import codec

API_KEY: Final = 63


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    return codec.build_response(API_KEY, version, error_code=error)


@node_api(API_KEY, versions=(0, 2), refuse=_refuse)
async def execute_heartbeat(active: ActiveController, request: ControllerRequest) -> Any:
    """Take a heartbeat as the active controller."""
    message, version = request.message, request.api_version
    cordoned = getattr(message, "cordoned_log_dirs", None)
    command = Heartbeat(
        broker_id=int(message.broker_id),
        broker_epoch=int(message.broker_epoch),
        metadata_offset=int(message.current_metadata_offset),
        wants_fence=message.want_fence,
        wants_shutdown=message.want_shut_down,
        cordoned_log_dirs=None if cordoned is None else tuple(each or NIL for each in cordoned),
    )
    answer = await active.heartbeat(command)
    return codec.build_response(
        API_KEY,
        version,
        error_code=ErrorCode.none,
        is_caught_up=answer.is_caught_up,
        is_fenced=answer.is_fenced,
        should_shut_down=answer.should_shut_down,
    )
