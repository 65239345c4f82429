"""Rows that were found in files of history, kept: a file never changes.

A chart that is drawn again at every version asks the same of the same files, but for the newest.
"""

from collections import OrderedDict
from collections.abc import Collection, Hashable
from threading import Lock
from typing import Any, Final

BYTES_MAX: Final = 8 << 20
"""Of all rows that are kept: some hundred charts of ten minutes."""
SHARE_MAX: Final = 8
"""A question that finds more than one part in so many of all that may be kept is asked again."""
TABLE_BYTES: Final = 1_000
COLUMN_BYTES: Final = 500
"""What Arrow takes beside the values, about."""

Key = tuple[str, Hashable]
"""A file, and what it was asked."""


class KeptRows:
    """The least recently asked for go first. Safe to share between threads."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._kept: OrderedDict[Key, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def find(self, key: Key) -> Any:
        """The rows that are kept under this key, an Arrow table; None: none are."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def forget_all_but(self, paths: Collection[str]) -> None:
        """Those of other files: they were merged, or have grown too old."""
        with self._lock:
            for key in [key for key in self._kept if key[0] not in paths]:
                self._bytes -= self._kept.pop(key)[1]

    def keep(self, key: Key, rows: Any) -> None:
        """Remember these rows under this key, unless they are many."""
        size = rows.nbytes + TABLE_BYTES + COLUMN_BYTES * rows.num_columns
        if size * SHARE_MAX > self._bytes_max:
            return
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = (rows, size)
            self._bytes += size
            while self._bytes > self._bytes_max:
                self._bytes -= self._kept.popitem(last=False)[1][1]
