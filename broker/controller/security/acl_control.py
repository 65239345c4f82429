"""Access control entries, created and deleted (Kafka's AclControlManager)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from broker.controller.decision import Accepted, Decision, Rejected, Verdict
from broker.controller.errors import ControllerError, InvalidConfigRequestError
from broker.metadata.acls import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
)
from broker.metadata.authorization import CLUSTER
from broker.metadata.image import MetadataImage
from broker.metadata.records import MetadataRecord, RemoveAccessControlEntryRecord
from broker.metadata.snapshot import acl_record

_IN_FILTERS_ALONE: Final = (
    (ResourceKind.UNKNOWN, ResourceKind.ANY),
    (PatternType.UNKNOWN, PatternType.ANY, PatternType.MATCH),
    (Operation.UNKNOWN, Operation.ANY),
    (Permission.UNKNOWN, Permission.ANY),
)
CHANGES_MAX: Final = 10_000
"""Kafka's bound of what one request may create or delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedAcls:
    """Entries that one filter deleted."""

    acls: tuple[Acl, ...]


def decide_create_acls(
    acls: Sequence[Acl], image: MetadataImage, new_id: Callable[[], UUID]
) -> Decision[list[Verdict[None]]]:
    """Create those that can be and are not there yet; a verdict on each, in order."""
    records: list[MetadataRecord] = []
    known = set(image.acls.values())
    verdicts: list[Verdict[None]] = []
    for acl in acls:
        try:
            _check(acl)
        except ControllerError as error:
            verdicts.append(Rejected(error))
            continue
        if acl not in known:
            known.add(acl)
            records.append(acl_record(new_id(), acl))
        verdicts.append(Accepted(None))
    return Decision(tuple(records), verdicts)


def _check(acl: Acl) -> None:
    if acl.kind is ResourceKind.CLUSTER and acl.name != CLUSTER.name:
        raise InvalidConfigRequestError(
            f"The only valid name for the CLUSTER resource is {CLUSTER.name}"
        )
    if not acl.name:
        raise InvalidConfigRequestError("Invalid empty resource name")
    names = ("resourceType", "patternType", "operation", "permissionType")
    values = (acl.kind, acl.pattern, acl.operation, acl.permission)
    for name, value, wrong in zip(names, values, _IN_FILTERS_ALONE, strict=True):
        if value in wrong:
            raise InvalidConfigRequestError(f"Invalid {name} {value.name}")
    kind, colon, _ = acl.principal.partition(":")
    if not (kind and colon):
        raise InvalidConfigRequestError(
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the "
            "principal type from the principal name)"
        )


def decide_delete_acls(
    filters: Sequence[AclFilter], image: MetadataImage
) -> Decision[list[Verdict[DeletedAcls]]]:
    """Delete whatever a filter means; a verdict on each filter, in order."""
    gone: dict[UUID, None] = {}
    verdicts: list[Verdict[DeletedAcls]] = []
    for wanted in filters:
        if wanted.unknown:
            verdicts.append(Rejected(InvalidConfigRequestError(f"Unknown {wanted.unknown}.")))
            continue
        found = {id_: acl for id_, acl in image.acls.items() if wanted.matches(acl)}
        gone |= dict.fromkeys(found)
        verdicts.append(Accepted(DeletedAcls(acls=tuple(found.values()))))
    return Decision(tuple(RemoveAccessControlEntryRecord(id=it) for it in gone), verdicts)
