"""Which new replicas are about to catch up with their leader. Pure.

From the fetch with which a new replica reaches the leader's end, producers with acks=all wait for
it (Kafka's Partition.maybeIncrementLeaderHW), but until the controller has taken it into the ISR
its fetches are held back by the leader's throttle (ReplicaManager.shouldLeaderThrottle): each time
up to replica.fetch.wait.max.ms, half a second, for as long as the throttle is used up. So the
leader stops throttling a partition shortly before. The throttle of the broker that receives it
stays, and holds nobody up: a follower goes by its own lag.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from control.model.ids import TopicPartition

FETCH_BYTES: Final = 1 << 20
"""What comes of a partition at once: the default of replica.fetch.max.bytes."""
READINGS_AHEAD: Final = 3
ENTRIES_A_READING: Final = 50
"""Each change writes a topic's list of throttled replicas anew: where it is long, those that follow
soon are let go together."""

FADES: Final = 0.8
"""Of what came at most, at each reading: a throttle that was lowered is forgotten."""

Replica = tuple[TopicPartition, int]


@dataclass(slots=True, kw_only=True)
class CatchUpWatch:
    """Remembers how much came of each new replica between two readings, at most."""

    listed: Mapping[str, int]
    """Partitions per topic that are throttled in all."""
    _missing: dict[Replica, int] = field(default_factory=dict)
    _most: dict[Replica, float] = field(default_factory=dict)

    def read(self, missing: Mapping[Replica, int]) -> None:
        """Bytes that each replica on its way still lacks."""
        self._most = {
            replica: max(
                FADES * self._most.get(replica, 0), self._missing.get(replica, lacks) - lacks
            )
            for replica, lacks in missing.items()
        }
        self._missing = dict(missing)

    def soon(self, known: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Those that may be there at one of the next readings, but for the ones already known."""
        new = [(key, broker) for key, broker in self._missing if key not in known]
        urgent = {key.topic for key, _ in self._within(new, dict.fromkeys(self.listed, 0))}
        further = {t: count // ENTRIES_A_READING for t, count in self.listed.items()}
        together = [replica for replica in new if replica[0].topic in urgent]
        return frozenset(key for key, _ in self._within(together, further))

    def _within(self, replicas: Iterable[Replica], further: Mapping[str, int]) -> list[Replica]:
        return [
            replica
            for replica in replicas
            if self._missing[replica]
            <= 2 * FETCH_BYTES + (READINGS_AHEAD + further[replica[0].topic]) * self._most[replica]
        ]
