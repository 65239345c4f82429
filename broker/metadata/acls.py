"""Access control lists, and who may do what by them: as Kafka's StandardAuthorizer decides.

A denial that matches beats every permission. Where no list names the resource, the default of the
cluster decides; where one does, whoever it does not allow is refused.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final
from uuid import UUID

WILDCARD: Final = "*"
ANYBODY: Final = "User:*"


class Operation(IntEnum):
    """Kafka's AclOperation."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
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
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceKind(IntEnum):
    """Kafka's ResourceType of ACLs."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a name is meant: itself, or all that begin with it; filters have two more."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Kafka's AclPermissionType."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


_IMPLIED: Final = {
    Operation.DESCRIBE: frozenset(
        {
            Operation.DESCRIBE,
            Operation.READ,
            Operation.WRITE,
            Operation.DELETE,
            Operation.ALTER,
        }
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""Rights that others bring along where they are allowed; a denial denies itself alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """One entry (AclBinding)."""

    kind: ResourceKind
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def speaks_of(self, principal: str, host: str, operation: Operation) -> bool:
        """Whether it allows or denies this, given that its resource is meant."""
        if self.principal not in (principal, ANYBODY) or self.host not in (host, WILDCARD):
            return False
        if self.operation in (Operation.ALL, operation):
            return True
        implied = _IMPLIED.get(operation, frozenset())
        return self.permission is Permission.ALLOW and self.operation in implied


Acls = Mapping[UUID, Acl]


class AclIndex:
    """Entries by their resources; never changed."""

    __slots__ = ("_by_kind", "_longest", "_named", "_prefixes")

    def __init__(self, acls: Iterable[Acl]) -> None:
        self._named: dict[tuple[int, str], list[Acl]] = defaultdict(list)
        self._prefixes: dict[tuple[int, str], list[Acl]] = defaultdict(list)
        self._by_kind: dict[int, list[Acl]] = defaultdict(list)
        self._longest = 0
        for acl in acls:
            self._by_kind[acl.kind].append(acl)
            if acl.pattern is PatternType.LITERAL:
                self._named[acl.kind, acl.name].append(acl)
            else:
                self._prefixes[acl.kind, acl.name].append(acl)
                self._longest = max(self._longest, len(acl.name))

    def matching(self, kind: ResourceKind, name: str) -> Iterator[Acl]:
        """Entries that mean this resource."""
        yield from self._named.get((kind, name), ())
        if name != WILDCARD:
            yield from self._named.get((kind, WILDCARD), ())
        for end in range(min(self._longest, len(name)) + 1):
            yield from self._prefixes.get((kind, name[:end]), ())

    def verdict(
        self, principal: str, host: str, operation: Operation, kind: ResourceKind, name: str
    ) -> bool | None:
        """Whether it is allowed; None where no entry means the resource."""
        found: bool | None = None
        for acl in self.matching(kind, name):
            found = found or False
            if acl.speaks_of(principal, host, operation):
                if acl.permission is Permission.DENY:
                    return False
                found = True
        return found

    def allows_some(
        self, principal: str, host: str, operation: Operation, kind: ResourceKind
    ) -> bool:
        """Whether there may be a resource of this kind on which it is allowed
        (Authorizer.authorizeByResourceType): a permission that no denial covers."""
        of_kind = [
            acl
            for acl in self._by_kind.get(kind, ())
            if acl.operation in (Operation.ALL, operation)
            and acl.speaks_of(principal, host, operation)
        ]
        denied = {(it.pattern, it.name) for it in of_kind if it.permission is Permission.DENY}
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        for acl in of_kind:
            if acl.permission is not Permission.ALLOW:
                continue
            if acl.pattern is PatternType.LITERAL:
                if acl.name == WILDCARD:
                    return True
                if (PatternType.LITERAL, acl.name) in denied:
                    continue
            prefixes = (acl.name[:end] for end in range(1, len(acl.name) + 1))
            if not any((PatternType.PREFIXED, it) in denied for it in prefixes):
                return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """Names the entries that are described or deleted (AclBindingFilter); None means any."""

    kind: ResourceKind
    name: str | None
    pattern: PatternType
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    @property
    def unknown(self) -> str:
        """The part that this build does not know; empty where it knows all."""
        if self.kind == ResourceKind.UNKNOWN or self.pattern == PatternType.UNKNOWN:
            return "patternFilter"
        is_unknown = self.operation == Operation.UNKNOWN or self.permission == Permission.UNKNOWN
        return "entryFilter" if is_unknown else ""

    def matches(self, acl: Acl) -> bool:
        """Whether the entry is meant."""
        return (
            self.kind in (ResourceKind.ANY, acl.kind)
            and self._is_named(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _is_named(self, acl: Acl) -> bool:
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, acl.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern is not PatternType.MATCH:
            return self.name == acl.name
        if acl.pattern is PatternType.LITERAL:
            return acl.name in (self.name, WILDCARD)
        return self.name.startswith(acl.name)
