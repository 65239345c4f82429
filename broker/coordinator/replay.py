"""Rebuilding groups and offsets from the records of one offsets partition. Pure.

The last value of a key wins and a null value deletes, as in any compacted topic. A key may be
written a million times before compaction comes by, so only the winners are decoded.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from broker.coordinator.errors import RecordFormatError
from broker.coordinator.offsets.committed_offsets import GroupOffsets
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
    offsets: dict[str, GroupOffsets] = field(default_factory=dict)
    unreadable: int = 0

    def group_ids(self) -> Iterator[str]:
        """Groups that have metadata or an offset."""
        yield from self.groups
        yield from (group_id for group_id in self.offsets if group_id not in self.groups)


@dataclass(slots=True)
class Replay:
    """The newest record of each key so far."""

    latest: dict[bytes | None, Record] = field(default_factory=dict)

    def apply(self, record: Record) -> None:
        """Account for one record; they come in the order of the log."""
        if record.value is None:
            self.latest.pop(record.key, None)
        else:
            self.latest[record.key] = record

    def finish(self) -> Replayed:
        """Decode what is left; a record that cannot be read is counted and skipped."""
        groups: dict[str, GroupSnapshot] = {}
        offsets: dict[str, GroupOffsets] = {}
        unreadable = 0
        for record in self.latest.values():
            try:
                _decode(record, groups, offsets)
            except RecordFormatError:
                unreadable += 1
        return Replayed(groups, offsets, unreadable)


def _decode(
    record: Record, groups: dict[str, GroupSnapshot], offsets: dict[str, GroupOffsets]
) -> None:
    if record.key is None or record.value is None:
        raise RecordFormatError("a record without a key")
    key = decode_key(record.key)
    if isinstance(key, OffsetKey):
        committed = decode_offset_value(record.value)
        kept = offsets.setdefault(key.group_id, GroupOffsets())
        kept.put((key.topic, key.partition), committed, record.offset)
    elif key is not None:
        groups[key] = decode_group_value(key, record.value)
