"""The line under the key field: which partition a key will hit, before anything is sent."""

from collections.abc import Mapping

from control.model.ids import TopicPartition
from control.views.snapshots.snapshot import OperatorSnapshot, partition_record


def key_line(answers: Mapping[str, int | None], snapshot: OperatorSnapshot, topic: str) -> str:
    """``murmur2 → 10 (leader 102, rack b) · crc32 → 9 · fnv1a → 2``.

    ``answers`` are the rules' partitions in order; the first is told in full. None: the client
    chooses by itself.
    """
    parts = []
    for place, (rule, partition) in enumerate(answers.items()):
        where = "any" if partition is None else str(partition)
        if place == 0 and partition is not None:
            where += _leader_words(snapshot, TopicPartition(topic, partition))
        parts.append(f"{rule} → {where}")
    return " · ".join(parts)


def partition_count(snapshot: OperatorSnapshot, topic: str) -> int:
    """How many partitions the topic has; 0: it is not known."""
    found = snapshot.cluster.partitions["topic"].to_pylist()
    return int(found.count(topic))


def _leader_words(snapshot: OperatorSnapshot, name: TopicPartition) -> str:
    record = partition_record(snapshot, name)
    if record is None or record["leader"] < 0:
        return " (no leader)"
    table = snapshot.broker_table
    racks = dict(zip(table["broker"].to_pylist(), table["rack"].to_pylist(), strict=True))
    rack = racks.get(record["leader"])
    return f" (leader {record['leader']}{f', rack {rack}' if rack else ''})"
