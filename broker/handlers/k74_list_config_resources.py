"""ListConfigResources, versions 0-1 (KIP-1142).

Behaviour: answered from this broker's image: topics, brokers and their loggers, and
the groups and client metrics subscriptions that have configs of their own.
"""

from collections import defaultdict
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation
from broker.metadata.image import ResourceType
from broker.protocol import codec

API_KEY: Final = 74


@handles(api_key=API_KEY, versions=(0, 1), cluster_operation=Operation.DESCRIBE_CONFIGS)
def handle_list_config_resources(request: Request, node: NodeServices) -> Any:
    """List what can have configs."""
    wanted = {int(type_) for type_ in getattr(request.message, "resource_types", ())}
    if request.api_version == 0:
        wanted = {int(ResourceType.CLIENT_METRICS)}
    image = node.metadata.image
    kept: dict[ResourceType, list[str]] = defaultdict(list)
    for resource in image.configs:
        kept[resource.type].append(resource.name)
    names = {
        ResourceType.TOPIC: sorted(image.topics),
        ResourceType.BROKER: [str(id_) for id_ in sorted(image.brokers)],
        ResourceType.BROKER_LOGGER: [str(id_) for id_ in sorted(image.brokers)],
        ResourceType.CLIENT_METRICS: kept[ResourceType.CLIENT_METRICS],
        ResourceType.GROUP: kept[ResourceType.GROUP],
    }
    resources = [
        {"resource_name": name, "resource_type": type_}
        for type_, of_type in names.items()
        if not wanted or type_ in wanted
        for name in sorted(of_type)
    ]
    return codec.build_response(
        API_KEY, request.api_version, error_code=ErrorCode.none, config_resources=resources
    )
