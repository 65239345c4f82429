"""Files that wait for their removal, and their removal beside the event loop.

A disk takes a quarter of a second to let go of a gigabyte, and several times that while it is
written to: a partition that has moved away would hold up producers for as long.
"""

import logging
import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Final

_logger: Final = logging.getLogger(__name__)


class Remover:
    """One thread, started with the first job."""

    def __init__(self) -> None:
        self._running: dict[str, Future[None]] = {}
        self._refused: set[str] = set()
        self._thread: ThreadPoolExecutor | None = None
        self._is_stopped = Event()

    def start(self, paths: Iterable[str]) -> None:
        """Begin to remove files, and directories with the files in them."""
        for path in paths:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="remove")
            self._running[path] = self._thread.submit(self._remove, path)

    def collect(self) -> None:
        """Forget what is gone; what the disk refused is logged once and tried again each time."""
        done = [path for path, future in self._running.items() if future.done()]
        errors = {path: self._running.pop(path).exception() for path in done}
        refused = {path: error for path, error in errors.items() if error is not None}
        for path in refused.keys() - self._refused:
            _logger.error("Removing %s failed, it is tried again: %s", path, refused[path])
        self._refused = (self._refused - set(done)) | refused.keys()
        self.start(refused)

    def stop(self) -> None:
        """Wait for the file that is being removed, and end the thread; the rest stays, marked as
        deleted, for the next start."""
        self._is_stopped.set()
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
            self._thread = None
        self._running.clear()

    def _remove(self, path: str) -> None:
        """In the thread. What has gone already is as good.

        :raises OSError: the disk refused.
        """
        try:
            if not os.path.isdir(path):
                os.unlink(path)
                return
            for name in os.listdir(path):
                if self._is_stopped.is_set():
                    return
                os.unlink(os.path.join(path, name))
            os.rmdir(path)
        except FileNotFoundError:
            return


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
