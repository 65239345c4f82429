"""How far a log is on the disk, and what is to be forced to it next."""

from broker.clock import Clock
from broker.log.disk.flush import FlushJob
from broker.log.names import INDEX_SUFFIXES, LOG_SUFFIX
from broker.log.segment_chain import SegmentChain


class Durability:
    """The recovery point of one log: everything below it was forced to the disk."""

    def __init__(self, chain: SegmentChain, recovery_point: int, clock: Clock) -> None:
        self.directory = chain.directory
        self.recovery_point = min(recovery_point, chain.end_offset)
        self._chain = chain
        self._clock = clock
        self._flushed_ms = clock.wall_ms()

    def flush(self) -> None:
        """Force everything to the disk, now; blocks for as long as the disk takes.

        :raises StorageError: the disk refused.
        """
        end = self._chain.end_offset
        for segment in self._chain.segments:
            if segment.next_offset > self.recovery_point:
                segment.flush()
        self.recovery_point = end
        self._flushed_ms = self._clock.wall_ms()

    def is_due(self, flush_ms: int) -> bool:
        """Whether the last flush is `flush_ms` ago: the active segment is forced as well."""
        return self._clock.wall_ms() - self._flushed_ms >= flush_ms

    def flush_job(self, *, is_with_active: bool, is_records_only: bool = False) -> FlushJob | None:
        """The sealed segments that were not forced to the disk yet, for another thread to do.

        The active one is among them when asked for; with `is_records_only` without its indexes,
        which are made anew after a crash.
        """
        dirty = [
            segment
            for segment in self._chain.segments
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
            truncations=self._chain.truncations,
            # Of a segment without a record on the disk the name may lack there, too.
            is_with_directory=not is_records_only or dirty[-1].base_offset >= self.recovery_point,
        )

    def handle_flushed(self, job: FlushJob) -> None:
        """Raise the recovery point after a flush job ran."""
        if job.truncations == self._chain.truncations:
            self.recovery_point = max(self.recovery_point, job.offset)
            self._flushed_ms = self._clock.wall_ms()
