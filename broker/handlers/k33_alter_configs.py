"""AlterConfigs, versions 0-2.

Behaviour: executed by the active controller; what a resource's request does not name goes back
to its default. Old tools; new ones use IncrementalAlterConfigs.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.config_control import AlterOperation, AlterResource, ConfigChange
from broker.controller.controller_channel import ControllerRequest
from broker.handlers import alter_config_requests
from broker.handlers.controller_apis import controller_api
from broker.metadata.image import ConfigResource

API_KEY: Final = 33


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    return alter_config_requests.refuse((API_KEY, version), message, error, reason)


@controller_api(
    API_KEY, versions=(0, 2), refuse=_refuse, send=alter_config_requests.forward_checked
)
async def execute_alter_configs(active: ActiveController, request: ControllerRequest) -> Any:
    """Replace configs as the active controller."""
    return await alter_config_requests.execute(active, request, _read)


def _read(resource: ConfigResource, entry: Any) -> AlterResource:
    changes = [
        ConfigChange(name=config.name, operation=AlterOperation.SET, value=config.value)
        for config in entry.configs
    ]
    return AlterResource(resource=resource, changes=changes, replaces_all=True)
