"""The fetch sessions that are kept, one of each follower (KIP-227, Kafka's FetchSessionCache)."""

import itertools
from collections.abc import Callable
from typing import Final

from broker.protocol.hot.fetch import INITIAL_EPOCH, NO_SESSION, FetchRequest
from broker.replication.errors import FetchSessionIdNotFoundError, InvalidFetchSessionEpochError
from broker.replication.leader.fetch_session import FetchSession

SESSION_ID_MAX: Final = 2**31 - 1
EVICTION_MS: Final = 120_000
"""So long unused, a session makes room for another (MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS)."""


class FetchSessionCache:
    """At most `slots` sessions (max.incremental.fetch.session.cache.slots).

    A session without a position is not kept, so its follower has a replica of a partition here.
    `on_end` is told of each that goes.
    """

    def __init__(self, slots: int, on_end: Callable[[FetchSession], None]) -> None:
        self._slots = slots
        self._on_end = on_end
        self._sessions: dict[int, FetchSession] = {}
        self._ids = itertools.count(1)

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, request: FetchRequest, now_ms: int) -> FetchSession | Exception:
        """The session of a request, or why there is none; a new one is not kept yet."""
        if request.session_epoch == INITIAL_EPOCH:
            self._drop_of(request.replica_id)
            return FetchSession(replica_id=request.replica_id)
        session = self._sessions.get(request.session_id)
        if session is None or session.replica_id != request.replica_id:
            return FetchSessionIdNotFoundError()
        if session.next_epoch != request.session_epoch:
            return InvalidFetchSessionEpochError()
        session.advance_epoch()
        session.used_ms = now_ms
        return session

    def keep(self, session: FetchSession, now_ms: int) -> None:
        """Give a new session its id; without room it has none and ends with its first answer."""
        if session.session_id != NO_SESSION or not session.positions:
            return
        if len(self._sessions) >= self._slots and not self._evict(now_ms):
            return
        session.session_id = next(self._ids) % SESSION_ID_MAX + 1
        session.used_ms = now_ms
        self._sessions[session.session_id] = session

    def _evict(self, now_ms: int) -> bool:
        oldest = min(self._sessions.values(), key=lambda each: each.used_ms, default=None)
        if oldest is None or now_ms - oldest.used_ms < EVICTION_MS:
            return False
        self._drop(oldest)
        return True

    def _drop_of(self, replica_id: int) -> None:
        for session in [each for each in self._sessions.values() if each.replica_id == replica_id]:
            self._drop(session)

    def _drop(self, session: FetchSession) -> None:
        del self._sessions[session.session_id]
        self._on_end(session)
