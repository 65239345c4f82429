"""flush.messages: acknowledgements wait for the disk, the event loop does not.

Kafka forces a log within the append. Here a thread does; whatever is appended to that log meanwhile
is acknowledged after the next flush, so that acknowledgements keep the order of the appends.
Source: org.apache.kafka.storage.internals.log.UnifiedLog.append (Kafka 4.x).
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from broker.background import Tasks, attempt, end_process
from broker.log.disk.disk_health import DiskHealth
from broker.log.errors import ForceFailedError, storage_error
from broker.log.partition_log import PartitionLog

OWNER: Final = "flushes by flush.messages"

RETRY_S: Final = 0.2
WAITING_MAX: Final = 50_000
"""So many wait for the disk of one log; their clients may be gone, and the disk may hang."""

OnForced = Callable[[ForceFailedError | None], None]
"""Told when all that was appended before is on the disk, or that it may be lost."""


class FlushByCount:
    """One thread, started with the first flush; one flush of a log at a time."""

    def __init__(self, disk: DiskHealth) -> None:
        self._disk = disk
        self._waiting: dict[PartitionLog, list[OnForced]] = {}
        self._thread: ThreadPoolExecutor | None = None
        self._tasks = Tasks(OWNER, end_process)

    def is_due(self, log: PartitionLog) -> bool:
        """Whether what was appended last is to be on the disk before it is acknowledged."""
        unforced = log.log_end_offset - log.recovery_point
        return unforced >= log.config.flush_messages or log in self._waiting

    def is_full(self, log: PartitionLog) -> bool:
        """Whether so many wait for the disk that nothing more is to be appended."""
        return len(self._waiting.get(log, ())) >= WAITING_MAX

    def force(self, log: PartitionLog, on_forced: OnForced) -> None:
        """Have all records of a log on the disk."""
        if log in self._waiting:
            self._waiting[log].append(on_forced)
            return
        self._waiting[log] = [on_forced]
        self._tasks.start(self._run(log))

    async def close(self) -> None:
        """Tell nobody any more, and end the thread."""
        await self._tasks.stop()
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None

    async def _run(self, log: PartitionLog) -> None:
        while waiting := self._waiting[log]:
            self._waiting[log] = []
            failure = await self._force(log)
            for on_forced in waiting:
                attempt(OWNER, on_forced, failure)
        del self._waiting[log]

    async def _force(self, log: PartitionLog) -> ForceFailedError | None:
        """Try until the disk has it, or says that it may have lost it."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="flush-count")
        make = partial(log.durability.flush_job, is_with_active=True, is_records_only=True)
        while (job := make()) is not None:
            try:
                await asyncio.get_running_loop().run_in_executor(self._thread, job.run)
            except ForceFailedError as failure:
                self._disk.note(failure)
                return failure
            except OSError as error:
                self._disk.note(storage_error(f"Forcing {log.directory} failed", error))
                await asyncio.sleep(RETRY_S)
            else:
                log.durability.handle_flushed(job)
                break
        return None
