"""Moves and the journal as screens know them: one task follows the bus for all that look.

It begins again, more and more slowly, when the bus cannot be reached.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final

from control.kafka.errors import KafkaPortError
from control.model.watched_cluster import WatchedCluster
from control.move.events import Event, EventKind
from control.move.journal_lines import JournalLine, line_of_event, lines_of_state
from control.move.known_states import KnownStates
from control.move.state import OperationState
from control.operations.bus.client import MovesReader
from control.operations.errors import OperationError

FIRST_RETRY_S: Final = 0.5
RETRY_S_MAX: Final = 10.0
MOVES_MAX: Final = 500
LINES_MAX: Final = 2_000

_log: Final = logging.getLogger(__name__)


class Moves:
    """States of reassignments, folded from their events. Lives on one event loop."""

    def __init__(
        self,
        open_client: Callable[[], MovesReader] | None,
        of: WatchedCluster | None = None,
    ) -> None:
        """``open_client`` None: there is no bus, and never a move. ``of``: tells only of this
        cluster; None: of all clusters on the bus."""
        self._open_client = open_client
        self._of = of
        self._states = KnownStates(kept_max=MOVES_MAX)
        self._lines: dict[str, JournalLine] = {}
        """By operation: its outcome replaces that it has begun."""
        self._listeners: set[Callable[[], None]] = set()
        self._following: asyncio.Task[None] | None = None
        self.trouble = ""
        """Why moves cannot be followed at the moment; empty: they are."""
        self._client: MovesReader | None = None
        self.version = 0
        """Grows with every event."""

    @property
    def newest_first(self) -> tuple[OperationState, ...]:
        """All that are known of the cluster."""
        return tuple(sorted(self._ours(), key=lambda s: s.submitted_ms, reverse=True))

    @property
    def unreadable(self) -> str:
        """Count and places of records that could not be read so far; empty: all could."""
        return "" if self._client is None else self._client.unreadable

    def get(self, operation_id: str) -> OperationState | None:
        """One of them, with its changes as far as they are kept."""
        if operation_id not in self._states:
            return None
        state = self._states.get(operation_id)
        return state if self._is_ours(state) else None

    def elsewhere(self, operation_id: str) -> str:
        """The address of the other cluster that a move is of; empty: of none that is known."""
        if operation_id not in self._states or self.get(operation_id) is not None:
            return ""
        return self._states.get(operation_id, is_whole=False).bootstrap

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have ``listener`` called (in the loop) when a move gets on; returns how to end that."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def maybe_follow(self) -> None:
        """Follow from now on, if there is a bus and nobody does so yet."""
        if self._open_client is not None and self._following is None:
            self._following = asyncio.get_running_loop().create_task(
                self._follow(self._open_client)
            )

    async def close(self) -> None:
        """End following."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    @property
    def journal(self) -> tuple[JournalLine, ...]:
        """Every change that is known of the cluster, the newest first: moves and what needed no
        executor."""
        direct = (line for line in self._lines.values() if line.move not in self._states)
        lines = [line for line in direct if self._is_ours(line)]
        lines += chain(*map(lines_of_state, self._ours()))
        return tuple(sorted(lines, key=lambda line: line.at_ms, reverse=True))

    def _ours(self) -> Iterable[OperationState]:
        return filter(self._is_ours, self._states.all())

    def _is_ours(self, what: OperationState | JournalLine) -> bool:
        return self._of is None or self._of.owns(what.site)

    def take(self, event: Event) -> None:
        """One more event; lines of the journal are no moves."""
        if event.kind is EventKind.JOURNAL:
            known = self._lines.get(event.operation_id)
            if event.is_foreign and known is not None and not known.is_foreign:
                return
            self._lines[event.operation_id] = line_of_event(event)
            if len(self._lines) > LINES_MAX:
                del self._lines[next(iter(self._lines))]
            self._wake()
            return
        self._states.take(event)
        self._wake()

    async def _follow(self, open_client: Callable[[], MovesReader]) -> None:
        pause_s = FIRST_RETRY_S
        while True:
            is_first = True
            try:
                self._client = open_client()
                async for event in self._client.events():
                    if is_first:  # of all there are: what is known is told once more
                        self._states.clear()
                        self._lines.clear()
                        is_first = False
                    pause_s, self.trouble = FIRST_RETRY_S, ""
                    self.take(event)
            except (KafkaPortError, OperationError, OSError, ValueError) as error:
                self.trouble = str(error)
                _log.info("moves cannot be followed: %s", error)
                self._wake()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_S_MAX)

    def _wake(self) -> None:
        self.version += 1
        for listener in tuple(self._listeners):
            listener()
