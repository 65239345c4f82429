"""The segments of a log through their life: made, rolled, cut, retired.

Files leave in two steps: renamed with the suffix `.deleted` at once, removed after
file.delete.delay.ms, so that nothing that is still being sent disappears.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from broker.clock import Clock
from broker.log.config import LogConfig
from broker.log.disk.delayed_delete import RetiredFiles
from broker.log.errors import StorageError
from broker.log.load.loader import LoadRequest, new_segment
from broker.log.names import DELETED_SUFFIX
from broker.log.producer.log_producers import LogProducers
from broker.log.segment.offset_check import RELATIVE_OFFSET_MAX
from broker.log.segment.segment import Segment


class Incoming(NamedTuple):
    """Measures of an append before it is written; times in ms since the epoch."""

    last_offset: int
    max_timestamp: int
    size_bytes: int
    now_ms: int


class SegmentChain:
    """Segments in rising order, the last one active.

    `retired`: files on their way out. `truncations` counts how often the log was cut.
    A new segment that could not take its place is removed before the next append: a log that
    grew past such a file would end there when it is opened again.
    """

    def __init__(self, request: LoadRequest, segments: list[Segment], clock: Clock) -> None:
        self.directory = request.directory
        self.segments = segments
        self.retired = RetiredFiles()
        self.truncations = 0
        self._request = request
        self._clock = clock
        self._stray: Segment | None = None

    @property
    def active(self) -> Segment:
        """The one that is appended to."""
        return self.segments[-1]

    @property
    def end_offset(self) -> int:
        """The offset that the next record will get."""
        return self.segments[-1].next_offset

    def settle(self) -> None:
        """Remove a new segment that could not be used.

        :raises StorageError: the disk refused; nothing may be appended yet.
        """
        if self._stray is not None:
            self._stray.remove()
            self._stray = None

    def roll_at(self, base_offset: int, producers: LogProducers) -> None:
        """Seal the active segment and start the next.

        :raises StorageError: the disk refused; the old segment stays active.
        """
        following = self._make(base_offset)
        if not self.active.size_bytes:
            # Only a replicated batch far behind the end comes here: the empty one has no use.
            self.active.remove()
            self.segments[-1] = following
            return
        try:
            producers.write_snapshot(base_offset)
            self.active.seal()
        except StorageError:
            self._discard(following)
            raise
        self.segments.append(following)

    def retire_oldest(self, count: int, config: LogConfig) -> None:
        """Retire the first segments, one after the other.

        :raises StorageError: the disk refused; those before are gone.
        """
        for _ in range(count):
            self.retire(self.segments[:1], config)
            del self.segments[0]

    def cut_to(self, offset: int, slot: int, config: LogConfig) -> None:
        """Drop every batch that holds `offset` or more, `slot` being the segment that holds it.

        :raises StorageError: the disk refused.
        """
        while len(self.segments) > slot + 1:
            self.retire(self.segments[-1:], config)
            self.segments.pop()
        if not self.active.is_active:
            self.active.activate()
        self.active.truncate_to(offset)

    def start_anew(self, offset: int, config: LogConfig) -> None:
        """Drop everything; the log then starts and ends at `offset`.

        :raises StorageError: the disk refused; what is left can be read, and started anew again.
        """
        bases = [segment.base_offset for segment in self.segments]
        if offset in bases:
            slot = bases.index(offset)
            self.cut_to(offset, slot, config)
            self.retire_oldest(slot, config)
        else:
            following = self._make(offset)
            try:
                while self.segments:
                    self.retire(self.segments[-1:], config)
                    self.segments.pop()
            except StorageError:
                self._discard(following)
                raise
            self.segments.append(following)
        self.truncations += 1

    def found(self, base_offset: int, next_offset: int) -> Segment:
        """A sealed segment that lies in the directory."""
        return Segment.found(
            self.directory, base_offset, files=self._request.files, next_offset=next_offset
        )

    def retire(self, segments: Iterable[Segment], config: LogConfig) -> None:
        """Rename the files of segments; they are removed later."""
        deadline_ms = self._clock.wall_ms() + config.file_delete_delay_ms
        for segment in segments:
            self.retired.add(deadline_ms, segment.remove(DELETED_SUFFIX))

    def _make(self, base_offset: int) -> Segment:
        self.settle()
        request = replace(self._request, now_ms=self._clock.wall_ms())
        try:
            return new_segment(request, base_offset)
        except StorageError:
            self._discard(
                Segment(self.directory, base_offset, files=self._request.files, created_ms=0)
            )
            raise

    def _discard(self, segment: Segment) -> None:
        self._stray = segment
        self.settle()


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
