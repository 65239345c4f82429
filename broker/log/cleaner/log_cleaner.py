"""Which log is compacted next, and the thread that does it.

Every log.cleaner.backoff.ms the compacted logs of the node are looked over together; the one
with the largest dirty share is cleaned, one group of segments at a time. The thread takes at most
a quarter of a core, a batch or some milliseconds at a time: it shares Python's lock with the event
loop.
"""

import logging
import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final
from weakref import WeakSet

from broker.log.checkpoint.checkpoint_format import TopicPartition
from broker.log.cleaner.cleaning_policy import SealedSegment
from broker.log.cleaner.cleaning_run import Compaction
from broker.log.errors import CorruptSegmentError, StorageError, storage_error
from broker.log.partition_log import PartitionLog
from broker.log.segment.segment_swap import drop_cleaned
from broker.metadata.topic_names import METADATA_TOPIC

_logger: Final = logging.getLogger(__name__)
CLEANER_BACKOFF_MS: Final = 15_000
_SLICE_S: Final = 0.003
_REST_PER_WORK: Final = 3.0


class CompactionStopped(Exception):
    """The node stops; what was begun is thrown away."""


class Pace:
    """Called between batches by the thread: works a slice, rests three times as long as it took."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._since = time.monotonic()

    def __call__(self) -> None:
        """Rest when a slice is used up.

        :raises CompactionStopped: the node stops.
        """
        worked_s = time.monotonic() - self._since
        if worked_s < _SLICE_S:
            return
        if self._stopping.wait(worked_s * _REST_PER_WORK):
            raise CompactionStopped
        self._since = time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanableLogs:
    """The logs of a node, with the offsets up to which each may be cleaned; wall time in ms."""

    logs: Mapping[TopicPartition, PartitionLog]
    high_watermarks: Mapping[TopicPartition, int]
    recovery_points: Mapping[TopicPartition, int]
    now_ms: int

    def plan(self, key: TopicPartition, log: PartitionLog) -> Compaction | None:
        """A run over one log, if it is due.

        Only what is known to be on the disk is cleaned: after a crash recovery then never meets
        a cleaned segment, whose end may lie before the next one's start.
        """
        stable_offset = min(
            self.high_watermarks.get(key, 0),
            self.recovery_points.get(key, 0),
        )
        return log.plan_compaction(stable_offset=stable_offset, now_ms=self.now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    log: PartitionLog
    compaction: Compaction
    future: Future[tuple[SealedSegment, ...] | None]


class Cleaner:
    """One run at a time; `tick` from the event loop, often, step by step."""

    def __init__(self) -> None:
        self.is_enabled = True
        self.backoff_ms = CLEANER_BACKOFF_MS
        self._thread: ThreadPoolExecutor | None = None
        self._stopping = threading.Event()
        self._run: _Run | None = None
        self._due_ms = 0
        self._damaged: WeakSet[PartitionLog] = WeakSet()

    def tick(
        self, now_ms: int, look: Callable[[], Generator[None, None, CleanableLogs]]
    ) -> Generator[None, None, bool]:
        """Go on with the run, or begin one when it is time (`now_ms` is monotonic).

        True when a log has become clean up to a new offset, which is to be written down.
        """
        if self._run is not None:
            return self._run.future.done() and self._advance(self._run, now_ms)
        if self.is_enabled and now_ms >= self._due_ms:
            self._due_ms = now_ms + self.backoff_ms
            cleanable = yield from look()
            yield from self._begin(cleanable)
        return False

    def stop(self) -> None:
        """End what runs, and the thread."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None
        self._run = None

    def _begin(self, cleanable: CleanableLogs) -> Generator[None, None, None]:
        found: list[tuple[float, PartitionLog, Compaction]] = []
        for key, log in list(cleanable.logs.items()):
            yield
            if log.is_abandoned or not log.config.is_compacted or log.topic == METADATA_TOPIC:
                continue
            if log in self._damaged:
                continue
            try:
                compaction = cleanable.plan(key, log)
            except StorageError as error:
                self._give_up(log, error)
                continue
            if compaction is not None:
                found.append((compaction.plan.dirty_share, log, compaction))
        if found:
            _, log, compaction = max(found, key=lambda each: each[0])
            self._submit(log, compaction)

    def _submit(self, log: PartitionLog, compaction: Compaction) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cleaner")
        future = self._thread.submit(compaction.next_group, Pace(self._stopping))
        self._run = _Run(log=log, compaction=compaction, future=future)

    def _advance(self, run: _Run, now_ms: int) -> bool:
        self._run = None
        if run.log.is_abandoned:
            _drop(run)
            return False
        try:
            group = run.future.result()
            if group is None:
                return self._finish(run)
            if run.log.cleaning.swap_in(group, run.compaction.settings):
                self._submit(run.log, run.compaction)
        except FileNotFoundError:
            # Deleted, cut or retained away meanwhile; if it is still there, its turn comes again.
            return False
        except CorruptSegmentError as error:
            self._give_up(run.log, error)
        except StorageError as error:
            _logger.error("%s", error)
        except OSError as error:
            _logger.error("%s", storage_error(f"Compacting {run.log.directory} failed", error))
        return False

    def _finish(self, run: _Run) -> bool:
        stats, log = run.compaction.stats, run.log
        if log.cleaning.cleaned_to >= run.compaction.end_offset:
            return False
        log.cleaning.cleaned_to = run.compaction.end_offset
        # Another log may wait: the next look is at once.
        self._due_ms = 0
        _logger.info(
            "%s-%d: compacted up to offset %d, %d segments of %d bytes became %d of %d bytes",
            log.topic,
            log.partition,
            log.cleaning.cleaned_to,
            stats.segments_before,
            stats.bytes_before,
            stats.segments_after,
            stats.bytes_after,
        )
        return True

    def _give_up(self, log: PartitionLog, error: StorageError) -> None:
        self._damaged.add(log)
        _logger.error(
            "%s-%d is not compacted any more until this broker starts again: %s",
            log.topic,
            log.partition,
            error,
        )


def _drop(run: _Run) -> None:
    """End the run of a log that went meanwhile. It worked by names, which may be another log's by
    now: what it complains of says nothing, and what it made must not lie there."""
    group = None if run.future.exception() else run.future.result()
    if group is None:
        return
    try:
        drop_cleaned(run.log.directory, group[0].base_offset)
    except OSError as error:
        _logger.error("%s", storage_error(f"Compacting {run.log.directory} failed", error))
