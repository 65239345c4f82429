"""CreatePartitions, versions 0-3.

Behaviour: executed by the active controller; `count` is the new total; one result per topic;
validate_only. New partitions have as many replicas as partition 0.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest
from broker.controller.security.quota_control import MutationCharge
from broker.controller.topics import NewPartitions, decide_create_partitions
from broker.handlers.controller_apis import (
    NOT_AUTHORIZED,
    controller_api,
    run_in_steps,
    verdict_fields,
)
from broker.metadata.acls import Operation, ResourceKind
from broker.protocol import codec

API_KEY: Final = 37
STRICT_SINCE: Final = 3
"""Older versions are never refused for a quota."""


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    refused = {"error_code": error, "error_message": reason}
    results = [{"name": topic.name, **refused} for topic in message.topics]
    return codec.build_response(API_KEY, version, results=results)


@controller_api(API_KEY, versions=(0, 3), refuse=_refuse)
async def execute_create_partitions(active: ActiveController, request: ControllerRequest) -> Any:
    """Add partitions as the active controller."""
    message, version = request.message, request.api_version
    names = dict.fromkeys(topic.name for topic in message.topics)
    refused = await active.authorization.refused(
        request.context, Operation.ALTER, ResourceKind.TOPIC, names
    )
    wanted = [_wanted(topic) for topic in message.topics if topic.name not in refused]
    charge = MutationCharge(active.quotas, request.context, is_strict=version >= STRICT_SINCE)
    run = active.dry_run if message.validate_only else active.run
    verdicts = await run_in_steps(
        run,
        wanted,
        lambda topic: topic.topic,
        lambda step, image: decide_create_partitions(step, image, active.topic_defaults, charge),
    )
    error = ErrorCode.topic_authorization_failed
    told = {"error_code": error, "error_message": NOT_AUTHORIZED[error]}
    results = [
        {"name": name, **(told if name in refused else verdict_fields(verdicts[name]))}
        for name in names
    ]
    return codec.build_response(API_KEY, version, throttle_time=charge.throttle_ms, results=results)


def _wanted(topic: Any) -> NewPartitions:
    assignments = None
    if topic.assignments is not None:
        assignments = [tuple(int(id_) for id_ in a.broker_ids) for a in topic.assignments]
    return NewPartitions(topic=topic.name, count=int(topic.count), assignments=assignments)
