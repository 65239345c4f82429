"""The segments of a log through their life: rolled, flushed, retired, removed.

Files leave in two steps: renamed with the suffix `.deleted` at once, removed after
file.delete.delay.ms, so that nothing that is still being sent disappears.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from broker.clock import Clock
from broker.log.config import LogConfig
from broker.log.disk.delayed_delete import RetiredFiles
from broker.log.disk.flush import FlushJob
from broker.log.errors import OffsetOutOfRangeError, StorageError
from broker.log.load.loader import LoadedLog, LoadRequest, load_producers, new_segment
from broker.log.load.recovery import RecoveryFinding
from broker.log.log_reader import LogReader
from broker.log.names import DELETED_SUFFIX, INDEX_SUFFIXES, LOG_SUFFIX
from broker.log.producer.producer_snapshot import list_snapshots, remove_snapshots, write_snapshot
from broker.log.producer.producer_state import ProducerState
from broker.log.retention import DeletedSegments, SegmentAge, plan_deletion
from broker.log.segment.segment import RELATIVE_OFFSET_MAX, Segment


class LogName(NamedTuple):
    """Partition of a log; the topic id is all zeros when none was ever given."""

    topic: str
    partition: int
    topic_id: UUID


class Incoming(NamedTuple):
    """Measures of an append before it is written; times in ms since the epoch."""

    last_offset: int
    max_timestamp: int
    size_bytes: int
    now_ms: int


class LogStorage(LogReader):
    """Everything of a log but appends and truncations.

    `recovery_point`: everything below it was forced to the disk. `findings`: what recovery cut
    off when the log was opened. `retired`: files on their way out.
    """

    def __init__(
        self, request: LoadRequest, loaded: LoadedLog, clock: Clock, name: LogName
    ) -> None:
        super().__init__(loaded.segments, loaded.epochs, request.log_start_offset)
        self.topic, self.partition, self.topic_id = name
        self.directory = request.directory
        self.config = request.config
        self.findings: Sequence[RecoveryFinding] = tuple(loaded.findings)
        self.recovery_point = min(request.recovery_point, self.log_end_offset)
        self._request = request
        self._clock = clock
        self._loaded_producers: ProducerState | None = loaded.producers
        self.retired = RetiredFiles()
        self.is_abandoned = False
        self._maker = SegmentMaker(request, clock)
        self._truncations = 0
        self._flushed_ms = request.now_ms
        self._epochs.truncate_from_start(self.log_start_offset)

    @property
    def _producers(self) -> ProducerState:
        """Producers up to the log's end; read anew after a truncation.

        :raises StorageError: the disk refused.
        """
        if self._loaded_producers is None:
            snapshots = list_snapshots(self.directory)
            self._loaded_producers = load_producers(self.directory, snapshots, self._segments)
        return self._loaded_producers

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction starts; read_committed consumers stop there."""
        return self._producers.first_unstable_offset()

    def update_config(self, config: LogConfig) -> None:
        """Take over changed topic configs; they count from the next append or retention on."""
        self.config = config

    def roll(self) -> None:
        """Seal the active segment and start the next; an empty one stays.

        :raises StorageError: the disk refused; the old segment stays active.
        """
        if self._segments[-1].size_bytes:
            self._roll_at(self.log_end_offset)

    def _roll_at(self, base_offset: int) -> None:
        active = self._segments[-1]
        following = self._maker.make(base_offset)
        if not active.size_bytes:
            # Only a replicated batch far behind the end comes here: the empty one has no use.
            active.remove()
            self._segments[-1] = following
            return
        try:
            write_snapshot(self.directory, base_offset, self._producers)
            active.seal()
        except StorageError:
            self._maker.discard(following)
            raise
        self._segments.append(following)

    def delete_old_segments(self, *, high_watermark: int, now_ms: int) -> DeletedSegments:
        """Retire what retention by log start, size and time no longer keeps, oldest first.

        :raises StorageError: the disk refused.
        """
        deleted = plan_deletion(
            map(_age, self._segments),
            self.config,
            total_bytes=self.size_bytes,
            log_start_offset=self.log_start_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )
        if not deleted.segments:
            return deleted
        if deleted.segments == len(self._segments):
            self.roll()
        bases = {segment.base_offset for segment in self._segments[: deleted.segments]}
        try:
            for _ in bases:
                self._retire(self._segments[:1])
                del self._segments[0]
        finally:
            self._move_start(max(self.log_start_offset, self._segments[0].base_offset))
        remove_snapshots(self.directory, bases)
        return deleted

    def increment_log_start_offset(self, offset: int) -> bool:
        """Records below `offset` are no longer served; False when that was so already.

        :raises OffsetOutOfRangeError: beyond the log's end.
        :raises StorageError: the disk refused.
        """
        if offset > self.log_end_offset:
            raise OffsetOutOfRangeError(offset, self.log_start_offset, self.log_end_offset)
        if offset <= self.log_start_offset:
            return False
        self._move_start(offset)
        return True

    def _move_start(self, offset: int) -> None:
        self.log_start_offset = offset
        self._epochs.truncate_from_start(offset)

    def expire_producers(self, *, now_ms: int) -> int:
        """Forget producers silent for producer.id.expiration.ms; answers how many."""
        return self._producers.expire(before_ms=now_ms - self.config.producer_id_expiration_ms)

    def flush(self) -> None:
        """Force everything to the disk, now; blocks for as long as the disk takes.

        :raises StorageError: the disk refused.
        """
        end = self.log_end_offset
        for segment in self._segments:
            if segment.next_offset > self.recovery_point:
                segment.flush()
        self.recovery_point = end
        self._flushed_ms = self._clock.wall_ms()

    def flush_job(
        self, *, is_with_active: bool = False, is_records_only: bool = False
    ) -> FlushJob | None:
        """The sealed segments that were not forced to the disk yet, for another thread to do.

        The active one is among them when asked for, and every flush.ms; with `is_records_only`
        without its indexes, which are made anew after a crash.
        """
        is_due = self._clock.wall_ms() - self._flushed_ms >= self.config.flush_ms
        is_with_active = is_with_active or is_due
        dirty = [
            segment
            for segment in self._segments
            if segment.next_offset > self.recovery_point
            and (is_with_active or not segment.is_active)
        ]
        if not dirty:
            return None
        paths = []
        for segment in dirty:
            is_spared = is_records_only and segment.is_active
            stem = segment.path.removesuffix(LOG_SUFFIX)
            suffixes = (LOG_SUFFIX,) if is_spared else (LOG_SUFFIX, *INDEX_SUFFIXES)
            paths += [stem + suffix for suffix in suffixes]
        return FlushJob(
            paths=tuple(paths),
            offset=dirty[-1].next_offset,
            truncations=self._truncations,
            # Of a segment without a record on the disk the name may lack there, too.
            is_with_directory=not is_records_only or dirty[-1].base_offset >= self.recovery_point,
        )

    def handle_flushed(self, job: FlushJob) -> None:
        """Raise the recovery point after a flush job ran."""
        if job.truncations == self._truncations:
            self.recovery_point = max(self.recovery_point, job.offset)
            self._flushed_ms = self._clock.wall_ms()

    def prepare_close(self) -> FlushJob | None:
        """Producers and indexes on disk, nothing to be appended any more.

        The log is closed in order once the job, if there is one, has run.

        :raises StorageError: the disk refused.
        """
        end = self.log_end_offset
        if self.size_bytes and end not in list_snapshots(self.directory):
            write_snapshot(self.directory, end, self._producers)
        job = self.flush_job(is_with_active=True)
        self._segments[-1].seal()
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
        for segment in self._segments:
            segment.close()

    def _retire(self, segments: Iterable[Segment]) -> None:
        deadline_ms = self._clock.wall_ms() + self.config.file_delete_delay_ms
        for segment in segments:
            self.retired.add(deadline_ms, segment.remove(DELETED_SUFFIX))


