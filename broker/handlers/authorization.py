"""The one place that asks who may do what (Kafka's AuthHelper).

Without an authorizer everybody may do everything, as in Kafka.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from broker.protocol.request_context import RequestContext


class Operation(IntEnum):
    """Kafka's AclOperation."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class ResourceKind(IntEnum):
    """Kafka's ResourceType of ACLs."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The object of an operation."""

    kind: ResourceKind
    name: str


CLUSTER: Final = Resource(kind=ResourceKind.CLUSTER, name="kafka-cluster")

_CONFIGS: Final = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
_OPERATIONS: Final[Mapping[ResourceKind, tuple[Operation, ...]]] = {
    ResourceKind.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        *_CONFIGS,
    ),
    ResourceKind.GROUP: (Operation.READ, Operation.DELETE, Operation.DESCRIBE, *_CONFIGS),
    ResourceKind.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        *_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""Those that Kafka lists as authorized operations of a resource (AclEntry.supportedOperations)."""
_ALL: Final = {kind: sum(1 << it for it in supported) for kind, supported in _OPERATIONS.items()}
OPERATIONS_OMITTED: Final = -(2**31)
"""What Kafka sends when authorized operations were not asked for."""

Authorizer = Callable[[RequestContext, Operation, Resource], bool]


class Authorization:
    """Asks the authorizer, if there is one."""

    def __init__(self, authorizer: Authorizer | None = None) -> None:
        self._authorizer = authorizer

    def is_allowed(self, context: RequestContext, operation: Operation, resource: Resource) -> bool:
        """Whether the principal may do this."""
        return self._authorizer is None or self._authorizer(context, operation, resource)

    def operations(self, context: RequestContext, resource: Resource) -> int:
        """Operations that the principal may do, as the bits of `authorized_operations`."""
        if self._authorizer is None:
            return _ALL[resource.kind]
        supported = _OPERATIONS[resource.kind]
        return sum(1 << it for it in supported if self.is_allowed(context, it, resource))
