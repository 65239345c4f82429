"""Which new replicas are about to catch up with their leader, and may be throttled no more. Pure.

From the fetch with which a new replica reaches the leader's end, producers with acks=all wait for
it (Kafka's Partition.maybeIncrementLeaderHW). Two throttles can hold its fetches back even then:

* The leader's, until the controller has taken it into the ISR
  (ReplicaManager.shouldLeaderThrottle): each time up to replica.fetch.wait.max.ms, half a second,
  as long as the throttle is used up. So the leader stops throttling a partition some seconds
  before; the broker that receives it still does.
* The follower's, once the last new replica is there: the old ones go, with a new leader epoch the
  fetcher begins anew, does not know yet that it lacks nothing (PartitionFetchState.lag), and does
  not ask for it while the throttle is used up. So that one stops just before.

What is let go passes the throttle by, and of small partitions that would be all there is: so each
broker has an allowance, some seconds' worth of the throttle at once, and a twentieth of it for
ever. Worked example: 400 partitions of 1 MiB come to a broker at 4 MiB/s. 8 of them are let go at
once; from then on, while 80 come at the throttle, 4 are let go.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from control.model.ids import TopicPartition

FETCH_BYTES: Final = 1 << 20
"""What comes of a partition at once: the default of replica.fetch.max.bytes."""
READINGS_AHEAD: Final = 3
LEADERS_AT_ONCE_S: Final = 3.0
FOLLOWERS_AT_ONCE_S: Final = 2.0
"""Seconds' worth of the throttle."""
REGAINED: Final = 0.05
"""Of every second."""
FADES: Final = 0.8
"""Of what came at most, at each reading: a throttle that was lowered is forgotten."""

Replica = tuple[TopicPartition, int]


@dataclass(slots=True, kw_only=True)
class Allowance:
    """What may pass the throttle by, in seconds' worth of it, for each broker by itself."""

    at_once_s: float
    _spent_s: dict[int, float] = field(default_factory=dict)

    def regain(self, seconds: float) -> None:
        """So much time has passed."""
        regained = seconds * REGAINED
        self._spent_s = {b: s - regained for b, s in self._spent_s.items() if s > regained}

    def take(self, seconds: Mapping[int, float]) -> bool:
        """Spend on each of these brokers, if all have so much."""
        after = {broker: self._spent_s.get(broker, 0.0) + s for broker, s in seconds.items()}
        if any(spent > self.at_once_s for spent in after.values()):
            return False
        self._spent_s |= after
        return True


@dataclass(slots=True, kw_only=True)
class CatchUpWatch:
    """Remembers how much came of each new replica between two readings, at most."""

    at_leaders: Allowance = field(default_factory=lambda: Allowance(at_once_s=LEADERS_AT_ONCE_S))
    at_followers: Allowance = field(
        default_factory=lambda: Allowance(at_once_s=FOLLOWERS_AT_ONCE_S)
    )
    _missing: dict[Replica, int] = field(default_factory=dict)
    _most: dict[Replica, float] = field(default_factory=dict)
    _brokers: dict[TopicPartition, list[int]] = field(default_factory=dict)
    _leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    _read_s: float | None = None

    def read(
        self,
        missing: Mapping[Replica, int],
        *,
        leaders: Mapping[TopicPartition, int],
        at_s: float,
    ) -> None:
        """Bytes that each replica on its way still lacks, and who leads; a monotonic clock."""
        self._most = {
            replica: max(
                FADES * self._most.get(replica, 0), self._missing.get(replica, lacks) - lacks
            )
            for replica, lacks in missing.items()
        }
        self._missing, self._leaders = dict(missing), leaders
        self._brokers = {}
        for key, broker in missing:
            self._brokers.setdefault(key, []).append(broker)
        for allowance in (self.at_leaders, self.at_followers):
            allowance.regain(0.0 if self._read_s is None else at_s - self._read_s)
        self._read_s = at_s

    def soon(self, listed: Collection[TopicPartition], rate: int) -> frozenset[TopicPartition]:
        """Of those that leaders throttle, those of which a replica may be there within a few
        readings, as far as the allowance of their leaders goes; the nearest first. Taken is
        taken: ask once."""
        near = (key for key in listed if any(self._near(key, READINGS_AHEAD)))
        return frozenset(
            key
            for key in self._nearest_first(near)
            if self.at_leaders.take({self._leaders.get(key, -1): self._lacks(key) / rate})
        )

    def next(self, listed: Collection[TopicPartition], rate: int) -> frozenset[TopicPartition]:
        """Of those that followers throttle, those that may be all there at the next reading, as
        far as the allowance of all who receive them goes; the nearest first. Taken is taken."""
        near = (key for key in listed if key in self._brokers and all(self._near(key, 1)))
        return frozenset(
            key
            for key in self._nearest_first(near)
            if self.at_followers.take({b: self._missing[key, b] / rate for b in self._brokers[key]})
        )

    def _nearest_first(self, keys: Iterable[TopicPartition]) -> list[TopicPartition]:
        return sorted(keys, key=lambda key: (self._lacks(key), key))

    def _near(self, key: TopicPartition, readings: int) -> Iterator[bool]:
        """Of each new replica, whether so many readings may bring what it lacks."""
        for broker in self._brokers.get(key, ()):
            ahead = 2 * FETCH_BYTES + readings * self._most[key, broker]
            yield self._missing[key, broker] <= ahead

    def _lacks(self, key: TopicPartition) -> int:
        return sum(self._missing[key, broker] for broker in self._brokers[key])
