"""Access control entries of a cluster: who may do what, as ``kafka-acls`` adds them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from control.kafka.acl import AclOperation
from control.kafka.connection import apis
from control.kafka.connection.wire import KafkaWire
from control.kafka.errors import raise_if_refused

ALLOW: Final = 3
ANY_HOST: Final = "*"
EVERY: Final = "*"
CLUSTER_NAME: Final = "kafka-cluster"


class ResourceType(IntEnum):
    """Kafka's ResourceType."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4


class PatternType(IntEnum):
    """Kafka's PatternType, of those that an entry may have."""

    LITERAL = 3
    PREFIXED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessEntry:
    """One right of one user."""

    user: str
    operation: AclOperation
    resource: ResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL


async def grant(wire: KafkaWire, entries: Sequence[AccessEntry]) -> None:
    """Add these entries; those that are there already change nothing.

    :raises KafkaPortError: the cluster does not answer, or refuses one.
    """
    creations = tuple(
        {
            "resource_type": each.resource,
            "resource_name": each.name,
            "resource_pattern_type": each.pattern,
            "principal": f"User:{each.user}",
            "host": ANY_HOST,
            "operation": each.operation,
            "permission_type": ALLOW,
        }
        for each in entries
    )
    answer = await wire.send(apis.CREATE_ACLS, {"creations": creations})
    for each, result in zip(entries, answer.message.results, strict=True):
        what = f"{each.operation.name} on {each.resource.name.lower()} {each.name} for {each.user}"
        raise_if_refused(result.error_code, what=f"granting {what}", message=result.error_message)
