"""CreateTopics, versions 2-7.

Behaviour: executed by the active controller; each topic stands for itself. Placement spreads
leaders, replicas and racks; -1 takes num.partitions and default.replication.factor; manual
assignments; validate_only. Answers when the topics are committed, and waits up to a second
(CATCH_UP_MS_MAX) until this broker knows them. The request's timeout is not looked at.
Notes: from version 5 the answer holds partitions, factor and configs, from 7 the topic id.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest
from broker.controller.decision import Accepted, Verdict, named_twice
from broker.controller.security.quota_control import MutationCharge
from broker.controller.topics import (
    DEFAULT,
    CreatedTopic,
    NewTopic,
    TopicDefaults,
    decide_create_topics,
)
from broker.handlers.controller_apis import (
    NOT_AUTHORIZED,
    controller_api,
    run_in_steps,
    verdict_fields,
)
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import CLUSTER
from broker.metadata.effective_configs import ConfigEntry
from broker.protocol import codec

API_KEY: Final = 19
STRICT_SINCE: Final = 6
"""Older versions are never refused for a quota."""
_HIDDEN: Final = {
    "num_partitions": -1,
    "replication_factor": -1,
    "topic_config_error_code": ErrorCode.topic_authorization_failed,
    "configs": [],
}
"""What a new topic is like, for who may not describe its configs."""


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    refused = {"error_code": error, "error_message": reason, "configs": []}
    topics = [{"name": topic.name, **refused} for topic in message.topics]
    return codec.build_response(API_KEY, version, topics=topics)


@controller_api(API_KEY, versions=(2, 7), refuse=_refuse)
async def execute_create_topics(active: ActiveController, request: ControllerRequest) -> Any:
    """Create topics as the active controller."""
    message, version = request.message, request.api_version
    refused = await _refused(active, request)
    topics = [_new_topic(topic) for topic in message.topics if topic.name not in refused]
    configs = {topic.name: topic.configs for topic in topics}
    hidden = await active.authorization.refused(
        *(request.context, Operation.DESCRIBE_CONFIGS, ResourceKind.TOPIC, configs), is_told=False
    )
    charge = MutationCharge(active.quotas, request.context, is_strict=version >= STRICT_SINCE)
    run = active.dry_run if message.validate_only else active.run
    verdicts = await run_in_steps(
        run,
        topics,
        lambda topic: topic.name,
        lambda step, image: decide_create_topics(step, image, active.topic_defaults, charge),
        records=sum(_records_of(topic, active.topic_defaults) for topic in topics),
    )
    described: dict[Any, list[dict[str, Any]]] = {}
    results = []
    for name in configs:
        verdict = verdicts[name]
        result = {"name": name, **verdict_fields(verdict), **_created_fields(verdict)}
        if isinstance(verdict, Accepted) and name in hidden:
            result |= _HIDDEN
        elif isinstance(verdict, Accepted):
            own = tuple(configs[name].items())
            if own not in described:
                described[own] = [_config_fields(e) for e in active.describe_topic(configs[name])]
            result["configs"] = described[own]
        results.append(result)
    denied = ErrorCode.topic_authorization_failed
    unknown = {"num_partitions": -1, "replication_factor": -1, "configs": []}
    results += [{"name": it, "error_code": denied, "error_message": why, **unknown}
                for it, why in refused.items()]  # fmt: skip
    return codec.build_response(API_KEY, version, throttle_time=charge.throttle_ms, topics=results)


async def _refused(active: ActiveController, request: ControllerRequest) -> dict[str, str]:
    """Topics that the principal may not create, and why; who may create any may create these."""
    authorization, context = active.authorization, request.context
    names = [topic.name for topic in request.message.topics]
    if authorization.is_allowed(context, Operation.CREATE, CLUSTER, is_told=False):
        return {}
    refused = await authorization.refused(context, Operation.CREATE, ResourceKind.TOPIC, names)
    return dict.fromkeys(sorted(refused), NOT_AUTHORIZED[ErrorCode.topic_authorization_failed])


def _records_of(topic: NewTopic, defaults: TopicDefaults) -> int:
    partitions = defaults.partitions if topic.partitions == DEFAULT else topic.partitions
    return 1 + len(topic.configs) + (len(topic.assignments) or max(partitions, 0))


def _new_topic(topic: Any) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=int(topic.num_partitions),
        replication_factor=int(topic.replication_factor),
        assignments={
            int(a.partition_index): tuple(int(id_) for id_ in a.broker_ids)
            for a in topic.assignments
        },
        assigned_twice=named_twice(int(a.partition_index) for a in topic.assignments),
        configs={config.name: config.value for config in topic.configs},
    )


def _created_fields(verdict: Verdict[CreatedTopic]) -> dict[str, Any]:
    if not isinstance(verdict, Accepted):
        return {"num_partitions": -1, "replication_factor": -1, "configs": []}
    return {
        "topic_id": verdict.value.topic_id,
        "num_partitions": verdict.value.partitions,
        "replication_factor": verdict.value.replication_factor,
    }


def _config_fields(entry: ConfigEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": False,
        "config_source": entry.source,
        "is_sensitive": False,
    }
