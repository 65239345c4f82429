"""Altering configs (KIP-339 incremental, and the older replace-all)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from broker.controller.decision import Accepted, Decision, Rejected, Verdict, named_twice
from broker.controller.elections import IsUncleanEnabled, build_unclean_elections
from broker.controller.errors import (
    BrokerNotRegisteredError,
    ControllerError,
    InvalidConfigError,
    InvalidConfigRequestError,
    InvalidTopicError,
    UnknownTopicError,
)
from broker.metadata.image import (
    ConfigResource,
    MetadataImage,
    ResourceType,
    broker_resource,
    topic_resource,
)
from broker.metadata.records import ConfigRecord, MetadataRecord
from broker.metadata.topic_names import problem_of_topic_name
from broker.protocol.known_configs import (
    ConfigType,
    KnownConfig,
    broker_configs,
    problem_of_alteration,
    problem_of_value,
    topic_configs,
)
from broker.protocol.resource_configs import (
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    problem_of_group,
    problem_of_interval,
    problem_of_subscription,
)

UNCLEAN_CONFIG: Final = "unclean.leader.election.enable"
_LAGS: Final = ("min.compaction.lag.ms", "max.compaction.lag.ms")


class AlterOperation(IntEnum):
    """Operation on a config (AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """One change of one config."""

    name: str
    operation: AlterOperation
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterResource:
    """All changes of one resource; `replaces_all` removes what is not set (old AlterConfigs)."""

    resource: ConfigResource
    changes: Sequence[ConfigChange]
    replaces_all: bool = False


ConfigVerdicts = dict[ConfigResource, Verdict[None]]


def check_topic_name(name: str) -> None:
    """Raise InvalidTopicError with Kafka's words for a name that cannot be."""
    problem = problem_of_topic_name(name)
    if problem:
        raise InvalidTopicError(f"Topic name is invalid: {problem}")


def check_topic_configs(configs: Mapping[str, str | None]) -> None:
    """Raise InvalidConfigError for configs that a new topic cannot have."""
    for name, value in configs.items():
        known = topic_configs().get(name)
        if known is None:
            raise InvalidConfigError(f"Unknown topic config name: {name}")
        if value is None:
            raise InvalidConfigError(f"Null value not supported for topic configs: {name}")
        check_value(known, value)
    check_compaction_lags(configs)


def check_compaction_lags(configs: Mapping[str, str | None]) -> None:
    """Raise InvalidConfigError for a topic that compaction must wait for longer than it may."""
    least, most = (configs.get(name) or topic_configs()[name].default or "" for name in _LAGS)
    if int(least) > int(most):
        raise InvalidConfigError(
            f"conflict topic config setting {_LAGS[0]} ({least}) > {_LAGS[1]} ({most})"
        )


def decide_alter_configs(
    resources: Sequence[AlterResource],
    image: MetadataImage,
    *,
    is_unclean_enabled: IsUncleanEnabled,
) -> Decision[ConfigVerdicts]:
    """Alter each resource that can be, each as a whole or not at all.

    A topic that comes to allow unclean elections gets leaders for its leaderless partitions in
    the same step.
    """
    records: list[MetadataRecord] = []
    verdicts: ConfigVerdicts = {}
    doubled = named_twice(resource.resource for resource in resources)
    for resource in resources:
        try:
            if resource.resource in doubled:
                raise InvalidConfigRequestError("Each resource must appear at most once.")
            records += _alter(resource, image)
            verdicts[resource.resource] = Accepted(None)
        except ControllerError as error:
            verdicts[resource.resource] = Rejected(_as_told(resource.resource, error))
    records += _unclean_elections(records, image, is_unclean_enabled)
    return Decision(tuple(records), verdicts)


def _alter(resource: AlterResource, image: MetadataImage) -> list[MetadataRecord]:
    known = _known_configs(resource.resource, image)
    current = image.config(resource.resource)
    after = {} if resource.replaces_all else dict(current)
    names = [change.name for change in resource.changes]
    if resource.resource.type is ResourceType.BROKER and not resource.resource.name:
        _check_cluster_wide(names)
    for change in resource.changes:
        if names.count(change.name) > 1:
            raise InvalidConfigRequestError(f"Error due to duplicate config keys: {change.name}")
        _apply(change, known, after)
        if resource.resource.type is ResourceType.BROKER and change.name in after:
            _check_alteration(known[change.name], after[change.name], resource.resource, image)
    if resource.resource.type is ResourceType.TOPIC:
        check_compaction_lags(after)
    elif resource.resource.type is ResourceType.GROUP:
        _raise_if(problem_of_group(after))
    elif resource.resource.type is ResourceType.CLIENT_METRICS:
        problem = problem_of_interval(after)
        if problem:
            raise InvalidConfigRequestError(problem)
        _raise_if(problem_of_subscription(after))
    return [
        ConfigRecord(
            resource_type=resource.resource.type,
            resource_name=resource.resource.name,
            name=name,
            value=after.get(name),
        )
        for name in sorted(current.keys() | after.keys())
        if current.get(name) != after.get(name)
    ]


def _raise_if(problem: str) -> None:
    if problem:
        raise InvalidConfigError(problem)


def _check_alteration(
    config: KnownConfig, value: str, resource: ConfigResource, image: MetadataImage
) -> None:
    layers = (image.config(resource), image.config(broker_resource(None)))
    altered = next((layer[config.name] for layer in layers if config.name in layer), None)
    problem = problem_of_alteration(config, value, altered or config.default or "")
    if problem:
        raise InvalidConfigError(
            f"Invalid value {value} for configuration {config.name}: {problem}"
        )


def _check_cluster_wide(names: Sequence[str]) -> None:
    known = broker_configs()
    bad = sorted({name for name in names if name in known and known[name].is_per_broker})
    if bad:
        raise InvalidConfigRequestError(
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(bad)}]"
        )


