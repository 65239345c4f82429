"""When a log ended where: what makes lag in records a lag in time."""

from collections.abc import Sequence
from itertools import accumulate

from broker.log.segment.segment_reader import SegmentReader

Point = tuple[int, int]
"""Where the log ended, and when: an offset, and milliseconds since the epoch."""


def end_times(segments: Sequence[SegmentReader], count: int) -> tuple[Point, ...]:
    """At most ``count`` points (two at least), oldest first, about evenly over the offsets.

    From the time indexes alone; both figures rise. Empty for a log without timestamps.

    With records written one a second from noon, and an index entry for every tenth:
    (0, 12:00:00), (490, 12:08:10), (1000, 12:16:40).

    :raises StorageError: the disk refused.
    """
    start, end = segments[0].base_offset, segments[-1].next_offset
    targets = (start + (end - start) * step // (count - 1) for step in range(1, count - 1))
    found = {_point_before(segments, target) for target in targets}
    ends = {(end, max(segment.largest_timestamp()[0] for segment in segments[-2:]))}
    first_ms = segments[0].first_timestamp()
    points = found | ends | ({(start, first_ms)} if first_ms is not None else set())
    known = dict(sorted(point for point in points if point and point[1] >= 0))
    if len(known) < 2:
        return ()
    return tuple(zip(known, accumulate(known.values(), max), strict=True))


def _point_before(segments: Sequence[SegmentReader], offset: int) -> Point | None:
    """The last point of the index at or before an offset; None where there is none."""
    for segment in reversed(segments):
        if segment.base_offset < offset:
            if segment.next_offset <= offset:
                return segment.next_offset, segment.largest_timestamp()[0]
            return segment.indexes.end_before(offset)
    return None
