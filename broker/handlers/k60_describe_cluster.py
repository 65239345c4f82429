"""DescribeCluster, versions 0-2.

Behaviour: cluster id, controller and brokers of this node's image; from v2 fenced brokers too
when asked for. Controller endpoints (endpoint type 2) are refused with MISMATCHED_ENDPOINT_TYPE, as
on Kafka's listeners for clients.
Notes: the controller listener does not serve it: tools with --bootstrap-controller find nobody.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.handlers.topic_view import (
    view_brokers,
    view_controller,
)
from broker.metadata.authorization import OPERATIONS_OMITTED
from broker.protocol import codec

API_KEY = 60
BROKER_ENDPOINTS = 1
CONTROLLER_ENDPOINTS = 2


@handles(api_key=API_KEY, versions=(0, 2))
def handle_describe_cluster(request: Request, node: NodeServices) -> Any:
    """The cluster as this node knows it."""
    message, version = request.message, request.api_version
    endpoint_type = getattr(message, "endpoint_type", BROKER_ENDPOINTS)
    if endpoint_type != BROKER_ENDPOINTS:
        return _refuse(version, endpoint_type)
    image, listener_name = node.metadata.image, request.context.listener_name
    with_fenced = getattr(message, "include_fenced_brokers", False)
    with_operations = message.include_cluster_authorized_operations
    return codec.build_response(
        API_KEY,
        version,
        endpoint_type=BROKER_ENDPOINTS,
        cluster_id=image.cluster_id,
        controller_id=view_controller(image, listener_name),
        brokers=[
            {
                "broker_id": broker.id,
                "host": endpoint.host,
                "port": endpoint.port,
                "rack": broker.rack,
                "is_fenced": broker.fenced,
            }
            for broker, endpoint in view_brokers(image, listener_name, with_fenced=with_fenced)
        ],
        cluster_authorized_operations=(
            node.authorization.cluster_operations(request.context)
            if with_operations
            else OPERATIONS_OMITTED
        ),
    )


def _refuse(version: int, endpoint_type: int) -> Any:
    known = endpoint_type == CONTROLLER_ENDPOINTS
    error = ErrorCode.mismatched_endpoint_type if known else ErrorCode.unsupported_endpoint_type
    reason = f"This listener describes brokers only, not endpoint type {endpoint_type}."
    return codec.build_response(API_KEY, version, error_code=error, error_message=reason)