def _as_told(resource: ConfigResource, error: ControllerError) -> ControllerError:
    """Kafka finds a wrong config of a broker before its controller does, and says so otherwise."""
    if resource.type is ResourceType.BROKER and isinstance(error, InvalidConfigError):
        return InvalidConfigRequestError(error.reason)
    return error


def _known_configs(resource: ConfigResource, image: MetadataImage) -> Mapping[str, KnownConfig]:
    """Configs that a resource may have; raises if there is no such resource."""
    if resource.type is ResourceType.TOPIC:
        check_topic_name(resource.name)
        if resource.name not in image.topics:
            raise UnknownTopicError(f"The topic '{resource.name}' does not exist.")
        return topic_configs()
    if resource.type is ResourceType.BROKER:
        if resource.name:
            _check_broker(resource.name, image)
        return {name: config for name, config in broker_configs().items() if config.is_dynamic}
    if resource.type is ResourceType.GROUP:
        if not resource.name:
            raise InvalidConfigRequestError("Group name can't be empty")
        return GROUP_CONFIGS
    if resource.type is ResourceType.CLIENT_METRICS:
        if not resource.name:
            raise InvalidConfigRequestError("Subscription name can't be empty")
        return CLIENT_METRICS_CONFIGS
    raise InvalidConfigRequestError(f"Unknown resource type {resource.type.value}")


def _check_broker(name: str, image: MetadataImage) -> None:
    if not (name.isascii() and name.isdecimal()):
        raise InvalidConfigRequestError(f"Node id must be an integer, but it is: {name}")
    if name not in map(str, image.brokers):
        raise BrokerNotRegisteredError(f"No node with id {name} found.")


def _apply(change: ConfigChange, known: Mapping[str, KnownConfig], after: dict[str, str]) -> None:
    config = known.get(change.name)
    if change.operation is AlterOperation.DELETE:
        after.pop(change.name, None)
        return
    if config is None:
        is_request = known is CLIENT_METRICS_CONFIGS
        kind = InvalidConfigRequestError if is_request else InvalidConfigError
        raise kind(_unknown_reason(change.name, known))
    if change.value is None:
        raise InvalidConfigRequestError(f"Null value not supported for: {change.name}")
    value = change.value
    if change.operation is not AlterOperation.SET:
        # Kafka's KafkaConfigSchema has no types of client metrics: none of them is a list.
        if config.type is not ConfigType.LIST or known is CLIENT_METRICS_CONFIGS:
            raise InvalidConfigError(
                f"Can't {change.operation.name} to key {config.name} because its type is not LIST."
            )
        value = _changed_list(change, after.get(change.name, config.default or ""))
    check_value(config, value)
    after[change.name] = value


def check_value(config: KnownConfig, value: str) -> None:
    """:raises InvalidConfigError: with Kafka's words, when a value is not one of this config."""
    problem = problem_of_value(config, value)
    if problem:
        raise InvalidConfigError(
            f"Invalid value {value} for configuration {config.name}: {problem}"
        )


def _unknown_reason(name: str, known: Mapping[str, KnownConfig]) -> str:
    if known is topic_configs():
        return f"Unknown topic config name: {name}"
    if known is GROUP_CONFIGS:
        return f"Unknown group config name: {name}"
    if known is CLIENT_METRICS_CONFIGS:
        return f"Unknown client metrics configuration: {name}"
    if name in broker_configs():
        return f"Cannot update these configs dynamically: {name}"
    return f"Unknown broker config name: {name}"


def _changed_list(change: ConfigChange, current: str) -> str:
    items = [item for item in current.split(",") if item]
    named = [item for item in (change.value or "").split(",") if item]
    if change.operation is AlterOperation.APPEND:
        items += [item for item in named if item not in items]
    else:
        items = [item for item in items if item not in named]
    return ",".join(items)


def _unclean_elections(
    records: Sequence[MetadataRecord], image: MetadataImage, is_unclean_enabled: IsUncleanEnabled
) -> list[MetadataRecord]:
    """Elections that became possible by these very records."""
    touched = [
        record
        for record in records
        if isinstance(record, ConfigRecord) and record.name == UNCLEAN_CONFIG
    ]
    enabled = {
        topic_resource(record.resource_name): (record.value or "").lower() == "true"
        for record in touched
        if record.resource_type == ResourceType.TOPIC and record.value is not None
    }

    def is_enabled(topic: str) -> bool:
        return enabled.get(topic_resource(topic), is_unclean_enabled(topic))

    return build_unclean_elections(image, [resource.name for resource in enabled], is_enabled)
