"""DescribeConfigs, versions 1-4.

Behaviour: answered from this broker's image, for topics, for this broker, and with an empty name
for what is set for all brokers. Every config is listed with its value in force, source,
synonyms, type and, when asked for (version 3), documentation; `configuration_keys` narrows,
unless there are none of them.
Notes: clients send a broker's resource to that broker; for another broker's id the error is
INVALID_REQUEST, as Kafka's. Broker loggers have no configs here; groups and client metrics none.
"""

from collections.abc import Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.config_control import check_topic_name
from broker.controller.errors import (
    ControllerError,
    InvalidConfigRequestError,
    UnknownTopicError,
)
from broker.handlers.controller_apis import error_code
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.handlers.slices import LargeAnswer, Slices
from broker.metadata.effective_configs import (
    ConfigEntry,
    describe_broker,
    describe_default_broker,
    describe_topic,
)
from broker.metadata.image import ResourceType

API_KEY: Final = 32


@handles(api_key=API_KEY, versions=(1, 4))
async def handle_describe_configs(request: Request, node: NodeServices) -> LargeAnswer:
    """Describe configs of topics and of this broker; others go on in between."""
    slices, results = Slices(), list[dict[str, Any]]()
    for resource in request.message.resources:
        results.append(_describe(resource, request.message, request.api_version, node))
        await slices.pause()
    return LargeAnswer(sum(len(result["configs"]) for result in results), results=results)


def _describe(resource: Any, message: Any, version: int, node: NodeServices) -> dict[str, Any]:
    named = {"resource_type": resource.resource_type, "resource_name": resource.resource_name}
    try:
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
        if not name:
            return describe_default_broker(image, wanted)
        if name != str(node.config.node_id):
            raise InvalidConfigRequestError(
                f"Unexpected broker id, expected {node.config.node_id} or empty string, but "
                f"received {name}"
            )
        return describe_broker(image, node.config, wanted)
    if resource_type in (
        ResourceType.BROKER_LOGGER,
        ResourceType.CLIENT_METRICS,
        ResourceType.GROUP,
    ):
        return ()
    raise InvalidConfigRequestError(f"Unsupported resource type: {resource_type}")


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
