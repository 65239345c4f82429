"""The part of a log that compaction deals with: what is clean, what to clean, what to swap."""

from collections.abc import Callable

from broker.clock import Clock
from broker.log.cleaner.cleaning_policy import (
    CleaningBounds,
    SealedSegment,
    SegmentTimes,
    plan_cleaning,
)
from broker.log.cleaner.cleaning_run import Compaction, CompactionSettings
from broker.log.config import INT64_MAX
from broker.log.errors import storage_error
from broker.log.load.loader import LoadedLog, LoadRequest
from broker.log.log_storage import LogName, LogStorage
from broker.log.producer.producer_snapshot import remove_snapshots
from broker.log.segment.segment import Segment
from broker.log.segment.segment_swap import commit_cleaned, drop_cleaned, finish_swap
from broker.protocol.records import NO_TIMESTAMP


def _nothing() -> None:
    """Nobody has written down how far the log is clean."""


class CompactedLog(LogStorage):
    """A log that can be compacted; below `cleaned_to` every key occurs once."""

    def __init__(
        self, request: LoadRequest, loaded: LoadedLog, clock: Clock, name: LogName
    ) -> None:
        super().__init__(request, loaded, clock, name)
        self.cleaned_to = 0
        self.handle_uncleaned: Callable[[], None] = _nothing
        """Called when the log was cut below `cleaned_to`: what was written of that must go."""

    def take_cleaned_to(self, offset: int) -> bool:
        """Go by a checkpoint; False for one from before this log was made anew: only what is
        sealed is ever cleaned."""
        is_true = offset <= self._segments[-1].base_offset
        self.cleaned_to = offset if is_true else 0
        return is_true

    def _cut_cleaned(self, offset: int) -> None:
        if offset < self.cleaned_to:
            self.cleaned_to = offset
            self.handle_uncleaned()

    def plan_compaction(self, *, stable_offset: int, now_ms: int) -> Compaction | None:
        """A run over everything sealed below `stable_offset`, or None while it is not due.

        :raises StorageError: a segment cannot be read.
        """
        active = self._segments[-1]
        if not self.config.is_compacted or len(self._segments) == 1:
            return None
        if self.cleaned_to > active.base_offset:
            # The log was cut back, and what was sealed is written to again.
            self._cut_cleaned(0)
        if self.cleaned_to == active.base_offset:
            return None
        unstable = self.first_unstable_offset
        if unstable is not None:
            stable_offset = min(stable_offset, unstable)
        bounds = CleaningBounds(
            first_dirty_offset=max(self.cleaned_to, self.log_start_offset),
            first_unstable_offset=stable_offset,
            now_ms=now_ms,
        )
        ends = [segment.base_offset for segment in self._segments[1:]]
        sealed = [
            (_sealed(segment, end), self._times(segment, end))
            for segment, end in zip(self._segments, ends, strict=False)
        ]
        plan = plan_cleaning(sealed, self.config, bounds)
        if plan is None:
            return None
        settings = CompactionSettings(
            directory=self.directory,
            config=self.config,
            last_offsets={
                entry.producer_id: entry.batches[-1].last_offset
                for entry in self._producers.entries.values()
                if entry.batches
            },
            truncations=self._truncations,
            now_ms=now_ms,
        )
        return Compaction(plan=plan, settings=settings)

    def _times(self, segment: Segment, end: int) -> SegmentTimes:
        """Looked up only where a lag is configured: it costs reading files."""
        config = self.config
        first_ms = largest_ms = NO_TIMESTAMP
        if end > self.cleaned_to and config.max_compaction_lag_ms < INT64_MAX:
            first = segment.first_timestamp()
            first_ms = NO_TIMESTAMP if first is None else first
        if end > self.cleaned_to and config.min_compaction_lag_ms > 0:
            largest_ms = segment.largest_timestamp()[0]
        return SegmentTimes(first_ms=first_ms, largest_ms=largest_ms)

    def swap_in(self, group: tuple[SealedSegment, ...], settings: CompactionSettings) -> bool:
        """Put the cleaned segment of a group in its place; False when the log has changed.

        :raises StorageError: the disk refused. What had begun is finished at the next start.
        """
        base_offset = group[0].base_offset
        slots = [s for s, each in enumerate(self._segments[:-1]) if each.base_offset == base_offset]
        old = self._segments[slots[0] : slots[0] + len(group)] if slots else []
        is_same = (
            settings.truncations == self._truncations
            and [s.base_offset for s in old] == [s.base_offset for s in group]
            and not any(segment.is_active for segment in old)
        )
        try:
            if not is_same:
                drop_cleaned(self.directory, base_offset)
                return False
            commit_cleaned(self.directory, base_offset)
            self._retire(old)
            finish_swap(self.directory, base_offset)
            cleaned = Segment.found(
                self.directory,
                base_offset,
                files=self._request.files,
                next_offset=group[-1].next_offset,
            )
        except OSError as error:
            raise storage_error(f"Compacting {self.directory} failed", error) from error
        self._segments[slots[0] : slots[0] + len(group)] = [cleaned]
        remove_snapshots(self.directory, {segment.base_offset for segment in old[1:]})
        return True


def _sealed(segment: Segment, next_offset: int) -> SealedSegment:
    return SealedSegment(
        path=segment.path,
        base_offset=segment.base_offset,
        next_offset=next_offset,
        size_bytes=segment.size_bytes,
    )
