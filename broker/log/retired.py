"""Files that have left their log and wait for their removal."""

from collections.abc import Iterable


class RetiredFiles:
    """Paths with the wall time, in ms, from which they may be removed."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, str]] = []

    def add(self, deadline_ms: int, paths: Iterable[str]) -> None:
        """Let files wait until a time."""
        self._waiting += [(deadline_ms, path) for path in paths]

    def take_due(self, now_ms: int) -> list[str]:
        """Those whose time has come, which are the caller's to remove."""
        due = [path for deadline_ms, path in self._waiting if deadline_ms <= now_ms]
        if due:
            self._waiting = [entry for entry in self._waiting if entry[0] > now_ms]
        return due
