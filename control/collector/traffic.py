"""Bytes in, where only offsets and sizes can be read. Pure.

The protocol has no byte counter. Records in are exact (the high watermark grows); what a record
weighs is measured between two readings of the log's size, or, until the log has grown once, over
the whole log:

    bytes per record = (size now - size before) / (high watermark now - high watermark before)

so *bytes in* is records in times that, and goes up with every reading of the offsets although
sizes are read less often. A log that retention shrinks keeps the last measured weight.

*Example.* 1,000 records took 200,000 bytes between two size readings: 200 bytes per record. In
the next second the high watermark grows by 50: 10,000 bytes in.
"""

from dataclasses import dataclass

from control.collector.image import PartitionState


@dataclass(slots=True)
class _Weight:
    size_bytes: int
    high_watermark: int
    bytes_per_record: float | None


class Traffic:
    """Estimates of one broker's led partitions."""

    def __init__(self) -> None:
        self._weights: dict[object, _Weight] = {}
        self._last: dict[object, int] = {}

    def take_size(self, state: PartitionState, size_bytes: int) -> None:
        """The leader's log has this size now."""
        end, start = state.high_watermark, state.log_start_offset
        if end is None:
            return
        before = self._weights.get(state.key)
        weight = None if before is None else before.bytes_per_record
        if before is not None and end < before.high_watermark:
            before = weight = None
        if before is not None and end > before.high_watermark and size_bytes > before.size_bytes:
            weight = (size_bytes - before.size_bytes) / (end - before.high_watermark)
        elif weight is None and start is not None and end > start:
            weight = size_bytes / (end - start)
        self._weights[state.key] = _Weight(size_bytes, end, weight)

    def advance(self, state: PartitionState) -> None:
        """The offsets were read: move ``bytes_in`` up; null while a record's weight is unknown."""
        end = state.high_watermark
        if end is None:
            return
        grown = end - self._last.get(state.key, end)
        self._last[state.key] = end
        weight = self._weights.get(state.key)
        if grown < 0 or weight is None or (weight.bytes_per_record is None and grown > 0):
            state.bytes_in = None
        elif grown > 0 or state.bytes_in is None:
            state.bytes_in = (state.bytes_in or 0.0) + grown * (weight.bytes_per_record or 0.0)

    def forget(self, known: object) -> None:
        """Drop what is not in the container of keys ``known``."""
        for table in (self._weights, self._last):
            for key in [key for key in table if key not in known]:  # type: ignore[operator]
                del table[key]
