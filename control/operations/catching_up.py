"""Which new replicas are about to catch up with their leader, and may be throttled no more. Pure.

From the fetch with which a new replica reaches the leader's end, producers with acks=all wait for
it (Kafka's Partition.maybeIncrementLeaderHW). Two throttles can hold its fetches back even then:

* The leader's, until the controller has taken it into the ISR
  (ReplicaManager.shouldLeaderThrottle): each time up to replica.fetch.wait.max.ms, half a second,
  as long as the throttle is used up. So the leader stops throttling a partition some seconds
  before; the broker that receives it still does.
* The follower's, once the last new replica is there: the old ones go, with a new leader epoch the
  fetcher begins anew, does not know yet that it lacks nothing (PartitionFetchState.lag), and does
  not ask for it while the throttle is used up. So that one stops just before, as far as what lacks
  is no more than the throttle lets through in a second anyway.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from control.model.ids import TopicPartition

FETCH_BYTES: Final = 1 << 20
"""What comes of a partition at once: the default of replica.fetch.max.bytes."""
READINGS_AHEAD: Final = 3
BUDGET_S: Final = 1.0
"""Of the throttle of each broker that receives."""

FADES: Final = 0.8
"""Of what came at most, at each reading: a throttle that was lowered is forgotten."""

Replica = tuple[TopicPartition, int]


@dataclass(slots=True, kw_only=True)
class CatchUpWatch:
    """Remembers how much came of each new replica between two readings, at most."""

    _missing: dict[Replica, int] = field(default_factory=dict)
    _most: dict[Replica, float] = field(default_factory=dict)
    _brokers: dict[TopicPartition, list[int]] = field(default_factory=dict)

    def read(self, missing: Mapping[Replica, int]) -> None:
        """Bytes that each replica on its way still lacks."""
        self._most = {
            replica: max(
                FADES * self._most.get(replica, 0), self._missing.get(replica, lacks) - lacks
            )
            for replica, lacks in missing.items()
        }
        self._missing = dict(missing)
        self._brokers = {}
        for key, broker in missing:
            self._brokers.setdefault(key, []).append(broker)

    def soon(self) -> frozenset[TopicPartition]:
        """Those of which a replica may be there within a few readings."""
        return frozenset(
            key for key, broker in self._missing if self._is_near((key, broker), READINGS_AHEAD)
        )

    def next(self, known: Collection[TopicPartition], rate: int) -> frozenset[TopicPartition]:
        """Those that may be all there at the next reading: as many as lack no more bytes together
        than a broker takes in BUDGET_S at this rate, those known first."""
        spent: dict[int, int] = {}
        near = [key for key in self._brokers if all(map(self._is_next, self._replicas(key)))]
        found = set()
        for key in sorted(near, key=lambda key: (key not in known, self._lacks(key), key)):
            replicas = self._replicas(key)
            after = {b: spent.get(b, 0) + self._missing[key, b] for _, b in replicas}
            if key in known or max(after.values()) <= BUDGET_S * rate:
                spent |= after
                found.add(key)
        return frozenset(found)

    def _is_next(self, replica: Replica) -> bool:
        return self._is_near(replica, 1)

    def _is_near(self, replica: Replica, readings: int) -> bool:
        return self._missing[replica] <= 2 * FETCH_BYTES + readings * self._most[replica]

    def _replicas(self, key: TopicPartition) -> list[Replica]:
        return [(key, broker) for broker in self._brokers[key]]

    def _lacks(self, key: TopicPartition) -> int:
        return sum(self._missing[replica] for replica in self._replicas(key))
