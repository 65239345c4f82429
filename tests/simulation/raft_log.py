"""A metadata log in memory that forgets what was not flushed when its node crashes."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

from broker.raft.messages import EpochEnd
from broker.raft.ports import Flush
from broker.raft.snapshot_id import SnapshotId, SnapshotPart


@dataclass(frozen=True, slots=True)
class Entry:
    """One record: its epoch and its value; control records have no value."""

    epoch: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class MemoryFlush:
    """What was appended when it began, on a log that had been cut so often."""

    end_offset: int
    cuts: int

    def run(self) -> None:
        """The scheduler does it."""


class MemoryLog:
    """A QuorumLog of entries, one record a batch.

    `entries` are all there ever were: those before the start are what the snapshot tells, and
    only to be had by it.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.flushed_count = 0
        self.start_offset = 0
        self.snapshots: list[SnapshotId] = []
        self.installed_count = 0
        self.lost_end = (0, 0)
        self._part = b""
        self._cuts = 0

    @property
    def held_end(self) -> tuple[int, int]:
        return max(self.lost_end, (self.last_epoch, self.end_offset))

    @property
    def start_snapshot_id(self) -> SnapshotId | None:
        return self.snapshots[0] if self.start_offset else None

    @property
    def latest_snapshot_id(self) -> SnapshotId | None:
        return self.snapshots[-1] if self.snapshots else None

    def take_snapshot(self, end_offset: int) -> None:
        """Of the committed state at this offset; with two of them, the log before goes."""
        taken = SnapshotId(end_offset=end_offset, epoch=self.entries[end_offset - 1].epoch)
        if taken not in self.snapshots and end_offset > self.start_offset:
            self.snapshots = [*self.snapshots[-1:], taken]
        if len(self.snapshots) > 1:
            self.start_offset = self.snapshots[0].end_offset

    def read_snapshot(
        self, snapshot: SnapshotId, position: int, *, bytes_max: int
    ) -> SnapshotPart | None:
        if snapshot not in self.snapshots:
            return None
        content = pickle.dumps(self.entries[: snapshot.end_offset])
        step = len(content) // 3 + 1
        return SnapshotPart(size_bytes=len(content), data=content[position : position + step])

    def write_snapshot_part(self, snapshot: SnapshotId, position: int, data: bytes) -> None:
        self._part = self._part[:position] + data

    def install_snapshot(self, snapshot: SnapshotId) -> bool:
        self.entries = pickle.loads(self._part)
        assert len(self.entries) == snapshot.end_offset
        assert self.entries[-1].epoch == snapshot.epoch
        self.start_offset = self.flushed_count = snapshot.end_offset
        self.snapshots = [snapshot]
        self.installed_count += 1
        self._cuts += 1
        return True

    @property
    def end_offset(self) -> int:
        return len(self.entries)

    @property
    def last_epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else 0

    def append(self, values: Sequence[bytes], *, epoch: int) -> int:
        self.entries += [Entry(epoch, value) for value in values]
        return self.end_offset - 1

    def append_leader_change(self, *, epoch: int, leader_id: int, voters: Sequence[int]) -> int:
        self.entries.append(Entry(epoch, None))
        return self.end_offset - 1

    def append_fetched(self, records: bytes) -> None:
        base_offset, entries = pickle.loads(records)
        assert base_offset == self.end_offset
        self.entries += entries

    def read(self, offset: int, *, bytes_max: int) -> bytes:
        assert offset >= self.start_offset
        return pickle.dumps((offset, self.entries[offset : offset + 5]))

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        kept = self.entries[self.start_offset :]
        known = [e.epoch for e in kept if e.epoch <= epoch]
        if not known:
            # As in files: what lies before the start counts as part of the epoch asked for.
            first = epoch if kept and self.start_offset else 0
            return EpochEnd(epoch=first, end_offset=self.start_offset)
        return EpochEnd(epoch=known[-1], end_offset=self.start_offset + len(known))

    def truncate_to(self, offset: int) -> None:
        assert offset >= self.start_offset
        del self.entries[offset:]
        self._cuts += 1
        self.flushed_count = min(self.flushed_count, offset)

    def begin_flush(self) -> "MemoryFlush | None":
        if self.flushed_count == len(self.entries):
            return None
        return MemoryFlush(len(self.entries), self._cuts)

    def finish_flush(self, flush: Flush) -> int:
        assert isinstance(flush, MemoryFlush)
        if flush.cuts == self._cuts:
            self.flushed_count = max(self.flushed_count, flush.end_offset)
        return self.flushed_count

    def crash(self) -> None:
        """Power is gone: only what was flushed is left."""
        del self.entries[self.flushed_count :]

    def lose(self, offset: int) -> None:
        """The disk has damaged the log from an offset on; how far it reached is known."""
        self.lost_end = self.held_end
        del self.entries[offset:]
        self.flushed_count = offset
