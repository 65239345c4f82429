"""AllocateProducerIds, version 0, between our nodes only.

Behaviour: the active controller gives a broker the next thousand producer ids, for ever.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest
from broker.controller.producer_ids import decide_allocate
from broker.handlers.controller_apis import node_api
from broker.protocol import codec

API_KEY: Final = 67


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    return codec.build_response(API_KEY, version, error_code=error)


@node_api(API_KEY, versions=(0, 0), refuse=_refuse)
async def execute_allocate(active: ActiveController, request: ControllerRequest) -> Any:
    """Give producer ids away as the active controller."""
    message, version = request.message, request.api_version
    broker_id, broker_epoch = int(message.broker_id), int(message.broker_epoch)
    block = await active.run(lambda image: decide_allocate(broker_id, broker_epoch, image))
    return codec.build_response(
        API_KEY,
        version,
        error_code=ErrorCode.none,
        producer_id_start=block.first,
        producer_id_len=block.count,
    )
