"""Indexes in memory, of the few segments in which somebody looks for old records.

A consumer that reads from the start stays in one segment for long. The whole index of a full
segment of 1 GiB takes 0.1 to 4 MiB here; one of `segment.index.bytes` (10 MiB) takes 20 MiB.
"""

from array import array
from collections import OrderedDict
from typing import Final

INDEXES_BYTES_MAX: Final = 64 * 1024 * 1024

Columns = tuple["array[int]", "array[int]"]


class IndexCache:
    """Columns of the most recently used index files, by path: `bytes_max`, or one of any size."""

    def __init__(self, bytes_max: int = INDEXES_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._columns: OrderedDict[str, Columns] = OrderedDict()

    def get(self, path: str) -> Columns | None:
        """Cached columns of an index."""
        columns = self._columns.get(path)
        if columns is not None:
            self._columns.move_to_end(path)
        return columns

    def put(self, path: str, columns: Columns) -> None:
        """Keep an index, in place of those that were not used for longest."""
        self._columns[path] = columns
        self._columns.move_to_end(path)
        # Counted anew: one of an active segment has grown since it was put here.
        size_bytes = sum(map(_size_bytes, self._columns.values()))
        while size_bytes > self._bytes_max and len(self._columns) > 1:
            _, gone = self._columns.popitem(last=False)
            size_bytes -= _size_bytes(gone)

    def forget(self, path: str) -> None:
        """The file was changed, renamed or removed."""
        self._columns.pop(path, None)


def _size_bytes(columns: Columns) -> int:
    return sum(len(column) * column.itemsize for column in columns)
