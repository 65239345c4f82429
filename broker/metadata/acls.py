"""Access control lists, and who may do what by them: as Kafka's StandardAuthorizer decides.

A denial that matches beats every permission. Where no list names the resource, the default of the
cluster decides; where one does, whoever it does not allow is refused.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Generic, TypeVar
from uuid import UUID

WILDCARD: Final = "*"
ANYBODY: Final = "User:*"

K = TypeVar("K", bound=Hashable)


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


_NOTHING: Final[Mapping[UUID, Acl]] = {}


class _Groups(Generic[K]):
    """Entries by a key, each found again by its id."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[K, dict[UUID, Acl]] = {}

    def add(self, key: K, id_: UUID, acl: Acl) -> None:
        self._groups.setdefault(key, {})[id_] = acl

    def remove(self, key: K, id_: UUID) -> None:
        group = self._groups[key]
        del group[id_]
        if not group:
            del self._groups[key]

    def of(self, key: K) -> Iterable[Acl]:
        """Entries with this key."""
        return self._groups.get(key, _NOTHING).values()


class AclIndex:
    """Entries by their resources, which follow the newest metadata."""

    __slots__ = ("_acls", "_by_kind", "_named", "_prefix_lengths", "_prefixes")

    def __init__(self) -> None:
        self._acls: Acls = {}
        self._named = _Groups[tuple[int, str]]()
        self._prefixes = _Groups[tuple[int, str]]()
        self._by_kind = _Groups[int]()
        self._prefix_lengths: Counter[int] = Counter()

    def follow(self, acls: Acls) -> bool:
        """Take over what came and went since the last call; whether anything did."""
        before = self._acls
        if acls is before:
            return False
        self._acls = acls
        kept = 0
        for id_, acl in acls.items():
            known = before.get(id_)
            kept += known is not None
            if known is acl:
                continue
            if known is not None:
                self._remove(id_, known)
            self._add(id_, acl)
        if kept < len(before):
            for id_ in before.keys() - acls.keys():
                self._remove(id_, before[id_])
        return True

    def _add(self, id_: UUID, acl: Acl) -> None:
        self._by_kind.add(acl.kind, id_, acl)
        if acl.pattern is PatternType.LITERAL:
            self._named.add((acl.kind, acl.name), id_, acl)
        else:
            self._prefixes.add((acl.kind, acl.name), id_, acl)
            self._prefix_lengths[len(acl.name)] += 1

    def _remove(self, id_: UUID, acl: Acl) -> None:
        self._by_kind.remove(acl.kind, id_)
        if acl.pattern is PatternType.LITERAL:
            self._named.remove((acl.kind, acl.name), id_)
        else:
            self._prefixes.remove((acl.kind, acl.name), id_)
            self._prefix_lengths[len(acl.name)] -= 1
            if not self._prefix_lengths[len(acl.name)]:
                del self._prefix_lengths[len(acl.name)]

    def matching(self, kind: ResourceKind, name: str) -> Iterator[Acl]:
        """Entries that mean this resource."""
        yield from self._named.of((kind, name))
        if name != WILDCARD:
            yield from self._named.of((kind, WILDCARD))
        for end in self._prefix_lengths:
            if end <= len(name):
                yield from self._prefixes.of((kind, name[:end]))

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
            for acl in self._by_kind.of(kind)
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
