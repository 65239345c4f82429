"""Common parts of AlterConfigs and IncrementalAlterConfigs."""

from collections.abc import Callable
from typing import Any

from kio.schema.errors import ErrorCode

from broker.controller.active import ActiveController
from broker.controller.config_control import AlterResource, ConfigVerdicts, decide_alter_configs
from broker.controller.decision import Rejected
from broker.controller.errors import InvalidConfigRequestError
from broker.controller.image import ConfigResource, ResourceType
from broker.handlers.controller_apis import verdict_fields
from broker.protocol import codec

ReadResource = Callable[[ConfigResource, Any], AlterResource | None]
"""None: it asks for what there is not."""


async def execute(
    active: ActiveController, message: Any, api: tuple[int, int], read: ReadResource
) -> Any:
    """Alter configs as the active controller; `api` is key and version of the response."""
    known = {type_.value: type_ for type_ in ResourceType}
    asked = [
        read(ConfigResource(type=known[int(r.resource_type)], name=r.resource_name), r)
        for r in message.resources
        if int(r.resource_type) in known
    ]
    wanted = [resource for resource in asked if resource is not None]
    run = active.dry_run if message.validate_only else active.run
    verdicts: ConfigVerdicts = await run(
        lambda image: decide_alter_configs(
            wanted, image, is_unclean_enabled=active.is_unclean_enabled
        )
    )
    answers = {(int(r.type), r.name): verdict for r, verdict in verdicts.items()}
    unknown = Rejected(InvalidConfigRequestError("Unknown resource type or operation"))
    responses = [
        {
            "resource_type": r.resource_type,
            "resource_name": r.resource_name,
            **verdict_fields(answers.get((int(r.resource_type), r.resource_name), unknown)),
        }
        for r in message.resources
    ]
    return codec.build_response(*api, responses=responses)


def refuse(api: tuple[int, int], message: Any, error: ErrorCode, reason: str) -> Any:
    """The answer when there was no controller."""
    responses = [
        {
            "resource_type": resource.resource_type,
            "resource_name": resource.resource_name,
            "error_code": error,
            "error_message": reason,
        }
        for resource in message.resources
    ]
    return codec.build_response(*api, responses=responses)
