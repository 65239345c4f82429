"""Replacing small files beside the event loop.

To take an old file's place costs nothing while the disk is idle. While others write to it, the
file system forces the new content out first and lets go of the old blocks at once, behind all that
waits for the disk: over two seconds were seen, on all brokers of a machine, which producers spent
waiting. One thread does it, file by file; of what comes meanwhile the newest is written.

What the disk refuses is written again with every call of `collect`. A failed fsync is final for the
log directory: it is told, and nothing is written after it. A file that must not be believed while
it is old is removed meanwhile, which a full disk allows.
"""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final, NamedTuple

from broker.log.checkpoint.checkpoint_format import write_file
from broker.log.disk.durable import remove_if_there
from broker.log.errors import ForceFailedError, StorageError

_logger: Final = logging.getLogger(__name__)

MakeContent = Callable[[], bytes]


class _Refused(NamedTuple):
    make: MakeContent
    is_forced: bool
    error: StorageError


def _nobody(_: StorageError) -> None:
    """Nobody wants to hear of it."""


class FileWriter:
    """One thread, started with the first file. `collect` and `write` belong to the event loop.

    `on_error` is told, in the event loop, of each write that the disk refused.
    """

    def __init__(self, on_error: Callable[[StorageError], object] = _nobody) -> None:
        self._on_error = on_error
        self._lock = Lock()
        self._waiting: dict[str, tuple[MakeContent, bool]] = {}
        self._failed: dict[str, _Refused] = {}
        self._complained: set[str] = set()
        self._failure: ForceFailedError | None = None
        self._is_running = False
        self._thread: ThreadPoolExecutor | None = None

    def write(self, path: str, make: MakeContent, *, is_forced: bool) -> None:
        """Replace a file soon by what `make` answers, which is called in the thread.

        One that is not forced is made anew from other files where it is missing.
        """
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="files")
        with self._lock:
            self._waiting.pop(path, None)  # never ahead of what was to be written before it
            self._failed.pop(path, None)
            self._waiting[path] = (make, is_forced)
            is_to_start, self._is_running = not self._is_running, True
        if is_to_start:
            self._thread.submit(self._run)

    def collect(self) -> frozenset[str]:
        """Files that the disk refused since the last time; each is tried again now.

        After a failed fsync none is: it would succeed without having written anything.
        """
        with self._lock:
            failed, self._failed = self._failed, {}
        if self._failure is not None:
            self._on_error(self._failure)
        for path, refused in failed.items():
            if path not in self._complained:
                _logger.error("%s; it is tried again every second", refused.error)
            self._on_error(refused.error)
            self.write(path, refused.make, is_forced=refused.is_forced)
        self._complained = set(failed)
        return frozenset(failed)

    def stop(self) -> bool:
        """Write what waits, and end the thread; whether the disk took everything."""
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None
        for refused in self._failed.values():
            _logger.error("%s", refused.error)
            self._on_error(refused.error)
        if self._failure is not None:
            self._on_error(self._failure)
        return not self._failed and self._failure is None

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            path, make, is_forced = taken
            try:
                write_file(path, make(), is_forced=is_forced)
            except ForceFailedError as failure:
                self._failure = failure
            except StorageError as error:
                if isinstance(error.__cause__, FileNotFoundError):
                    continue  # its directory was deleted meanwhile
                if not is_forced:
                    remove_if_there(path)
                with self._lock:
                    if path not in self._waiting:
                        self._failed[path] = _Refused(make, is_forced, error)

    def _take(self) -> tuple[str, MakeContent, bool] | None:
        with self._lock:
            for path in () if self._failure else self._waiting:
                return path, *self._waiting.pop(path)
            self._is_running = False
            return None
