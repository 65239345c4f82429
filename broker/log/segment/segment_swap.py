"""Segments replaced by what compaction made of them, so that a crash at any step loses nothing.

The cleaned files are whole and on the disk before anything moves. Then: (1) `.cleaned` becomes
`.swap`, the .log last: that rename decides; (2) the old segments become `.deleted`; (3) `.swap`
takes the plain names, the .log last. Whoever opens the log in between finds a `.log.swap` and
goes on from there; without one the old segments stand as they were. Indexes found on the way are
dropped and made anew, but for the `.txnindex`: where the old segments had one, the cleaned one has
one too, under either name.
Source: org.apache.kafka.storage.internals.log.{LocalLog.replaceSegments,LogLoader} (Kafka 4.x).
"""

import os
from collections.abc import Iterable
from typing import Final

from broker.log.disk.durable import is_there, rename
from broker.log.names import (
    CLEANED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TXN_INDEX_SUFFIX,
    base_offset_of,
    segment_path,
)
from broker.log.segment.batch_scan import iter_file_headers
from broker.log.segment.open_files import OpenFile

_IN_ORDER: Final = (*INDEX_SUFFIXES, LOG_SUFFIX)
_LOG_SWAP: Final = LOG_SUFFIX + SWAP_SUFFIX
_TXN_INDEX_SWAP: Final = TXN_INDEX_SUFFIX + SWAP_SUFFIX


def commit_cleaned(directory: str, base_offset: int) -> None:
    """Step 1: from here on the cleaned segment counts.

    :raises OSError: the disk refused.
    """
    _rename_all(directory, base_offset, CLEANED_SUFFIX, SWAP_SUFFIX)


def finish_swap(directory: str, base_offset: int) -> None:
    """Step 3, once the old segments are out of the way.

    :raises OSError: the disk refused.
    """
    _rename_all(directory, base_offset, SWAP_SUFFIX, "")


def drop_cleaned(directory: str, base_offset: int) -> None:
    """Remove cleaned files that are not wanted any more.

    :raises OSError: the disk refused.
    """
    for suffix in _IN_ORDER:
        path = segment_path(directory, base_offset, suffix + CLEANED_SUFFIX)
        if is_there(path):
            os.unlink(path)


def settle_swaps(directory: str, names: Iterable[str]) -> bool:
    """Bring to an end what a crash interrupted; whether any file has moved.

    :raises StorageError: a `.log.swap` is damaged.
    :raises OSError: the disk refused.
    """
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX)]
    if not swaps:
        return False
    for name in swaps:
        is_kept = name.removesuffix(_TXN_INDEX_SWAP) + _LOG_SWAP in swaps
        if not name.endswith(_LOG_SWAP) and not is_kept:
            os.unlink(f"{directory}/{name}")
    logs = [base_offset_of(name, LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)]
    for name in sorted(swaps):
        base_offset = base_offset_of(name, _LOG_SWAP)
        if base_offset is None:
            continue
        end = _end_offset(f"{directory}/{name}", base_offset)
        for each in logs:
            if each is not None and (each == base_offset or base_offset < each < end):
                _remove_segment(directory, each, is_swapped=each == base_offset)
        _remove_segment(directory, base_offset, is_swapped=True)
        finish_swap(directory, base_offset)
    return True


def _rename_all(directory: str, base_offset: int, old: str, new: str) -> None:
    for suffix in _IN_ORDER:
        path = segment_path(directory, base_offset, suffix)
        if is_there(path + old):
            rename(path + old, path + new)


def _remove_segment(directory: str, base_offset: int, *, is_swapped: bool) -> None:
    """The .log goes last: an index without one would be taken for a new segment's."""
    for suffix in _IN_ORDER:
        path = segment_path(directory, base_offset, suffix)
        if suffix == TXN_INDEX_SUFFIX and is_swapped and not is_there(path + SWAP_SUFFIX):
            continue  # it is the cleaned one already
        if is_there(path):
            os.unlink(path)


def _end_offset(path: str, base_offset: int) -> int:
    """The offset behind the last batch. Segments of the group that lie behind it only hold what
    newer records have replaced; they are cleaned again.
    """
    file = OpenFile(path, os.O_RDONLY)
    end = base_offset
    for header, _ in iter_file_headers(file, path, 0, os.fstat(file.fd).st_size):
        end = header.last_offset + 1
    return end
