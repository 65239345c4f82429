"""Takes a leader's snapshot in beside the event loop: it may hold 100,000 partitions."""

import asyncio
from collections.abc import Callable
from typing import Final

from broker.background import OnFailure, Tasks
from broker.log.errors import LogError
from broker.raft.snapshot_files import Snapshot

PrepareSnapshot = Callable[[Snapshot], Callable[[], None]]
OWNER: Final = "taking in of a snapshot"


class SnapshotInstaller:
    """Reads and prepares in a thread, installs in the event loop; the newest snapshot only.

    `on_installed` is told where the snapshot ends. While `is_busy` nothing may be replayed.
    """

    def __init__(
        self,
        *,
        read: Callable[[], Snapshot | None],
        prepare: PrepareSnapshot,
        on_installed: Callable[[int], None],
        on_failure: OnFailure,
    ) -> None:
        self._read = read
        self._prepare = prepare
        self._on_installed = on_installed
        self._tasks = Tasks(OWNER, on_failure)
        self._asked = 0
        self.is_busy = False

    def begin(self) -> None:
        """The log has a new snapshot, in the place of any before it."""
        self._asked += 1
        if not self.is_busy:
            self.is_busy = True
            self._tasks.start(self._run())

    async def stop(self) -> None:
        """Install nothing any more."""
        await self._tasks.stop()

    async def _run(self) -> None:
        while True:
            begun = self._asked
            try:
                end_offset, install = await asyncio.to_thread(self._read_and_prepare)
            except (OSError, LogError):
                if self._asked == begun:
                    raise
                continue  # the file went when a newer one came
            if self._asked == begun:
                break
        install()
        self.is_busy = False
        self._on_installed(end_offset)

    def _read_and_prepare(self) -> tuple[int, Callable[[], None]]:
        snapshot = self._read()
        assert snapshot is not None, "the log has just been put behind one"
        return snapshot.id.end_offset, self._prepare(snapshot)
