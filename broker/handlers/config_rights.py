"""Rights to configs: of a topic or a group by that resource, all others by the cluster."""

from typing import Final

from kio.schema.errors import ErrorCode

from broker.controller.errors import (
    ClusterAuthorizationError,
    ControllerError,
    GroupAuthorizationError,
    TopicAuthorizationError,
)
from broker.handlers.controller_apis import NOT_AUTHORIZED
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import CLUSTER, Authorization, Resource
from broker.metadata.image import ResourceType
from broker.protocol.request_context import RequestContext

_OWN: Final = {
    ResourceType.TOPIC: (
        ResourceKind.TOPIC,
        TopicAuthorizationError,
        ErrorCode.topic_authorization_failed,
    ),
    ResourceType.GROUP: (
        ResourceKind.GROUP,
        GroupAuthorizationError,
        ErrorCode.group_authorization_failed,
    ),
}


def config_denial(
    authorization: Authorization,
    context: RequestContext,
    operation: Operation,
    resource: tuple[int, str],
) -> ControllerError | None:
    """Why the principal may not describe or alter the configs of a resource (type, name)."""
    type_, name = resource
    cluster = (None, ClusterAuthorizationError, ErrorCode.cluster_authorization_failed)
    kind, refusal, code = _OWN.get(type_, cluster)  # type: ignore[call-overload]
    wanted = CLUSTER if kind is None else Resource(kind=kind, name=name)
    if authorization.is_allowed(context, operation, wanted):
        return None
    error: ControllerError = refusal(NOT_AUTHORIZED[code])
    return error
