"""Access control entries and filters on the wire: of Describe-, Create- and DeleteAcls."""

from enum import IntEnum
from typing import Any, TypeVar

from broker.metadata.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceKind

E = TypeVar("E", bound=IntEnum)

NO_AUTHORIZER = "No Authorizer is configured on the broker"
"""With SECURITY_DISABLED."""


def _known(kind: type[E], number: int) -> E:
    """The member of this number; UNKNOWN (0) for one of a version to come."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)


def read_acl(creation: Any) -> Acl:
    """The entry of a CreateAcls request."""
    return Acl(
        kind=_known(ResourceKind, creation.resource_type),
        name=creation.resource_name,
        pattern=_known(PatternType, creation.resource_pattern_type),
        principal=creation.principal,
        host=creation.host,
        operation=_known(Operation, creation.operation),
        permission=_known(Permission, creation.permission_type),
    )


def read_filter(asked: Any) -> AclFilter:
    """The filter of a DescribeAcls or DeleteAcls request."""
    return AclFilter(
        kind=_known(ResourceKind, asked.resource_type_filter),
        name=asked.resource_name_filter,
        pattern=_known(PatternType, asked.pattern_type_filter),
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=_known(Operation, asked.operation),
        permission=_known(Permission, asked.permission_type),
    )


def entry_fields(acl: Acl) -> dict[str, Any]:
    """The fields of an entry without its resource."""
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }
