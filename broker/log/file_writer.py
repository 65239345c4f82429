"""Replacing small files beside the event loop.

To take an old file's place costs nothing while the disk is idle. While others write to it, the
file system forces the new content out first and lets go of the old blocks at once, behind all that
waits for the disk: over two seconds were seen, on all brokers of a machine, which producers spent
waiting. One thread does it, file by file; of what comes meanwhile the newest is written.
"""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final

from broker.log.checkpoints import write_file
from broker.log.errors import StorageError

_logger: Final = logging.getLogger(__name__)

MakeContent = Callable[[], bytes]


class FileWriter:
    """One thread, started with the first file. `collect` and `write` belong to the event loop."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[str, MakeContent] = {}
        self._failed: dict[str, StorageError] = {}
        self._is_running = False
        self._thread: ThreadPoolExecutor | None = None

    def write(self, path: str, make: MakeContent) -> None:
        """Replace a file soon by what `make` answers, which is called in the thread."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="files")
        with self._lock:
            self._waiting.pop(path, None)  # never ahead of what was to be written before it
            self._waiting[path] = make
            is_to_start, self._is_running = not self._is_running, True
        if is_to_start:
            self._thread.submit(self._run)

    def collect(self) -> frozenset[str]:
        """Files that the disk refused since the last time; they are as they were. Logged."""
        with self._lock:
            failed, self._failed = self._failed, {}
        for error in failed.values():
            _logger.error("%s", error)
        return frozenset(failed)

    def stop(self) -> None:
        """Write what waits, and end the thread."""
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            path, make = taken
            try:
                write_file(path, make())
            except StorageError as error:
                if isinstance(error.__cause__, FileNotFoundError):
                    continue  # its directory was deleted meanwhile
                with self._lock:
                    self._failed[path] = error

    def _take(self) -> tuple[str, MakeContent] | None:
        with self._lock:
            for path in self._waiting:
                return path, self._waiting.pop(path)
            self._is_running = False
            return None
