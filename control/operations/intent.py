"""What a form is about to change, in lines, before it is confirmed. Nothing here changes it.

Reassignments have a preview of their own (``Operator.preview``); producing needs none.
What may not be done to a topic at all is refused here already, before anything is typed.
"""

from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from control.kafka.ports import ConfigResource, ConfigScope, PartitionMetadata
from control.operations import checks, registry
from control.operations.errors import InvalidInputError
from control.operations.group_offsets import OffsetReset
from control.operations.guard import check_configs, check_topic, topic_doubt
from control.operations.operator import Operator

LINES_MAX: Final = 100
"""More lines than an operator reads are cut, and how many were is said."""

Values = Mapping[str, str]


async def intent(operator: Operator, form: str, values: Values) -> tuple[str, ...]:
    """Lines that say what confirming the form would do; empty: nothing at all.

    :raises InvalidInputError: a wrong field.
    :raises KafkaPortError: the cluster refuses or does not answer.
    """
    fields = registry.form_named(form).parse(values)
    found = await _INTENTS[form](operator, fields) if form in _INTENTS else ()
    if len(found) <= LINES_MAX:
        return found
    return (*found[:LINES_MAX], f"… and {len(found) - LINES_MAX:,} more")


async def _create_topic(_: Operator, fields: Values) -> tuple[str, ...]:
    check_topic("create_topic", fields["topic"])
    usual, configs = "the cluster's own number of", fields["configs"]
    partitions = f"{fields['partitions'] or usual} partitions"
    copies = fields["replication_factor"]
    factor = f"replication factor {copies}" if copies else "the cluster's own replication factor"
    line = f"{fields['topic']}: {partitions}, {factor}"
    return (f"{line}, {configs}" if configs else line,)


async def _add_partitions(operator: Operator, fields: Values) -> tuple[str, ...]:
    check_topic("add_partitions", fields["topic"])
    (topic,) = await operator.admin.topics([fields["topic"]])
    now, wanted = len(topic.partitions), int(fields["partitions"])
    if wanted <= now:
        raise InvalidInputError({"partitions": f"{topic.name} has {now}; Kafka only adds"})
    return (
        f"{topic.name}: {now} → {wanted} partitions",
        "keys may land on other partitions from then on; consumers rebalance",
        *_doubts(topic.name),
    )


async def _configure_topic(operator: Operator, fields: Values) -> tuple[str, ...]:
    wanted = checks.pairs(fields["configs"])
    check_configs(fields["topic"], wanted)
    resource = ConfigResource(scope=ConfigScope.TOPIC, name=fields["topic"])
    now = {entry.name: entry.value for entry in await operator.admin.describe_configs(resource)}
    unknown = sorted(set(wanted) - set(now))
    if unknown:
        raise InvalidInputError({"configs": f"{', '.join(unknown)}: no such config of a topic"})
    lines = (
        f"{name}: {now[name]} → {value or 'removed, the default applies'}"
        for name, value in wanted.items()
    )
    return (*lines, *_doubts(fields["topic"]))


async def _delete_topic(operator: Operator, fields: Values) -> tuple[str, ...]:
    check_topic("delete", fields["topic"])
    (topic,) = await operator.admin.topics([fields["topic"]])
    replicas = sum(len(partition.replicas) for partition in topic.partitions)
    return (
        f"{topic.name}: {len(topic.partitions)} partitions, {replicas} replicas are deleted",
        "its data is gone for good; producers that create topics may bring back the name",
        *_doubts(topic.name),
    )


async def _elect(operator: Operator, fields: Values) -> tuple[str, ...]:
    patterns = checks.split_pairs(fields["topics"])
    return tuple(
        _election_line(partition)
        for topic in await operator.admin.topics()
        if not patterns or any(fnmatchcase(topic.name, pattern) for pattern in patterns)
        for partition in topic.partitions
        if partition.leader != partition.replicas[0]
    )


async def _reset_offsets(operator: Operator, fields: Values) -> tuple[str, ...]:
    resets = await operator.preview_reset_offsets(fields)
    return tuple(_reset_line(reset) for reset in resets if reset.before != reset.after)


def _doubts(topic: str) -> tuple[str, ...]:
    doubt = topic_doubt(topic)
    return (doubt,) if doubt else ()


def _election_line(partition: PartitionMetadata) -> str:
    leader = "none" if partition.leader < 0 else str(partition.leader)
    return f"{partition.key}: leader {leader} → {partition.replicas[0]}"


def _reset_line(reset: OffsetReset) -> str:
    before = "no commit" if reset.before is None else f"{reset.before:,}"
    again = "" if reset.before is None else _again(reset.after - reset.before)
    return f"{reset.key}: {before} → {reset.after:,}{again}"


def _again(shift: int) -> str:
    return f" ({shift:,} records are skipped)" if shift > 0 else f" ({-shift:,} are read again)"


_INTENTS: Final[Mapping[str, Callable[[Operator, Values], Awaitable[tuple[str, ...]]]]] = {
    "create_topic": _create_topic,
    "add_partitions": _add_partitions,
    "configure_topic": _configure_topic,
    "delete_topic": _delete_topic,
    "elect": _elect,
    "reset_offsets": _reset_offsets,
}
