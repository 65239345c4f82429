"""DescribeConfigs, versions 1-4.

Behaviour: answered from this broker's image, for topics, for this broker, and with an empty name
for what is set for all brokers. Every config is listed with its value in force, source,
synonyms, type and, when asked for (version 3), documentation; `configuration_keys` narrows,
unless there are none of them.
Notes: clients send a broker's resource to that broker; for another broker's id the error is
INVALID_REQUEST, as Kafka's. Loggers have the names of our modules.
"""

from collections.abc import Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.controller.config_control import check_topic_name
from broker.controller.errors import (
    ControllerError,
    InvalidConfigRequestError,
    UnknownTopicError,
)
from broker.handlers.broker_loggers import broker_loggers, check_node
from broker.handlers.config_rights import config_denial
from broker.handlers.controller_apis import error_code
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation
from broker.metadata.effective_configs import (
    ConfigEntry,
    ConfigSource,
    Names,
    describe_broker,
    describe_default_broker,
    describe_resource,
    describe_topic,
)
from broker.metadata.image import ConfigResource, MetadataImage, ResourceType
from broker.protocol.known_configs import ConfigType
from broker.protocol.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS

API_KEY: Final = 32
_KEPT: Final = {
    ResourceType.GROUP: (GROUP_CONFIGS, ConfigSource.DYNAMIC_GROUP_CONFIG, "Group"),
    ResourceType.CLIENT_METRICS: (
        CLIENT_METRICS_CONFIGS,
        ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
        "Client metrics subscription",
    ),
}


@handles(api_key=API_KEY, versions=(1, 4))
async def handle_describe_configs(request: Request, node: NodeServices) -> LargeAnswer:
    """Describe configs of topics and of this broker; others go on in between."""
    slices, results = Slices(), list[dict[str, Any]]()
    for resource in request.message.resources:
        results.append(_describe(resource, request, node))
        await slices.pause()
    return LargeAnswer(sum(len(result["configs"]) for result in results), results=results)


def _describe(resource: Any, request: Request, node: NodeServices) -> dict[str, Any]:
    message, version = request.message, request.api_version
    named = {"resource_type": resource.resource_type, "resource_name": resource.resource_name}
    key = (int(resource.resource_type), resource.resource_name)
    try:
        denial = config_denial(node.authorization, request.context, Operation.DESCRIBE_CONFIGS, key)
        if denial is not None:
            raise denial
        entries = _entries(resource, node)
    except ControllerError as error:
        refused = {"error_code": error_code(error), "error_message": error.reason}
        return {**named, **refused, "configs": []}
    configs = [_fields(entry, message, version) for entry in entries]
    return {**named, "error_code": ErrorCode.none, "error_message": "", "configs": configs}


def _entries(resource: Any, node: NodeServices) -> Sequence[ConfigEntry]:
    """All configs of a resource, or those that are asked for."""
    resource_type, name = int(resource.resource_type), resource.resource_name
    image, wanted = node.metadata.image, resource.configuration_keys or None
    if resource_type == ResourceType.TOPIC:
        check_topic_name(name)
        if name not in image.topics:
            raise UnknownTopicError("This server does not host this topic-partition.")
        return describe_topic(image, node.config, name, wanted)
    if resource_type == ResourceType.BROKER:
        return _describe_broker(name, node, wanted)
    if resource_type == ResourceType.BROKER_LOGGER:
        return _describe_loggers(name, node, wanted)
    if resource_type in _KEPT:
        return _describe_kept(image, ResourceType(resource_type), name, wanted)
    raise InvalidConfigRequestError(f"Unsupported resource type: {resource_type}")


def _describe_broker(name: str, node: NodeServices, wanted: Names) -> list[ConfigEntry]:
    image = node.metadata.image
    if not name:
        return describe_default_broker(image, wanted)
    if name != str(node.config.node_id):
        raise InvalidConfigRequestError(
            f"Unexpected broker id, expected {node.config.node_id} or empty string, but "
            f"received {name}"
        )
    return describe_broker(image, node.config, wanted)


def _describe_loggers(name: str, node: NodeServices, wanted: Names) -> list[ConfigEntry]:
    if not name:
        raise InvalidConfigRequestError("Broker id must not be empty")
    check_node(name, node.config.node_id)
    return [
        ConfigEntry(
            name=logger,
            value=level,
            source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
            type=ConfigType.STRING,
            is_read_only=False,
            documentation="",
            synonyms=(),
        )
        for logger, level in broker_loggers().items()
        if wanted is None or logger in wanted
    ]


def _describe_kept(
    image: MetadataImage, type_: ResourceType, name: str, wanted: Names
) -> list[ConfigEntry]:
    known, source, what = _KEPT[type_]
    if not name:
        raise InvalidConfigRequestError(f"{what} name must not be empty")
    resource = ConfigResource(type=type_, name=name)
    if type_ is ResourceType.CLIENT_METRICS and resource not in image.configs:
        return []
    return describe_resource(image, resource, known, source, wanted)


def _fields(entry: ConfigEntry, message: Any, version: int) -> dict[str, Any]:
    with_documentation = version >= 3 and message.include_documentation
    synonyms = [
        {"name": synonym.name, "value": synonym.value, "source": synonym.source}
        for synonym in entry.synonyms
    ]
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": entry.is_read_only,
        "config_source": entry.source,
        "is_sensitive": False,
        "synonyms": synonyms if message.include_synonyms else [],
        "config_type": entry.type,
        "documentation": entry.documentation if with_documentation else None,
    }
