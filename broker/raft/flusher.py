"""The thread that forces metadata, votes and fetched snapshots to the disk.

It may take tenths of a second when others write to the same disk; whoever produces or fetches from
this node must not wait for that.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from broker.background import Tasks, end_process
from broker.log.errors import StorageError, as_storage_error
from broker.raft.events import Event

THREAD_NAME: Final = "metadata-flush"


class Flusher:
    """One after the other; `on_done` and `on_error` are called in the event loop."""

    def __init__(
        self, *, on_done: Callable[[Event], None], on_error: Callable[[StorageError], None]
    ) -> None:
        self._on_done = on_done
        self._on_error = on_error
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=THREAD_NAME)
        self._tasks = Tasks("flusher of the metadata", end_process)

    def start(self, run: Callable[[], None], done: Event) -> None:
        """Have it run, after those that were begun before, and report that it is done."""
        self._tasks.start(self._run(run, done))

    async def stop(self) -> None:
        """Report nothing any more and begin nothing; what runs is awaited, for whoever reads the
        files next must find them at rest."""
        await self._tasks.stop()
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)

    async def _run(self, run: Callable[[], None], done: Event) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, run)
        except (OSError, StorageError) as error:
            self._on_error(as_storage_error("Forcing the metadata to the disk failed", error))
        else:
            self._on_done(done)
