"""Rights of the parts of an installation on a bundled cluster with logins.

Brokers and the admin are super users. All others have these entries and no more.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from broker.metrics_schema import METRICS_TOPIC
from control.kafka.acl import AclOperation
from control.kafka.admin.access_entries import (
    CLUSTER_NAME,
    EVERY,
    AccessEntry,
    PatternType,
    ResourceType,
)
from control.messages.demo import GROUPS, TOPICS
from control.operations.protected_topics import OWN_PREFIX
from partiscope.bundled.secure_cluster import ALERTS, COLLECTOR, DEMO, EXECUTOR, METRICS, PAGE

_JOB_GROUPS: Final = "partiscope-metrics"
_LOOK: Final = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
_CHANGE: Final = (*_LOOK, AclOperation.ALTER, AclOperation.ALTER_CONFIGS)
_USE: Final = (AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE)
_OF_CLUSTER: Final = {
    PAGE: (*_CHANGE, AclOperation.CREATE),
    EXECUTOR: _CHANGE,
    ALERTS: _LOOK,
    COLLECTOR: _LOOK,
    DEMO: (AclOperation.DESCRIBE,),
}
_OF_EVERY_TOPIC: Final = {
    PAGE: (*_CHANGE, *_USE, AclOperation.DELETE),
    EXECUTOR: _CHANGE,
    ALERTS: _LOOK,
}
_OF_EVERY_GROUP: Final = {
    PAGE: (*_LOOK, AclOperation.READ, AclOperation.DELETE),
    EXECUTOR: _LOOK,
    ALERTS: _LOOK,
}
_OF_OWN_TOPICS: Final = {
    EXECUTOR: _USE,
    ALERTS: (*_USE, AclOperation.ALTER_CONFIGS),
    COLLECTOR: (*_USE, *_LOOK, AclOperation.ALTER_CONFIGS),
    DEMO: (AclOperation.DESCRIBE,),  # by them a command knows the bus
}
_OF_OWN_GROUPS: Final = {EXECUTOR: (AclOperation.READ,), ALERTS: (AclOperation.READ,)}


def part_rights() -> Iterator[AccessEntry]:
    """The entries of all parts."""
    literal, prefixed = PatternType.LITERAL, PatternType.PREFIXED
    topic, group = ResourceType.TOPIC, ResourceType.GROUP
    yield from _entries(_OF_CLUSTER, ResourceType.CLUSTER, CLUSTER_NAME, literal)
    yield from _entries(_OF_EVERY_TOPIC, topic, EVERY, literal)
    yield from _entries(_OF_EVERY_GROUP, group, EVERY, literal)
    yield from _entries(_OF_OWN_TOPICS, topic, OWN_PREFIX, prefixed)
    yield from _entries(_OF_OWN_GROUPS, group, OWN_PREFIX, prefixed)
    reading = (AclOperation.READ, AclOperation.DESCRIBE)
    yield from _entries({METRICS: reading}, topic, METRICS_TOPIC, literal)
    yield from _entries({METRICS: reading}, group, _JOB_GROUPS, prefixed)
    for name in (each.name for each in TOPICS):
        yield from _entries({DEMO: (*_USE, AclOperation.DESCRIBE)}, topic, name, literal)
    for name in GROUPS:
        yield from _entries({DEMO: reading}, group, name, literal)


def _entries(
    operations: Mapping[str, tuple[AclOperation, ...]],
    resource: ResourceType,
    name: str,
    pattern: PatternType,
) -> Iterator[AccessEntry]:
    for user, allowed in operations.items():
        for operation in allowed:
            yield AccessEntry(
                user=user, operation=operation, resource=resource, name=name, pattern=pattern
            )
