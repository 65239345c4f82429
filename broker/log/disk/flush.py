"""Forcing sealed segments to the disk, beside the event loop.

A disk may take seconds for a gigabyte. One thread does it, on its own descriptors; what follows
from it (the recovery point) is settled in the loop, by `collect`.
"""

import contextlib
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from broker.log.disk.durable import force_file
from broker.log.errors import StorageError, as_storage_error


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

        :raises ForceFailedError: what was written may be lost.
        :raises OSError: a file cannot be opened; nothing is lost by that.
        """
        directory = os.path.dirname(self.paths[0])
        # The directory itself may be new as well, and its name stands in the one above it.
        names = (directory, os.path.dirname(directory)) if self.is_with_directory else ()
        for path in (*self.paths, *names):
            with contextlib.suppress(FileNotFoundError):
                force_file(path)


class Flushable(Protocol):
    """A log, as the flusher sees it (broker.log.durability)."""

    directory: str

    def flush_job(self, *, is_with_active: bool) -> FlushJob | None:
        """The files to force, if any."""

    def handle_flushed(self, job: FlushJob) -> None:
        """It was."""


class Flusher:
    """One thread, started with the first job; at most one job per log at a time.

    `on_error` is told of each job that the disk refused.
    """

    def __init__(self, on_error: Callable[[StorageError], object]) -> None:
        self._on_error = on_error
        self._running: dict[str, tuple[Flushable, FlushJob, Future[None]]] = {}
        self._thread: ThreadPoolExecutor | None = None

    def maybe_start(self, log: Flushable, *, is_with_active: bool = False) -> None:
        """Begin to force what a log has sealed since the last time, and what it appends to."""
        if log.directory in self._running:
            return
        job = log.flush_job(is_with_active=is_with_active)
        if job is None:
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="flush")
        self._running[log.directory] = (log, job, self._thread.submit(job.run))

    def collect(self) -> None:
        """Tell logs of finished jobs, and `on_error` of failed ones.

        A job that could not open its files is tried again with the next call of `maybe_start`.
        """
        done = [name for name, (_, _, future) in self._running.items() if future.done()]
        for name in done:
            log, job, future = self._running.pop(name)
            error = future.exception()
            if error is None:
                log.handle_flushed(job)
            else:
                self._on_error(as_storage_error(f"Forcing {name} to the disk failed", error))

    def stop(self) -> None:
        """Wait for what runs, and end the thread."""
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None
        self.collect()
