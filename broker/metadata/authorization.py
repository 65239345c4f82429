"""The one place that asks who may do what (Kafka's AuthHelper).

Without an authorizer everybody may do everything, as in Kafka. What a node asks for itself needs no
right.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from broker.background import Slices
from broker.metadata.acls import AclIndex, Acls, Operation, ResourceKind
from broker.protocol.request_context import ITSELF, RequestContext

log = logging.getLogger(__name__)


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
VERDICTS_MAX: Final = 20_000
"""Verdicts that are kept until an entry changes, some 10 MiB of them."""
DENIALS_TOLD_MAX: Final = 100
"""Denials in the log between two calls of `tell_denials`; the others are counted."""

Authorizer = Callable[[RequestContext, Operation, Resource], bool]
SomeAuthorizer = Callable[[RequestContext, Operation, ResourceKind], bool]


class StandardAuthorizer:
    """Decides by super users, then by the lists of the newest metadata."""

    def __init__(
        self, acls: Callable[[], Acls], *, super_users: frozenset[str], allows_unlisted: bool
    ) -> None:
        self._acls = acls
        self._super_users = super_users
        self._allows_unlisted = allows_unlisted
        self._index = AclIndex()
        self._verdicts: dict[tuple[str, str, Operation, Resource], bool] = {}

    def __call__(self, context: RequestContext, operation: Operation, resource: Resource) -> bool:
        """Whether the principal may do this."""
        principal = str(context.principal)
        if principal in self._super_users:
            return True
        index = self._current()
        key = (principal, context.client_host, operation, resource)
        known = self._verdicts.get(key)
        if known is None:
            verdict = index.verdict(
                principal, context.client_host, operation, resource.kind, resource.name
            )
            known = self._allows_unlisted if verdict is None else verdict
            if len(self._verdicts) >= VERDICTS_MAX:
                self._verdicts.clear()
            self._verdicts[key] = known
        return known

    def allows_some(
        self, context: RequestContext, operation: Operation, kind: ResourceKind
    ) -> bool:
        """Whether the principal may do this to some resource of a kind."""
        if self(context, operation, Resource(kind=kind, name="hardcode")):  # as Kafka asks
            return True
        host, principal = context.client_host, str(context.principal)
        return self._current().allows_some(principal, host, operation, kind)

    def _current(self) -> AclIndex:
        if self._index.follow(self._acls()):
            self._verdicts.clear()
        return self._index


class Authorization:
    """Asks the authorizer, if there is one, and keeps a record of what it denies."""

    def __init__(
        self, authorizer: Authorizer | None = None, allows_some: SomeAuthorizer | None = None
    ) -> None:
        self._authorizer = authorizer
        self._allows_some = allows_some
        self._denials = 0

    @property
    def is_enabled(self) -> bool:
        """Whether anybody is ever refused."""
        return self._authorizer is not None

    def is_allowed(
        self,
        context: RequestContext,
        operation: Operation,
        resource: Resource,
        *,
        is_told: bool = True,
    ) -> bool:
        """Whether the principal may do this. A denial is told in the log, unless it only leaves
        something out of an answer."""
        if self._authorizer is None or context.principal is ITSELF:
            return True
        is_allowed = self._authorizer(context, operation, resource)
        if is_told and not is_allowed:
            self._note(context, operation, f"{resource.kind.name}:{resource.name}")
        return is_allowed

    def is_allowed_some(
        self, context: RequestContext, operation: Operation, kind: ResourceKind
    ) -> bool:
        """Whether the principal may do this to some resource of a kind."""
        if self._authorizer is None or context.principal is ITSELF:
            return True
        return self._allows_some is not None and self._allows_some(context, operation, kind)

    def is_refused(
        self, context: RequestContext, operation: Operation, kind: ResourceKind, name: str
    ) -> bool:
        """Whether the principal may not do this, which is told in the log."""
        if self._authorizer is None:
            return False
        return not self.is_allowed(context, operation, Resource(kind=kind, name=name))

    async def refused(
        self,
        context: RequestContext,
        operation: Operation,
        kind: ResourceKind,
        names: Iterable[str],
        *,
        is_told: bool = True,
    ) -> frozenset[str]:
        """Those of the names to which the principal may not do this; others go on in between."""
        if self._authorizer is None or context.principal is ITSELF:
            return frozenset()
        refused, slices = set[str](), Slices()
        for name in dict.fromkeys(names):
            resource = Resource(kind=kind, name=name)
            if not self.is_allowed(context, operation, resource, is_told=is_told):
                refused.add(name)
            await slices.pause()
        return frozenset(refused)

    def refused_now(
        self,
        context: RequestContext,
        operation: Operation,
        kind: ResourceKind,
        names: Iterable[str],
        *,
        is_told: bool = True,
    ) -> frozenset[str]:
        """As `refused`, for who cannot wait."""
        if self._authorizer is None or context.principal is ITSELF:
            return frozenset()
        return frozenset(
            name
            for name in dict.fromkeys(names)
            if not self.is_allowed(
                context, operation, Resource(kind=kind, name=name), is_told=is_told
            )
        )

    def operations(self, context: RequestContext, resource: Resource) -> int:
        """Operations that the principal may do, as the bits of `authorized_operations`."""
        if self._authorizer is None:
            return _ALL[resource.kind]
        return sum(
            1 << it
            for it in _OPERATIONS[resource.kind]
            if self.is_allowed(context, it, resource, is_told=False)
        )

    def cluster_operations(self, context: RequestContext) -> int:
        """Those on the cluster, of one who may describe it; of others none."""
        is_allowed = self.is_allowed(context, Operation.DESCRIBE, CLUSTER, is_told=False)
        return self.operations(context, CLUSTER) if is_allowed else 0

    def _note(self, context: RequestContext, operation: Operation, resource: str) -> None:
        self._denials += 1
        if self._denials <= DENIALS_TOLD_MAX:
            log.info(
                "%s from %s, client %r, may not %s %r",
                *(context.principal, context.client_host, context.client_id),
                *(operation.name, resource),
            )

    def tell_denials(self) -> None:
        """Now and then: how many more there were than lines in the log."""
        more, self._denials = self._denials - DENIALS_TOLD_MAX, 0
        if more > 0:
            log.info("%d more requests were denied since", more)
