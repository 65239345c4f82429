"""Common parts of AlterConfigs and IncrementalAlterConfigs."""

from collections.abc import Callable
from typing import Any

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.config_control import AlterResource, ConfigVerdicts, decide_alter_configs
from broker.controller.decision import Rejected
from broker.controller.errors import InvalidConfigRequestError
from broker.handlers.controller_apis import Refuse, forward, run_in_steps, verdict_fields
from broker.handlers.services import NodeServices, Request
from broker.metadata.cordons import CORDONED_CONFIG, problem_of_cordon
from broker.metadata.image import ConfigResource, ResourceType
from broker.protocol import codec

ReadResource = Callable[[ConfigResource, Any], AlterResource | None]
"""None: it asks for an operation that does not exist."""


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
    verdicts: ConfigVerdicts = await run_in_steps(
        run,
        wanted,
        lambda resource: resource.resource,
        lambda step, image: decide_alter_configs(
            step, image, is_unclean_enabled=active.is_unclean_enabled
        ),
        records=sum(len(resource.changes) for resource in wanted),
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


async def forward_checked(request: Request, node: NodeServices, refuse_all: Refuse) -> Any:
    """As ``forward``; a cordon of a directory that this node does not have is refused here, because
    the controller does not know its directories."""
    own = str(node.config.node_id)
    values = [
        config.value
        for resource in request.message.resources
        if int(resource.resource_type) == ResourceType.BROKER and resource.resource_name == own
        for config in resource.configs
        if config.name == CORDONED_CONFIG and config.value is not None
    ]
    for value in values:
        problem = problem_of_cordon(value, node.logs.directory)
        if problem:
            error = ErrorCode.invalid_request
            return refuse_all(request.api_version, request.message, error, problem)
    return await forward(request, node, refuse_all)


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
