"""Files that have left their log and wait for their removal."""

import os
from collections.abc import Iterable

from broker.log.errors import storage_error


class RetiredFiles:
    """Paths with the wall time, in ms, from which they may be removed."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, str]] = []

    def add(self, deadline_ms: int, paths: Iterable[str]) -> None:
        """Let files wait until a time."""
        self._waiting += [(deadline_ms, path) for path in paths]

    def remove_due(self, now_ms: int) -> int:
        """Remove those whose time has come; answers how many.

        :raises StorageError: the disk refused; the rest is tried the next time.
        """
        due = [path for deadline_ms, path in self._waiting if deadline_ms <= now_ms]
        for path in due:
            try:
                if os.path.exists(path):
                    os.unlink(path)
            except OSError as error:
                raise storage_error(f"Removing {path} failed", error) from error
            self._waiting = [entry for entry in self._waiting if entry[1] != path]
        return len(due)
