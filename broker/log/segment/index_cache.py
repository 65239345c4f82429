"""Indexes in memory, of the few segments in which somebody looks for old records.

A consumer that reads from the start stays in one segment for long; the whole index of a full
segment of 1 GiB takes 0.1 to 4 MiB, depending on the batches.
"""

from array import array
from collections import OrderedDict
from typing import Final

INDEXES_MAX: Final = 16

Columns = tuple["array[int]", "array[int]"]


class IndexCache:
    """The columns of the most recently used index files, by path."""

    def __init__(self, indexes_max: int = INDEXES_MAX) -> None:
        self._indexes_max = indexes_max
        self._columns: OrderedDict[str, Columns] = OrderedDict()

    def get(self, path: str) -> Columns | None:
        """Cached columns of an index."""
        columns = self._columns.get(path)
        if columns is not None:
            self._columns.move_to_end(path)
        return columns

    def put(self, path: str, columns: Columns) -> None:
        """Keep an index, in place of the one that was not used for longest."""
        self._columns[path] = columns
        if len(self._columns) > self._indexes_max:
            self._columns.popitem(last=False)

    def forget(self, path: str) -> None:
        """The file was changed, renamed or removed."""
        self._columns.pop(path, None)
