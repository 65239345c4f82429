"""Forcing sealed segments to the disk, beside the event loop.

A disk may take seconds for a gigabyte. One thread does it, on its own descriptors; what follows
from it (the recovery point) is settled in the loop, by `collect`.
"""

import logging
import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushJob:
    """Files to force to the disk, anywhere; then `offset` may be the recovery point.

    `truncations` tells whether the log was cut meanwhile, which makes the job void. Their directory
    is forced as well, unless they were all there before.
    """

    paths: tuple[str, ...]
    offset: int
    truncations: int
    is_with_directory: bool = True

    def run(self) -> None:
        """Force the files; those retired meanwhile need not be.

        :raises OSError: the disk refused.
        """
        directory = (os.path.dirname(self.paths[0]),) if self.is_with_directory else ()
        for path in (*self.paths, *directory):
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


class Flushable(Protocol):
    """A log, as the flusher sees it."""

    directory: str

    def flush_job(self) -> FlushJob | None:
        """What is to be forced, if anything."""
        ...

    def handle_flushed(self, job: FlushJob) -> None:
        """It was."""
        ...


class Flusher:
    """One thread, started with the first job; at most one job per log at a time."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[Flushable, FlushJob, Future[None]]] = {}
        self._thread: ThreadPoolExecutor | None = None

    def maybe_start(self, log: Flushable) -> None:
        """Begin to force what a log has sealed since the last time."""
        if log.directory in self._running or (job := log.flush_job()) is None:
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="flush")
        self._running[log.directory] = (log, job, self._thread.submit(job.run))

    def collect(self) -> None:
        """Tell logs of finished jobs; a failed one is logged and tried again later."""
        done = [name for name, (_, _, future) in self._running.items() if future.done()]
        for name in done:
            log, job, future = self._running.pop(name)
            error = future.exception()
            if error is None:
                log.handle_flushed(job)
            else:
                _logger.error("Forcing %s to the disk failed: %s", name, error)

    def stop(self) -> None:
        """Wait for what runs, and end the thread."""
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None
        self.collect()