class SegmentMaker:
    """Makes new segments of a log, and removes one that could not take its place.

    A log that grew past such a file would end there when it is opened again.
    """

    def __init__(self, request: LoadRequest, clock: Clock) -> None:
        self._request = request
        self._clock = clock
        self._stray: Segment | None = None

    def make(self, base_offset: int) -> Segment:
        """An empty active segment, on disk.

        :raises StorageError: the disk refused.
        """
        self.settle()
        request = replace(self._request, now_ms=self._clock.wall_ms())
        try:
            return new_segment(request, base_offset)
        except StorageError:
            files = self._request.files
            self.discard(Segment(self._request.directory, base_offset, files=files, created_ms=0))
            raise

    def discard(self, segment: Segment) -> None:
        """Remove a segment that is not to be used, now or before the next append.

        :raises StorageError: the disk refused.
        """
        self._stray = segment
        self.settle()

    def settle(self) -> None:
        """Remove what `discard` could not.

        :raises StorageError: the disk refused; nothing may be appended yet.
        """
        if self._stray is not None:
            self._stray.remove()
            self._stray = None


def _age(segment: Segment) -> SegmentAge:
    timestamp, _ = segment.largest_timestamp()
    return SegmentAge(
        next_offset=segment.next_offset,
        size_bytes=segment.size_bytes,
        largest_timestamp_ms=timestamp if timestamp >= 0 else segment.created_ms,
        is_active=segment.is_active,
    )


def is_roll_due(active: Segment, incoming: Incoming, config: LogConfig) -> bool:
    """Whether a batch must start a new segment: by offset, size, time or a full index."""
    if incoming.last_offset - active.base_offset > RELATIVE_OFFSET_MAX:
        return True
    if not active.size_bytes:
        return False
    if active.size_bytes > config.segment_bytes - incoming.size_bytes:
        return True
    first_timestamp = active.first_timestamp()
    if first_timestamp is None or first_timestamp < 0:
        age_ms = incoming.now_ms - active.created_ms
    else:
        age_ms = incoming.max_timestamp - first_timestamp
    age_ms_max = config.roll_ms - config.roll_jitter_ms(active.path)
    return age_ms > age_ms_max or active.indexes.is_full(config)
