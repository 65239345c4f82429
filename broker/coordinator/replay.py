"""Rebuilding groups and offsets from the records of one offsets partition. Pure.

The last value of a key wins and a null value deletes, as in any compacted topic. A key may be
written a million times before compaction comes by, so only the winners are decoded.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from broker.coordinator.consumer.consumer_group import ConsumerGroup
from broker.coordinator.consumer.consumer_records import ConsumerKey
from broker.coordinator.consumer.consumer_replay import ConsumerReplay
from broker.coordinator.errors import RecordFormatError
from broker.coordinator.offsets.committed_offsets import GroupOffsets
from broker.coordinator.offsets.pending_offsets import PendingOffsets
from broker.coordinator.records import (
    GroupSnapshot,
    OffsetKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
)
from broker.protocol.records import Record


@dataclass(frozen=True, slots=True)
class Replayed:
    """Groups and offsets by a partition's records; `unreadable` counts the skipped ones."""

    groups: dict[str, GroupSnapshot] = field(default_factory=dict)
    consumers: dict[str, ConsumerGroup] = field(default_factory=dict)
    offsets: dict[str, GroupOffsets] = field(default_factory=dict)
    pending: PendingOffsets = field(default_factory=PendingOffsets)
    unreadable: int = 0

    def group_ids(self) -> Iterator[str]:
        """Groups that have metadata or an offset."""
        pending = (it for groups in self.pending.by_producer.values() for it in groups)
        yield from dict.fromkeys((*self.groups, *self.consumers, *self.offsets, *pending))


@dataclass(slots=True)
class Replay:
    """The newest record of each key so far; `open` has those of open transactions, by producer."""

    latest: dict[bytes | None, Record] = field(default_factory=dict)
    open: dict[int, dict[bytes | None, Record]] = field(default_factory=dict)

    def apply(self, record: Record, producer_id: int | None = None) -> None:
        """Account for one record; they come in the order of the log."""
        if producer_id is not None:
            self.open.setdefault(producer_id, {})[record.key] = record
        elif record.value is None:
            self.latest.pop(record.key, None)
            for records in self.open.values():
                records.pop(record.key, None)
        else:
            self.latest[record.key] = record

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """A producer's transaction ended: its records count now, or never."""
        for key, record in self.open.pop(producer_id, {}).items():
            newest = self.latest.get(key)
            if is_commit and (newest is None or newest.offset < record.offset):
                self.latest[key] = record

    def finish(self) -> Replayed:
        """Decode what is left; a record that cannot be read is counted and skipped."""
        groups: dict[str, GroupSnapshot] = {}
        offsets: dict[str, GroupOffsets] = {}
        consumers = ConsumerReplay()
        unreadable = _decode_all(self.latest.values(), groups, offsets, consumers)
        pending = PendingOffsets()
        for producer_id, records in self.open.items():
            of_producer = pending.by_producer.setdefault(producer_id, {})
            unreadable += _decode_all(records.values(), {}, of_producer, consumers)
        return Replayed(groups, consumers.finish(), offsets, pending, unreadable)


def _decode_all(
    records: Iterable[Record],
    groups: dict[str, GroupSnapshot],
    offsets: dict[str, GroupOffsets],
    consumers: ConsumerReplay,
) -> int:
    """Fill all; answers how many records cannot be read."""
    unreadable = 0
    for record in records:
        try:
            _decode(record, groups, offsets, consumers)
        except RecordFormatError:
            unreadable += 1
    return unreadable


def _decode(
    record: Record,
    groups: dict[str, GroupSnapshot],
    offsets: dict[str, GroupOffsets],
    consumers: ConsumerReplay,
) -> None:
    if record.key is None or record.value is None:
        raise RecordFormatError("a record without a key")
    key = decode_key(record.key)
    if isinstance(key, OffsetKey):
        committed = decode_offset_value(record.value)
        kept = offsets.setdefault(key.group_id, GroupOffsets())
        kept.put((key.topic, key.partition), committed, record.offset)
    elif isinstance(key, ConsumerKey):
        consumers.apply(key, record.value)
    elif key is not None:
        groups[key] = decode_group_value(key, record.value)
