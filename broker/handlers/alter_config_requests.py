"""Common parts of AlterConfigs and IncrementalAlterConfigs."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.controller.active_controller import ActiveController
from broker.controller.config_control import AlterResource, ConfigVerdicts, decide_alter_configs
from broker.controller.controller_channel import ControllerRequest
from broker.controller.decision import Accepted, Rejected, Verdict
from broker.controller.errors import ControllerError, InvalidConfigRequestError
from broker.handlers.broker_loggers import alter_loggers
from broker.handlers.config_rights import config_denial
from broker.handlers.controller_apis import Refuse, forward, run_in_steps, verdict_fields
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation
from broker.metadata.authorization import CLUSTER
from broker.metadata.cordons import CORDONED_CONFIG, problem_of_cordon
from broker.metadata.image import ConfigResource, ResourceType
from broker.protocol import codec

INCREMENTAL_ALTER_CONFIGS: Final = 44
_RIGHT: Final = Operation.ALTER_CONFIGS
ReadResource = Callable[[ConfigResource, Any], AlterResource | None]
"""None: it asks for an operation that does not exist."""


async def execute(active: ActiveController, request: ControllerRequest, read: ReadResource) -> Any:
    """Alter configs as the active controller."""
    message = request.message
    denials, slices = dict[tuple[int, str], ControllerError](), Slices()
    for key in {(int(r.resource_type), r.resource_name) for r in message.resources}:
        denial = config_denial(active.authorization, request.context, _RIGHT, key)
        if denial is not None:
            denials[key] = denial
        await slices.pause()
    known = {type_.value: type_ for type_ in ResourceType}
    asked = [
        read(ConfigResource(type=known[int(r.resource_type)], name=r.resource_name), r)
        for r in message.resources
        if int(r.resource_type) in known and (int(r.resource_type), r.resource_name) not in denials
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
    answers: dict[tuple[int, str], Verdict[None]] = {
        (int(r.type), r.name): verdict for r, verdict in verdicts.items()
    }
    answers |= {key: Rejected(denial) for key, denial in denials.items()}
    unknown = Rejected(InvalidConfigRequestError("Unknown resource type or operation"))
    responses = [
        _response(r, answers.get((int(r.resource_type), r.resource_name), unknown))
        for r in message.resources
    ]
    return codec.build_response(request.api_key, request.api_version, responses=responses)


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
    may_ask = node.authorization.is_allowed(request.context, _RIGHT, CLUSTER, is_told=False)
    for value in values if may_ask else ():
        problem = problem_of_cordon(value, node.logs.directory)
        if problem:
            error = ErrorCode.invalid_request
            return refuse_all(request.api_version, request.message, error, problem)
    return await _forward_beside_loggers(request, node, refuse_all)


async def _forward_beside_loggers(request: Request, node: NodeServices, refuse_all: Refuse) -> Any:
    """The levels of loggers are set here, and the rest is the controller's."""
    resources = request.message.resources
    loggers = [it for it in resources if _is_logger(it)]
    if not loggers or request.api_key != INCREMENTAL_ALTER_CONFIGS:
        return await forward(request, node, refuse_all)
    counted = Counter(it.resource_name for it in loggers)
    answers = {
        name: _alter_loggers(resource, request, node, is_alone=counted[name] == 1)
        for resource in loggers
        if (name := resource.resource_name) is not None
    }
    others = tuple(it for it in resources if not _is_logger(it))
    if others:
        rest = request.about(replace(request.message, resources=others))
        forwarded = iter((await forward(rest, node, refuse_all)).responses)
    responses = [
        _response(it, answers[it.resource_name]) if _is_logger(it) else asdict(next(forwarded))
        for it in resources
    ]
    return codec.build_response(request.api_key, request.api_version, responses=responses)


def _is_logger(resource: Any) -> bool:
    return bool(int(resource.resource_type) == ResourceType.BROKER_LOGGER)


def _alter_loggers(
    resource: Any, request: Request, node: NodeServices, *, is_alone: bool
) -> Verdict[None]:
    try:
        key = (int(resource.resource_type), resource.resource_name)
        denial = config_denial(node.authorization, request.context, _RIGHT, key)
        if denial is not None:
            raise denial
        if not is_alone:
            raise InvalidConfigRequestError("Each resource must appear at most once.")
        validate_only = request.message.validate_only
        alter_loggers(resource, node.config.node_id, validate_only=validate_only)
    except ControllerError as error:
        return Rejected(error)
    return Accepted(None)


def _response(resource: Any, verdict: Verdict[None]) -> dict[str, Any]:
    return {
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
        **verdict_fields(verdict),
    }


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
