"""Walking over the batch headers of a segment file, without reading the records."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from broker.log.errors import CorruptSegmentError
from broker.log.segment.open_files import OpenFile
from broker.protocol.records import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC_V2,
    BatchHeader,
    parse_batch_header,
)

_WINDOW_BYTES: Final = 8192
"""Read at once: many headers when batches are small, one page or two when they are large."""
_BATCH_LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD_BYTES


class BatchSpot(NamedTuple):
    """Where a batch lies in its segment: position in bytes, offsets absolute."""

    base_offset: int
    last_offset: int
    position: int
    size_bytes: int


def iter_file_headers(
    file: OpenFile, path: str, position: int, end: int
) -> Iterator[tuple[BatchHeader, int]]:
    """(header, position) of the batches between two positions of a segment file.

    :raises CorruptSegmentError: what is there is not a whole batch of format 2.
    :raises UnreadableFileError: the disk refused.
    """
    window, window_position = b"", position
    while position < end:
        if position + HEADER_BYTES > window_position + len(window):
            window, window_position = file.read(_WINDOW_BYTES, position), position
        if len(window) - (position - window_position) < HEADER_BYTES:
            raise CorruptSegmentError(path, position, f"only {end - position} bytes of a batch")
        header = parse_batch_header(window, position - window_position)
        if (reason := header_damage(header, end - position)) is not None:
            raise CorruptSegmentError(path, position, reason)
        yield header, position
        position += header.size_bytes


def header_damage(header: BatchHeader, available_bytes: int) -> str | None:
    """Why these 61 bytes cannot start a batch, or None."""
    if header.magic != MAGIC_V2:
        return f"magic {header.magic} is not {MAGIC_V2}"
    if header.batch_length < _BATCH_LENGTH_MIN:
        return f"batch length {header.batch_length} is less than a header"
    if header.last_offset_delta < 0 or header.base_offset < 0:
        return f"offsets {header.base_offset} + {header.last_offset_delta} are negative"
    if header.size_bytes > available_bytes:
        return f"a batch of {header.size_bytes} bytes has only {available_bytes} in the file"
    return None


def spot_of(header: BatchHeader, position: int) -> BatchSpot:
    """The place of a batch whose header was read at `position`."""
    return BatchSpot(header.base_offset, header.last_offset, position, header.size_bytes)
