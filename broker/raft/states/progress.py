"""A leader's knowledge of the other nodes: how far each has the log on its disk, when it asked."""

from dataclasses import dataclass, field
from typing import Final

from broker.raft.messages import FetchRequest

UNKNOWN: Final = -1
OBSERVER_SILENCE_MS: Final = 300_000
"""After which an observer counts as gone (Kafka: LeaderState.OBSERVER_SESSION_TIMEOUT_MS)."""


@dataclass(slots=True, kw_only=True)
class Fetched:
    """Fetch position of one node; its end offset is flushed there."""

    fetched_ms: int
    end_offset: int = UNKNOWN
    caught_up_ms: int = UNKNOWN
    leader_end_at_fetch: int = UNKNOWN

    def note(self, request: FetchRequest, *, leader_end: int, now_ms: int) -> None:
        """It has all before the fetch offset; caught up is who has what we had when it asked."""
        if request.fetch_offset >= leader_end:
            self.caught_up_ms = now_ms
        elif request.fetch_offset >= self.leader_end_at_fetch >= 0:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.leader_end_at_fetch = leader_end
        self.fetched_ms = now_ms
        self.end_offset = request.fetch_offset


OBSERVERS_MAX: Final = 1_000


@dataclass(slots=True)
class Observers:
    """Nodes that fetch without a vote. One that has been silent for long is forgotten, and the one
    that has been silent for longest when there are more than OBSERVERS_MAX."""

    _found: dict[int, Fetched] = field(default_factory=dict)

    def of(self, node_id: int, now_ms: int) -> Fetched:
        """Knowledge of a node, from now on."""
        if node_id not in self._found:
            known = self.known(now_ms)
            if len(known) >= OBSERVERS_MAX:
                del known[min(known, key=lambda id_: known[id_].fetched_ms)]
            self._found = {**known, node_id: Fetched(fetched_ms=now_ms)}
        return self._found[node_id]

    def known(self, now_ms: int) -> dict[int, Fetched]:
        """By node."""
        since_ms = now_ms - OBSERVER_SILENCE_MS
        return {id_: it for id_, it in self._found.items() if it.fetched_ms >= since_ms}
