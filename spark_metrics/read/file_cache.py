"""Keeps what was read of files: a file of history never changes."""

from collections import OrderedDict
from collections.abc import Collection, Hashable
from threading import Lock
from typing import Any

Key = tuple[str, Hashable]
"""A file, and which part of it, or what it was asked."""


class FileCache:
    """The least recently asked for go first, but for the newest. Safe to share between threads."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept: OrderedDict[Key, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: Key) -> Any:
        """The value that is kept under this key; None: none is."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: Key, value: Any, size: int) -> None:
        """Remember a value that takes about so many bytes."""
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = (value, size)
            self._bytes += size
            while self._bytes > self._bytes_max and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1][1]

    def forget_all_but(self, paths: Collection[str]) -> None:
        """Forget the values of other files: they were merged, or have grown too old."""
        with self._lock:
            for key in [key for key in self._kept if key[0] not in paths]:
                self._bytes -= self._kept.pop(key)[1]
