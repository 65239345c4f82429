"""Brokers that a move empties, and what has come to them meanwhile.

Who decommissions a broker stops it when the move is done. But until then the cluster goes on
placing new topics and partitions there, which are in nobody's plan.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from control.kafka.ports import AdminPort, PartitionMetadata
from control.model.ids import TopicPartition
from control.model.units import counted
from planner.proposal import PartitionChange

NAMES_MAX: Final = 3


def drained_by(
    changes: Iterable[PartitionChange], partitions: Mapping[TopicPartition, PartitionMetadata]
) -> tuple[int, ...]:
    """Brokers that hold something, and nothing any more once these changes are done."""
    after = {change.key: change.after for change in changes}
    held = {broker for partition in partitions.values() for broker in partition.replicas}
    kept = {
        broker
        for key, partition in partitions.items()
        for broker in after.get(key, partition.replicas)
    }
    return tuple(sorted(held - kept))


def what_came(emptied: Collection[int], partitions: Iterable[PartitionMetadata]) -> tuple[str, ...]:
    """A line for each of these brokers that holds replicas all the same."""
    found: dict[int, list[str]] = {broker: [] for broker in sorted(emptied)}
    for partition in partitions:
        for broker in partition.replicas:
            if broker in found:
                found[broker].append(str(partition.key))
    return tuple(_words(broker, names) for broker, names in found.items() if names)


async def came_meanwhile(
    admin: AdminPort, emptied: Collection[int], changes: Iterable[PartitionChange]
) -> tuple[str, ...]:
    """`what_came` by now; of what was moved away a broker that lags may still tell.

    :raises KafkaPortError: unreachable.
    """
    if not emptied:
        return ()
    moved = {change.key for change in changes}
    partitions = (p for topic in await admin.topics() for p in topic.partitions)
    return what_came(emptied, (p for p in partitions if p.key not in moved))


def _words(broker: int, names: list[str]) -> str:
    more = len(names) - NAMES_MAX
    shown = ", ".join(sorted(names)[:NAMES_MAX]) + (f" and {more:,} more" if more > 0 else "")
    replicas = counted(len(names), "replica")
    return (
        f"broker {broker} is not empty: {replicas} came to it meanwhile ({shown}); plan to "
        f"decommission it once more before you stop it"
    )
