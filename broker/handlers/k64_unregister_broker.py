"""UnregisterBroker, version 0.

Behaviour: executed by the active controller; forgets a broker that is gone for good. A live one
registers again with its next heartbeat.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.brokers import decide_unregister
from broker.controller.controller_channel import ControllerRequest
from broker.handlers.controller_apis import controller_api
from broker.metadata.acls import Operation
from broker.protocol import codec

API_KEY: Final = 64


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    return codec.build_response(API_KEY, version, error_code=error, error_message=reason)


@controller_api(API_KEY, versions=(0, 0), cluster_operation=Operation.ALTER, refuse=_refuse)
async def execute_unregister(active: ActiveController, request: ControllerRequest) -> Any:
    """Forget a broker as the active controller."""
    message, version = request.message, request.api_version
    broker_id = int(message.broker_id)
    await active.lead_away(broker_id)
    await active.run(
        lambda image: decide_unregister(
            broker_id, image, is_unclean_enabled=active.is_unclean_enabled
        )
    )
    return codec.build_response(API_KEY, version, error_code=ErrorCode.none, error_message=None)
