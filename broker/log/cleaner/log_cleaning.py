"""The cleaning of one log: what is clean, what to clean, what to swap."""

from collections.abc import Callable

from broker.log.cleaner.cleaning_policy import (
    CleaningBounds,
    SealedSegment,
    SegmentTimes,
    plan_cleaning,
)
from broker.log.cleaner.cleaning_run import Compaction, CompactionSettings
from broker.log.config import INT64_MAX, LogConfig
from broker.log.errors import storage_error
from broker.log.producer.log_producers import LogProducers
from broker.log.producer.producer_snapshot import remove_snapshots
from broker.log.segment.segment import Segment
from broker.log.segment.segment_swap import commit_cleaned, drop_cleaned, finish_swap
from broker.log.segment.transaction_index import collect_aborted
from broker.log.segment_chain import SegmentChain
from broker.protocol.records import NO_TIMESTAMP


def _nothing() -> None:
    """Nobody has written down how far the log is clean."""


class LogCleaning:
    """How far a log is clean; below `cleaned_to` every key occurs once."""

    def __init__(self, chain: SegmentChain, producers: LogProducers) -> None:
        self.cleaned_to = 0
        self.on_cut: Callable[[], None] = _nothing
        """Called when the log was cut below `cleaned_to`: what was written of that must go."""
        self._chain = chain
        self._producers = producers

    def take_checkpoint(self, offset: int) -> bool:
        """Go by a checkpoint; False for one from before this log was made anew: only what is
        sealed is ever cleaned."""
        is_true = offset <= self._chain.active.base_offset
        self.cleaned_to = offset if is_true else 0
        return is_true

    def cut_to(self, offset: int) -> None:
        """The log was cut at an offset."""
        if offset < self.cleaned_to:
            self.cleaned_to = offset
            self.on_cut()

    def plan(
        self, config: LogConfig, *, log_start_offset: int, stable_offset: int, now_ms: int
    ) -> Compaction | None:
        """A run over everything sealed below `stable_offset`, or None while it is not due.

        :raises StorageError: a segment cannot be read.
        """
        active = self._chain.active
        if not config.is_compacted or len(self._chain.segments) == 1:
            return None
        if self.cleaned_to > active.base_offset:
            # The log was cut back, and what was sealed is written to again.
            self.cut_to(0)
        if self.cleaned_to == active.base_offset:
            return None
        bounds = CleaningBounds(
            first_dirty_offset=max(self.cleaned_to, log_start_offset),
            first_unstable_offset=self._producers.state.last_stable_offset(stable_offset),
            now_ms=now_ms,
        )
        ends = [segment.base_offset for segment in self._chain.segments[1:]]
        sealed = [
            (_sealed(segment, end), self._times(segment, end, config))
            for segment, end in zip(self._chain.segments, ends, strict=False)
        ]
        plan = plan_cleaning(sealed, config, bounds)
        if plan is None:
            return None
        settings = CompactionSettings(
            directory=self._chain.directory,
            config=config,
            last_offsets=self._producers.state.last_offsets(),
            truncations=self._chain.truncations,
            now_ms=now_ms,
            aborted=collect_aborted(
                self._chain.segments, self._chain.segments[0].base_offset, plan.end_offset
            ),
        )
        return Compaction(plan=plan, settings=settings)

    def _times(self, segment: Segment, end: int, config: LogConfig) -> SegmentTimes:
        """Looked up only where a lag is configured: it costs reading files."""
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
        chain, directory = self._chain, self._chain.directory
        sealed = chain.segments[:-1]
        slot = next((s for s, each in enumerate(sealed) if each.base_offset == base_offset), None)
        old = [] if slot is None else chain.segments[slot : slot + len(group)]
        is_same = (
            settings.truncations == chain.truncations
            and [s.base_offset for s in old] == [s.base_offset for s in group]
            and not any(segment.is_active for segment in old)
        )
        try:
            if slot is None or not is_same:
                drop_cleaned(directory, base_offset)
                return False
            commit_cleaned(directory, base_offset)
            chain.retire(old, settings.config)
            finish_swap(directory, base_offset)
            cleaned = chain.found(base_offset, group[-1].next_offset)
        except OSError as error:
            raise storage_error(f"Compacting {directory} failed", error) from error
        chain.segments[slot : slot + len(group)] = [cleaned]
        remove_snapshots(directory, {segment.base_offset for segment in old[1:]})
        return True


def _sealed(segment: Segment, next_offset: int) -> SealedSegment:
    return SealedSegment(
        path=segment.path,
        base_offset=segment.base_offset,
        next_offset=next_offset,
        size_bytes=segment.size_bytes,
    )
