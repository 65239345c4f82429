"""Base offsets stand outside a batch's CRC: those of a file found on disk are checked before they
are served, against their neighbours, the index and the segment's ends.

Each stretch is walked once. What this process appended itself is not looked at again.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from broker.log.errors import CorruptSegmentError
from broker.log.segment.batch_scan import header_damage
from broker.log.segment.open_files import OpenFile
from broker.log.segment.segment_indexes import SegmentIndexes
from broker.protocol.records import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC_V2,
    BatchHeader,
    parse_batch_header,
)

RELATIVE_OFFSET_MAX: Final = 2**31 - 1
"""From the start of a segment, as its indexes write it."""
_NOTHING: Final = (0, 0)

_PLACE: Final = struct.Struct(">qi4xb6xi")
"""Base offset, batch length, magic, last offset delta."""
_SMALL_BYTES: Final = 8_192
_AHEAD_BYTES_MAX: Final = 65_536
_PAGE_BYTES: Final = 4_096
"""Read at once: many batches when they are small, a page when they are large."""

Placed = tuple[BatchHeader, int]
Place = tuple[int, int, int]


class OffsetCheck:
    """`found_bytes`: so much of the file was there at the start. Remembers one stretch."""

    __slots__ = ("_checked", "found_bytes")

    def __init__(self, found_bytes: int) -> None:
        self.found_bytes = found_bytes
        self._checked = _NOTHING

    def needs(self, position: int, end: int) -> bool:
        """Whether these bytes were not checked yet."""
        checked_from, checked_to = self._checked
        return position < checked_from or min(end, self.found_bytes) > checked_to

    def note(self, position: int, end: int) -> None:
        """These bytes are in order; the next stretch mostly follows."""
        checked_from, checked_to = self._checked
        end = min(end, self.found_bytes)
        if position <= checked_to and checked_from <= end:
            position, end = min(position, checked_from), max(end, checked_to)
        self._checked = (position, end)


def indexable(batches: Iterable[Placed], path: str, base_offset: int) -> Iterator[Placed]:
    """The batches of a segment, all with offsets that its indexes can hold.

    :raises CorruptSegmentError: one of them is too far away.
    """
    for header, position in batches:
        if not 0 <= header.last_offset - base_offset <= RELATIVE_OFFSET_MAX:
            reason = f"offset {header.base_offset} is too far from {base_offset}"
            raise CorruptSegmentError(path, position, reason)
        yield header, position


def iter_places(file: OpenFile, path: str, position: int, end: int) -> Iterator[Place]:
    """(base offset, last offset, position) of the batches of a file; headers are not parsed.

    :raises CorruptSegmentError: what is there is not a whole batch of format 2.
    """
    window, window_position, ahead_bytes = b"", position, _PAGE_BYTES
    while position < end:
        if position + HEADER_BYTES > window_position + len(window):
            window, window_position = file.read(ahead_bytes, position), position
        if len(window) - (position - window_position) < HEADER_BYTES:
            raise CorruptSegmentError(path, position, f"only {end - position} bytes of a batch")
        base, length, magic, delta = _PLACE.unpack_from(window, position - window_position)
        size_bytes = length + LOG_OVERHEAD_BYTES
        if magic != MAGIC_V2 or delta < 0 or not HEADER_BYTES <= size_bytes <= end - position:
            header = parse_batch_header(window, position - window_position)
            raise CorruptSegmentError(path, position, str(header_damage(header, end - position)))
        yield base, base + delta, position
        position += size_bytes
        ahead_bytes = _AHEAD_BYTES_MAX if size_bytes < _SMALL_BYTES else _PAGE_BYTES


def check_offsets(
    places: Iterable[Place],
    indexes: SegmentIndexes,
    *,
    path: str,
    offset_range: tuple[int, int],
    end: int,
) -> None:
    """Batches from an indexed one on, up to the first at or behind position `end`.

    `offset_range`: first offset of the segment, and the offset behind its last.

    :raises CorruptSegmentError: a base offset cannot be right.
    """
    lowest, highest = offset_range
    leapt_at, suspicion = -1, ""
    is_known = False
    for base_offset, last_offset, at in places:
        is_next = base_offset == lowest and (is_known or not at)
        is_known = True
        if suspicion and not is_next:
            raise CorruptSegmentError(path, leapt_at, suspicion)
        if base_offset < lowest or last_offset >= highest:
            reason = f"offset {base_offset} stands behind {lowest - 1}, before {highest}"
            raise CorruptSegmentError(path, at if leapt_at < 0 else leapt_at, reason)
        if at >= end:
            return
        if is_next:
            leapt_at, suspicion = -1, ""
        else:
            leapt_at, suspicion = at, _suspicion(last_offset, at, indexes)
        lowest = last_offset + 1
    if suspicion:
        raise CorruptSegmentError(path, leapt_at, suspicion)


def _suspicion(last_offset: int, position: int, indexes: SegmentIndexes) -> str:
    """Why a batch with a gap before it may be misplaced; a flipped bit may be the index's, too."""
    told = indexes.last_offset_at(position)
    if told in (None, last_offset):
        return ""
    return f"the last offset is {last_offset} there, and {told} in the index"
