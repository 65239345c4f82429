"""Removing files beside the event loop.

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
        self._thread: ThreadPoolExecutor | None = None
        self._is_stopped = Event()

    def start(self, paths: Iterable[str]) -> None:
        """Begin to remove files, and directories with the files in them."""
        for path in paths:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="remove")
            self._running[path] = self._thread.submit(self._remove, path)

    def collect(self) -> None:
        """Forget what is gone; what the disk refused is logged and tried again."""
        refused = []
        for path in [path for path, future in self._running.items() if future.done()]:
            error = self._running.pop(path).exception()
            if error is not None:
                _logger.error("Removing %s failed: %s", path, error)
                refused.append(path)
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
