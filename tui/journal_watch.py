"""Watch of the journal, for the marks on charts, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import partial
from typing import Final

from control.model.watched_cluster import WatchedCluster
from control.move.journal_lines import JournalLine

START_AFTER_S: Final = 2.0
"""A Kafka client comes with it: not before the first picture stands."""
LOOK_EVERY_S: Final = 1.0


class JournalWatch:
    """Follows the bus from the first question on; answers what is known by now."""

    def __init__(self, bus: str | None, of: WatchedCluster | None = None) -> None:
        """``bus`` None: nothing is ever known. ``of``: the one cluster on the bus whose changes are
        told."""
        self._bus = bus
        self._of = of
        self._lines: Sequence[JournalLine] = ()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def __call__(self) -> Sequence[JournalLine]:
        """The newest first."""
        with self._lock:
            if self._thread is None and self._bus is not None:
                self._thread = threading.Thread(
                    target=self._watch, name="journal-watch", daemon=True
                )
                self._thread.start()
        return self._lines

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()

    def _watch(self) -> None:
        if not self._stopping.wait(START_AFTER_S):
            asyncio.run(self._follow())

    async def _follow(self) -> None:
        """Loaded here: the first picture needs no Kafka client."""
        from control.operations.bus.client import MovesReader
        from control.operations.bus.moves_feed import Moves

        moves = Moves(partial(MovesReader, self._bus, creates_topics=False), self._of)
        moves.maybe_follow()
        told = 0
        while not self._stopping.is_set():
            if moves.version != told:
                told, self._lines = moves.version, moves.journal
            await asyncio.sleep(LOOK_EVERY_S)
        await moves.close()
