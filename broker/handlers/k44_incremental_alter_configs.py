"""IncrementalAlterConfigs, versions 0-1.

Behaviour: executed by the active controller; SET, DELETE, APPEND and SUBTRACT (lists only) on
topics, groups, client metrics subscriptions, single brokers and, with an empty name, all brokers;
each resource as a whole or not at all; validate_only. Levels of loggers are set by the broker that
is asked. Throttles of reassignments (KIP-73) are set this way.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.config_control import AlterOperation, AlterResource, ConfigChange
from broker.controller.controller_channel import ControllerRequest
from broker.handlers import alter_config_requests
from broker.handlers.controller_apis import controller_api
from broker.metadata.image import ConfigResource

API_KEY: Final = 44


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    return alter_config_requests.refuse((API_KEY, version), message, error, reason)


@controller_api(
    API_KEY, versions=(0, 1), refuse=_refuse, send=alter_config_requests.forward_checked
)
async def execute_incremental_alter(active: ActiveController, request: ControllerRequest) -> Any:
    """Change configs as the active controller."""
    return await alter_config_requests.execute(active, request, _read)


def _read(resource: ConfigResource, entry: Any) -> AlterResource | None:
    operations = {operation.value for operation in AlterOperation}
    if any(int(config.config_operation) not in operations for config in entry.configs):
        return None
    changes = [
        ConfigChange(
            name=config.name,
            operation=AlterOperation(int(config.config_operation)),
            value=config.value,
        )
        for config in entry.configs
    ]
    return AlterResource(resource=resource, changes=changes)
