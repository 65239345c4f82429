"""When the log of a partition ended where: what time lag needs of lag that is older than we are.

ListOffsets by time answers the first record at or after a moment, and that record's timestamp;
it needs no more than the right to describe. Of a partition with old lag we ask for such moments
until the committed offset lies between two that are close together:

    asked for 10:30 -> offset 700, written at 10:42
    so the log ended at 700 from 10:30 (at the latest) to 10:42, when record 700 came

Both are kept as points (ms, end offset). Whatever is asked, points go up in both (a later moment
has no smaller first record), also where timestamps of records are in disorder. Pure.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from control.collector.image import PartitionState
from control.model.ids import TopicPartition

POINTS_MAX: Final = 48
"""Kept per partition."""
POINTS_TOLD_MAX: Final = 8
"""In a row of samples: what the metrics job takes."""
CLOSE_MS: Final = 1_000
CLOSE_SHARE: Final = 0.01
"""Points this close, in time or as a share of their age, are not parted further."""
BEGINNING_MS: Final = 0

Point = tuple[int, int]
"""Milliseconds since the epoch, and where the log ended then."""


@dataclass(slots=True)
class _Log:
    first_end: int
    """Where the log ended when it was first seen: what came later has been seen coming."""
    points: list[Point]
    start: int = 0
    asked: int = 0
    has_beginning: bool = False


class LogTimes:
    """Points of the partitions that one collector watches."""

    def __init__(self) -> None:
        self._logs: dict[TopicPartition, _Log] = {}

    def see(self, state: PartitionState) -> None:
        """A partition whose offsets were just read."""
        end, start = state.high_watermark, state.log_start_offset
        if end is None:
            return
        log = self._logs.get(state.key)
        if log is None or end < log.first_end:  # new, or deleted and created again
            self._logs[state.key] = log = _Log(end, [(state.ends_read_ms, end)])
        log.start = start or 0
        if log.points[0][1] < log.start:
            log.points = [point for point in log.points if point[1] >= log.start]
            log.points = log.points or [(state.ends_read_ms, end)]
            log.has_beginning = False

    def wanted(
        self, targets: Mapping[TopicPartition, Collection[int]], *, now_ms: int, most: int
    ) -> dict[TopicPartition, int]:
        """Moments to ask for, at most one per partition, given committed offsets that lag."""
        moments: dict[TopicPartition, int] = {}
        for key, offsets in targets.items():
            log = self._logs.get(key)
            moment = None if log is None else _moment(log, offsets, now_ms)
            if moment is not None:
                moments[key] = moment
                if len(moments) == most:
                    break
        return moments

    def take(
        self, key: TopicPartition, asked_ms: int, answer: tuple[int, int], end: int | None
    ) -> None:
        """The first record at or after a moment: (offset, timestamp), -1 where there is none."""
        log = self._logs.get(key)
        if log is None or end is None:
            return
        offset, at_ms = answer
        log.asked += 1
        if asked_ms == BEGINNING_MS:
            log.has_beginning = True
        else:
            _insert(log.points, (asked_ms, end if offset < 0 else offset))
        if offset >= 0 and at_ms > BEGINNING_MS:
            _insert(log.points, (at_ms, offset))

    def told(self, key: TopicPartition, offsets: Iterable[int]) -> tuple[int, ...]:
        """Offsets and milliseconds by turns, oldest first: the points around these offsets."""
        log = self._logs.get(key)
        if log is None:
            return ()
        places: set[int] = set()
        for offset in offsets:
            place = _place(log.points, offset)
            if 0 < place < len(log.points) and len(places) <= POINTS_TOLD_MAX - 2:
                places |= {place - 1, place}
        return tuple(figure for place in sorted(places) for figure in reversed(log.points[place]))

    def forget(self, known: Collection[TopicPartition]) -> None:
        """Drop what is not known any more."""
        for key in [key for key in self._logs if key not in known]:
            del self._logs[key]

    def is_old(self, key: TopicPartition, offset: int) -> bool:
        """Whether the record at an offset is there, and was before the collector."""
        log = self._logs.get(key)
        return log is not None and log.start <= offset < log.first_end


def _moment(log: _Log, offsets: Iterable[int], now_ms: int) -> int | None:
    """The next one to ask for; None: all offsets lie between close points."""
    for offset in offsets:
        place = _place(log.points, offset)
        if place == 0:
            if not log.has_beginning:
                return BEGINNING_MS
            continue
        if place == len(log.points):
            continue
        (low_ms, low), (high_ms, high) = log.points[place - 1], log.points[place]
        if low == offset or high_ms - low_ms <= max(CLOSE_MS, (now_ms - low_ms) * CLOSE_SHARE):
            continue
        share = (offset - low) / (high - low) if log.asked % 2 else 0.5
        return min(low_ms + max(1, round((high_ms - low_ms) * share)), high_ms - 1)
    return None


def _place(points: Sequence[Point], offset: int) -> int:
    """Index of the first point behind an offset."""
    return bisect_right(points, offset, key=lambda point: point[1])


def _insert(points: list[Point], point: Point) -> None:
    if point in points:
        return
    insort(points, point)
    place = bisect_left(points, point)
    # The log changed between two answers (retention, truncation): the newer answer is right.
    points[:place] = [known for known in points[:place] if known[1] <= point[1]]
    place = bisect_left(points, point)
    points[place + 1 :] = [known for known in points[place + 1 :] if known[1] >= point[1]]
    if len(points) > POINTS_MAX:
        # Of three neighbours in time the middle one of the closest tells least.
        gaps = [(points[n + 1][0] - points[n - 1][0], n) for n in range(1, len(points) - 1)]
        del points[min(gap for gap in gaps if points[gap[1]] != point)[1]]
