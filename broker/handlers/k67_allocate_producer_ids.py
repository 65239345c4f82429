"""AllocateProducerIds, version 0, between our nodes only.

Behaviour: the active controller gives a broker the next thousand producer ids, for ever.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.errors import BrokerNotRegisteredError, StaleBrokerEpochError
from broker.controller.producer_ids import decide_allocate
from broker.handlers.controller_apis import controller_api, error_code
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.protocol import codec

API_KEY: Final = 67


@handles(api_key=API_KEY, versions=(0, 0), listener=Listener.CONTROLLER)
async def handle_allocate_producer_ids(request: Request, node: NodeServices) -> Any:
    """Give producer ids away, if this node is the active controller."""
    active: ActiveController = node.controller.active
    if not active.is_active:
        return codec.build_response(
            API_KEY, request.api_version, error_code=ErrorCode.not_controller
        )
    return await execute_allocate(active, request.message, request.api_version)


@controller_api(API_KEY)
async def execute_allocate(active: ActiveController, message: Any, version: int) -> Any:
    """Give producer ids away as the active controller."""
    broker_id, broker_epoch = int(message.broker_id), int(message.broker_epoch)
    try:
        block = await active.run(lambda image: decide_allocate(broker_id, broker_epoch, image))
    except (BrokerNotRegisteredError, StaleBrokerEpochError) as error:
        return codec.build_response(API_KEY, version, error_code=error_code(error))
    return codec.build_response(
        API_KEY,
        version,
        error_code=ErrorCode.none,
        producer_id_start=block.first,
        producer_id_len=block.count,
    )
