"""One partition's log on one broker.

Everything happens in one thread. A call that fails loses nothing that was acknowledged: what it
left behind is cut off or finished by the next call that writes, or when the log is opened again.
Source: org.apache.kafka.storage.internals.log.UnifiedLog (Kafka 4.x).
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from broker.clock import Clock, SystemClock
from broker.log.checkpoint.checkpoint_format import (
    decode_partition_metadata,
    encode_partition_metadata,
    read_file,
    write_file,
)
from broker.log.checkpoint.file_writer import FileWriter
from broker.log.cleaner.cleaning_run import Compaction
from broker.log.cleaner.log_cleaning import LogCleaning
from broker.log.config import LogConfig
from broker.log.disk.flush import FlushJob
from broker.log.durability import Durability
from broker.log.errors import OffsetOutOfRangeError, StorageError
from broker.log.load.loader import LoadedLog, LoadRequest, load_log
from broker.log.load.metadata_check import MetadataCheck
from broker.log.load.recovery import RecoveryFinding
from broker.log.log_reader import LogReader
from broker.log.log_validator import (
    AppendInfo,
    AppendPlan,
    LeaderRules,
    plan_as_follower,
    plan_as_leader,
)
from broker.log.names import PARTITION_METADATA_FILE, encode_uuid
from broker.log.producer.log_producers import LogProducers
from broker.log.producer.producer_snapshot import remove_snapshots
from broker.log.retention import DeletedSegments, SegmentAge, plan_deletion
from broker.log.segment.open_files import FilePool
from broker.log.segment.segment import Segment
from broker.log.segment_chain import Incoming, SegmentChain, is_roll_due
from broker.protocol.records import NO_TIMESTAMP

_SYSTEM_CLOCK: Final = SystemClock()


def _nothing() -> None:
    """Nobody has written down where the log starts, or how far it is on the disk."""


class LogName(NamedTuple):
    """Partition of a log; the topic id is all zeros when none was ever given."""

    topic: str
    partition: int
    topic_id: UUID


class PartitionLog(LogReader):
    """The log of one partition on a broker; use `open`.

    Its parts: the chain of its segments, `epochs`, `producers`, `cleaning` and `durability`; all
    but the first may be used directly. `findings`: what recovery cut off when the log was opened.
    """

    def __init__(
        self, request: LoadRequest, loaded: LoadedLog, clock: Clock, name: LogName
    ) -> None:
        super().__init__(loaded.segments, loaded.epochs, request.log_start_offset)
        self.topic, self.partition, self.topic_id = name
        self.directory = request.directory
        self.config = request.config
        """Changed configs of the topic count from the next append or retention on."""
        self.findings: Sequence[RecoveryFinding] = tuple(loaded.findings)
        self.is_abandoned = False
        self.handle_cut: Callable[[], None] = _nothing
        """Called when the log was cut or starts anew: checkpoints may say too much of it."""
        self._clock = clock
        self._chain = SegmentChain(request, loaded.segments, clock)
        self.retired = self._chain.retired
        self.producers = LogProducers(self.directory, loaded.segments, loaded.producers)
        self.cleaning = LogCleaning(self._chain, self.producers)
        self.durability = Durability(self._chain, request.recovery_point, clock)
        self.epochs.truncate_from_start(self.log_start_offset)

    @classmethod
    def open(
        cls,
        directory: str,
        *,
        topic: str,
        partition: int,
        topic_id: UUID | None = None,
        config: LogConfig | None = None,
        clock: Clock = _SYSTEM_CLOCK,
        files: FilePool | None = None,
        writer: FileWriter | None = None,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        is_clean: bool = False,
        metadata_check: MetadataCheck | None = None,
    ) -> "PartitionLog":
        """Open or create. Without `topic_id` the one in partition.metadata is taken; without
        `writer` leader epochs are written down at once.

        :raises DamagedMetadataError: the metadata log lacks what it held.
        :raises StorageError: the disk refused, or the directory holds another topic's data.
        """
        request = LoadRequest(
            directory=directory,
            config=config or LogConfig(),
            files=FilePool() if files is None else files,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            is_clean=is_clean,
            now_ms=clock.wall_ms(),
            writer=writer,
            metadata_check=metadata_check,
        )
        loaded = load_log(request)
        name = LogName(topic, partition, settle_topic_id(directory, topic_id))
        return cls(request, loaded, clock, name)

    def append_as_leader(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        is_from_client: bool = False,
        are_records_checked: bool = True,
        verification: object = None,
    ) -> AppendInfo:
        """Give whole batches their offsets and write them.

        `is_from_client` adds the checks that a broker's own records need not pass: size,
        timestamps, control batches, keys of compacted topics, and, unless `are_records_checked` is
        false, the records' framing. A batch that begins a transaction needs the `verification` that
        `producers.state` gave.

        :raises RecordsRejectedError: a batch is not fit (see errors.py); nothing is written.
        :raises StorageError: the disk refused; nothing is written.
        """
        rules = LeaderRules(
            config=self.config,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            is_from_client=is_from_client,
            are_records_checked=are_records_checked,
            verification=verification,
        )
        plan = plan_as_leader(records, self.log_end_offset, self.producers.state, rules)
        start = self.log_start_offset
        if plan.duplicate is not None:
            first, last = plan.duplicate.base_offset, plan.duplicate.last_offset
            return AppendInfo(first, last, NO_TIMESTAMP, start, duplicate=True)
        self._write(plan, now_ms)
        append_time_ms = now_ms if self.config.is_log_append_time else NO_TIMESTAMP
        first, last = plan.batches[0].base_offset, plan.next_offset - 1
        return AppendInfo(first, last, append_time_ms, start, plan.size_bytes)

    def append_as_follower(self, records: memoryview) -> None:
        """Write whole batches as their leader placed them; a partial one at the end is left out.

        :raises RecordsRejectedError: a batch is damaged or does not follow the log's end.
        :raises StorageError: the disk refused; nothing is written.
        """
        plan = plan_as_follower(records, self.log_end_offset, self.producers.state)
        if plan.batches:
            self._write(plan, self._clock.wall_ms())

    def _write(self, plan: AppendPlan, now_ms: int) -> None:
        self._chain.settle()
        base_offset, last_offset = plan.batches[0].base_offset, plan.next_offset - 1
        incoming = Incoming(last_offset, plan.max_timestamp, plan.size_bytes, now_ms)
        if is_roll_due(self._segments[-1], incoming, self.config):
            self._chain.roll_at(base_offset, self.producers)
        for epoch, start_offset in plan.epochs:
            # Before the bytes: an epoch without records is harmless, the other way round is not.
            if epoch != self.epochs.latest_epoch:
                self.epochs.assign(epoch, start_offset)
        if plan.producers is None:
            self._segments[-1].append(plan.buffers, plan.batches, self.config)
            return
        # Before the bytes: an entry without its marker is harmless, and the next one takes its
        # place; a marker without its entry would let aborted records be seen.
        self._segments[-1].transactions.add(plan.producers.aborted())
        self._segments[-1].append(plan.buffers, plan.batches, self.config)
        plan.producers.commit()

    def roll(self) -> None:
        """Seal the active segment and start the next; an empty one stays.

        :raises StorageError: the disk refused; the old segment stays active.
        """
        if self._chain.active.size_bytes:
            self._chain.roll_at(self.log_end_offset, self.producers)

    def delete_old_segments(self, *, high_watermark: int, now_ms: int) -> DeletedSegments:
        """Retire what retention by log start, size and time no longer keeps, oldest first.

        :raises StorageError: the disk refused.
        """
        segments = self._chain.segments
        deleted = plan_deletion(
            map(_age, segments),
            self.config,
            total_bytes=self.size_bytes,
            log_start_offset=self.log_start_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )
        if not deleted.segments:
            return deleted
        if deleted.segments == len(segments):
            self.roll()
        bases = {segment.base_offset for segment in segments[: deleted.segments]}
        try:
            self._chain.retire_oldest(len(bases), self.config)
        finally:
            self.log_start_offset = max(self.log_start_offset, segments[0].base_offset)
            self.epochs.truncate_from_start(self.log_start_offset)
        remove_snapshots(self.directory, bases)
        return deleted

    def increment_log_start_offset(self, offset: int) -> bool:
        """Records below `offset` are no longer served; False when that was so already.

        :raises OffsetOutOfRangeError: beyond the log's end.
        """
        if offset > self.log_end_offset:
            raise OffsetOutOfRangeError(offset, self.log_start_offset, self.log_end_offset)
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        return True

    def truncate_to(self, offset: int) -> bool:
        """Drop every batch that holds `offset` or more; False when there is none.

        A batch that straddles `offset` goes whole: the log then ends at its base offset.

        :raises StorageError: the disk refused.
        """
        if offset >= self.log_end_offset:
            # An epoch that got no records before its leader fell may stand at the very end.
            self.epochs.truncate_from_end(offset)
            return False
        if offset < self._chain.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        try:
            self._chain.cut_to(offset, self._slot(offset), self.config)
        finally:
            self._end_moved_back()
        return True

    def _end_moved_back(self) -> None:
        known, end = self.producers.forget(), self.log_end_offset
        self.durability.recovery_point = min(self.recovery_point, end)
        self.cleaning.cut_to(end)
        self._chain.truncations += 1
        self.log_start_offset = min(self.log_start_offset, end)
        self.epochs.truncate_from_end(end)
        self.handle_cut()
        self.producers.keep_if_none(known, end)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log then starts and ends at `offset`.

        :raises StorageError: the disk refused.
        """
        self.producers.remove_snapshots()
        try:
            self._chain.start_anew(offset, self.config)
        except StorageError:
            self._end_moved_back()
            raise
        self.log_start_offset = self.durability.recovery_point = offset
        self.cleaning.cut_to(0)
        self.epochs.clear()
        self.producers.start_anew()
        self.handle_cut()

    @property
    def recovery_point(self) -> int:
        """Everything below it was forced to the disk."""
        return self.durability.recovery_point

    def last_stable_offset(self, high_watermark: int) -> int:
        """Up to where the log is replicated and every transaction has ended.

        :raises StorageError: the disk refused.
        """
        stable = self.producers.state.last_stable_offset(high_watermark)
        return min(high_watermark, max(stable, self.log_start_offset))

    def plan_compaction(self, *, stable_offset: int, now_ms: int) -> Compaction | None:
        """A run over everything sealed below `stable_offset`, or None while it is not due.

        :raises StorageError: a segment cannot be read.
        """
        return self.cleaning.plan(
            self.config,
            log_start_offset=self.log_start_offset,
            stable_offset=stable_offset,
            now_ms=now_ms,
        )

    def flush(self) -> None:
        """Force everything to the disk, now; blocks for as long as the disk takes.

        :raises StorageError: the disk refused.
        """
        self.durability.flush()

    def prepare_close(self) -> FlushJob | None:
        """Producers and indexes on disk, nothing to be appended any more.

        The log is closed in order once the job, if there is one, has run.

        :raises StorageError: the disk refused.
        """
        end = self.log_end_offset
        if self.size_bytes and not self.producers.has_snapshot(end):
            self.producers.write_snapshot(end)
        job = self.durability.flush_job(is_with_active=True)
        self._chain.active.seal()
        return job

    def close(self) -> None:
        """A clean end, everything forced to the disk. Do not use the log after it.

        :raises StorageError: the disk refused.
        """
        self.prepare_close()
        self.flush()
        self.abandon()

    def abandon(self) -> None:
        """Give the open files back, leaving everything else; do not use the log after it."""
        self.is_abandoned = True
        for segment in self._chain.segments:
            segment.close()


def _age(segment: Segment) -> SegmentAge:
    timestamp, _ = segment.largest_timestamp()
    return SegmentAge(
        next_offset=segment.next_offset,
        size_bytes=segment.size_bytes,
        largest_timestamp_ms=timestamp if timestamp >= 0 else segment.created_ms,
        is_active=segment.is_active,
    )


def settle_topic_id(directory: str, topic_id: UUID | None) -> UUID:
    """Read or write partition.metadata.

    :raises StorageError: the directory belongs to another topic of the same name.
    """
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    content = read_file(path)
    found = decode_partition_metadata(path, content) if content else None
    if found is None:
        if topic_id is not None:
            # An empty one after a power failure is written again with the id that the image has.
            write_file(path, encode_partition_metadata(topic_id), is_forced=False)
        return topic_id or UUID(int=0)
    if topic_id is not None and topic_id != found:
        raise StorageError(
            f"{directory} holds another topic's data",
            f"its topic id is {encode_uuid(found)}, not {encode_uuid(topic_id)}: a topic of this "
            "name was deleted and created again",
            "Keep the directory: its records may be the only ones. Put it back where it came from; "
            "without it here, the broker fetches the partition from its other replicas",
        )
    return found
