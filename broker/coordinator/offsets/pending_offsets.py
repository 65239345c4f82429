"""Offsets that producers have committed within transactions which are still open. Pure.

They count when the marker of the transaction is written into the partition of __consumer_offsets,
or never. Until then a consumer that asks for stable offsets is told to ask again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from broker.coordinator.offsets.committed_offsets import GroupOffsets, TopicPartition
from broker.coordinator.records import CommittedOffset


@dataclass(slots=True)
class PendingOffsets:
    """By producer id and group; one partition of __consumer_offsets."""

    by_producer: dict[int, dict[str, GroupOffsets]] = field(default_factory=dict)

    def put(
        self,
        producer_id: int,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        log_offset: int,
    ) -> None:
        """Keep what a transaction commits; its records lie one behind the other in the log."""
        groups = self.by_producer.setdefault(producer_id, {})
        kept = groups.setdefault(group_id, GroupOffsets())
        for position, (key, committed) in enumerate(offsets.items()):
            kept.put(key, committed, log_offset + position)

    def end(self, producer_id: int) -> dict[str, GroupOffsets]:
        """The producer's transaction has its marker; answers what it committed, by group."""
        return self.by_producer.pop(producer_id, {})

    def keys(self, group_id: str) -> frozenset[TopicPartition]:
        """Partitions of a group with an offset that is still open."""
        return frozenset(key for offsets in self._of(group_id) for key in offsets)

    def forget(self, group_id: str, keys: Iterable[TopicPartition]) -> None:
        """These partitions are deleted: what was to be committed for them is void."""
        for offsets in self._of(group_id):
            for key in keys:
                offsets.remove(key)

    def _of(self, group_id: str) -> Iterator[GroupOffsets]:
        return (groups[group_id] for groups in self.by_producer.values() if group_id in groups)
