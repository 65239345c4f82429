"""The metadata log: the partition `__cluster_metadata-0`, as the quorum's core wants it."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from broker.clock import Clock
from broker.log.disk.flush import FlushJob
from broker.log.partition_log import PartitionLog
from broker.protocol.records import (
    NewRecord,
    build_batch,
    iter_batch_headers,
    iter_records,
)
from broker.raft.damaged_log import LostRecords
from broker.raft.messages import EpochEnd
from broker.raft.ports import Flush
from broker.raft.snapshot_files import Snapshot, SnapshotFiles
from broker.raft.snapshot_id import SnapshotId, SnapshotPart

LEADER_CHANGE_TYPE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedBatch:
    """One batch of the log: the values of its records, none for a control batch."""

    values: tuple[bytes, ...]
    base_offset: int
    last_offset: int
    epoch: int


class ForcedLog:
    """How the log gets to the disk."""

    _log: PartitionLog
    _lost: LostRecords

    def begin_flush(self) -> FlushJob | None:
        """fsync of what is not durable by now, for another thread to do."""
        return self._log.durability.flush_job(is_with_active=True, is_records_only=True)

    def finish_flush(self, flush: Flush) -> int:
        """A job has run: where the log is durable up to. A job from before the log was cut or
        replaced tells nothing."""
        assert isinstance(flush, FlushJob)
        self._log.durability.handle_flushed(flush)
        durable_end = min(self._log.recovery_point, self._log.log_end_offset)
        self._lost.note_durable((self._log.epochs.epoch_at(durable_end - 1) or 0, durable_end))
        return durable_end


class MetadataLog(ForcedLog):
    """A QuorumLog on a partition's files.

    The leader, too, appends batches with their final offsets and epoch, so both sides go the
    follower's way through the log: checked for CRC and contiguity, nothing patched.

    Once there are two snapshots, the log starts where the older one ends.
    """

    def __init__(self, log: PartitionLog, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self.snapshots = SnapshotFiles(log.directory)
        self.snapshots.drop_parts()
        self._ids = self.snapshots.ids()
        self._lost = LostRecords(log.directory)
        self._settle()

    def _settle(self) -> None:
        """Bring log and snapshots together again, after a crash between the two.

        A snapshot that the log does not lead to came from a leader: it takes the log's place.
        """
        newest = self._ids[-1] if self._ids else None
        if newest is not None and not self._leads_to(newest):
            whole = self.snapshots.read_latest(offset_max=newest.end_offset)
            if whole is not None and whole.id == newest:
                self._log.truncate_fully_and_start_at(newest.end_offset)
        if self.start_offset > 0:
            self._trim()

    def _leads_to(self, snapshot: SnapshotId) -> bool:
        """Whether the record before the snapshot's end is here, of its epoch; or it is deleted."""
        if snapshot.end_offset <= self.start_offset:
            return True
        end = self.end_offset_for_epoch(snapshot.epoch)
        return end.epoch == snapshot.epoch and end.end_offset >= snapshot.end_offset

    @property
    def start_offset(self) -> int:
        """The first offset kept."""
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._log.log_end_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, deleted ones included; 0 when there never was one."""
        start = self.start_snapshot_id
        return max(self._log.latest_epoch or 0, 0 if start is None else start.epoch)

    @property
    def held_end(self) -> tuple[int, int]:
        """(last epoch, end offset), of before the disk lost records that are not here again."""
        return max(self._lost.end, (self.last_epoch, self.end_offset))

    @property
    def start_snapshot_id(self) -> SnapshotId | None:
        """The snapshot that ends where the log starts; None while the log is whole."""
        return self._ids[0] if self.start_offset > 0 and self._ids else None

    @property
    def latest_snapshot_id(self) -> SnapshotId | None:
        """The newest snapshot."""
        return self._ids[-1] if self._ids else None

    def read_latest_snapshot(self) -> Snapshot | None:
        """The newest whole snapshot."""
        return self.snapshots.read_latest(offset_max=self.end_offset)

    def read_snapshot(
        self, snapshot: SnapshotId, position: int, *, bytes_max: int
    ) -> SnapshotPart | None:
        """Part of a snapshot; None when there is no such snapshot (any more)."""
        return self.snapshots.read_part(snapshot, position, bytes_max=bytes_max)

    def write_snapshot_part(self, snapshot: SnapshotId, position: int, data: bytes) -> None:
        """Keep bytes of a snapshot that is being fetched; position 0 begins it anew."""
        self.snapshots.write_part(snapshot, position, data)

    def install_snapshot(self, snapshot: SnapshotId) -> bool:
        """Let an adopted snapshot replace the whole log; False when it turned out damaged."""
        if snapshot not in self.snapshots.ids():
            return False
        self._log.truncate_fully_and_start_at(snapshot.end_offset)
        self._ids = [snapshot]
        self.snapshots.keep_only(self._ids)
        return True

    async def write_snapshot(self, id_: SnapshotId, values: Iterable[bytes]) -> None:
        """Write a snapshot of our own, and delete what is not needed any more before it."""
        await self.snapshots.write(id_, values, now_ms=self._clock.wall_ms())
        # One that a leader's snapshot overtook meanwhile tells nothing new.
        self._ids = [each for each in self.snapshots.ids() if self.start_offset <= each.end_offset]
        self.snapshots.keep_only(self._ids)
        # A segment goes as a whole, so each snapshot begins one.
        self._log.roll()
        if len(self._ids) > 1:
            self._trim()

    def _trim(self) -> None:
        if self._ids and self._ids[0].end_offset <= self.end_offset:
            self._log.increment_log_start_offset(self._ids[0].end_offset)
        self._log.delete_old_segments(
            high_watermark=self.start_offset, now_ms=self._clock.wall_ms()
        )

    def append(self, values: Sequence[bytes], *, epoch: int) -> int:
        """Append records as one batch; returns the offset of the last."""
        now_ms = self._clock.wall_ms()
        records = [NewRecord(value=value, timestamp=now_ms) for value in values]
        batch = build_batch(records, base_offset=self.end_offset, leader_epoch=epoch)
        self._log.append_as_follower(memoryview(batch))
        return self.end_offset - 1

    def append_leader_change(self, *, epoch: int, leader_id: int, voters: Sequence[int]) -> int:
        """Append Kafka's LeaderChangeMessage control record; returns its offset."""
        record = NewRecord(
            key=struct.pack(">hh", 0, LEADER_CHANGE_TYPE),
            value=encode_leader_change(leader_id, voters),
            timestamp=self._clock.wall_ms(),
        )
        batch = build_batch(
            [record], base_offset=self.end_offset, leader_epoch=epoch, is_control=True
        )
        self._log.append_as_follower(memoryview(batch))
        return self.end_offset - 1

    def append_fetched(self, records: bytes) -> None:
        """Append whole batches as the leader sent them."""
        self._log.append_as_follower(memoryview(records))

    def read(self, offset: int, *, bytes_max: int) -> bytes:
        """Whole batches from `offset` on, at least one."""
        return self._log.read_bytes(offset, max_bytes=bytes_max, max_offset=self.end_offset)

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch not above `epoch` and its end; epoch 0 ending at the start if none."""
        end = self._log.end_offset_for_epoch(epoch)
        if end.epoch < 0 or end.end_offset < 0:
            return EpochEnd(epoch=0, end_offset=self.start_offset)
        return EpochEnd(epoch=end.epoch, end_offset=end.end_offset)

    def truncate_to(self, offset: int) -> None:
        """Drop all records from `offset` on."""
        self._log.truncate_to(offset)

    def batches(self, offset: int, *, max_offset: int, bytes_max: int) -> Iterator[CommittedBatch]:
        """Batches from `offset` up to `max_offset`, some of them; none when there is none."""
        if offset >= max_offset:
            return
        data = self._log.read_bytes(offset, max_bytes=bytes_max, max_offset=max_offset)
        view = memoryview(data)
        for header, position in iter_batch_headers(view):
            batch = view[position : position + header.size_bytes]
            records = () if header.is_control else tuple(iter_records(batch))
            yield CommittedBatch(
                values=tuple(record.value or b"" for record in records),
                base_offset=header.base_offset,
                last_offset=header.last_offset,
                epoch=header.partition_leader_epoch,
            )


def encode_leader_change(leader_id: int, voters: Sequence[int]) -> bytes:
    """LeaderChangeMessage v0: version, leader, voters, granting voters (here: the leader)."""
    out = bytearray(struct.pack(">hi", 0, leader_id))
    for ids in (voters, (leader_id,)):
        out.append(len(ids) + 1)
        for id_ in ids:
            out += struct.pack(">ib", id_, 0)
    out.append(0)
    return bytes(out)
