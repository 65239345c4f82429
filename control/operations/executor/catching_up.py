"""Finds new replicas that are about to catch up with their leader, to throttle them no longer.
Pure.

From the fetch with which a new replica reaches the leader's end, producers with acks=all wait for
it (Kafka's Partition.maybeIncrementLeaderHW). Two throttles can hold its fetches back even then:

* The leader's, until the controller has taken it into the ISR
  (ReplicaManager.shouldLeaderThrottle): each time up to replica.fetch.wait.max.ms, half a second,
  as long as the throttle is used up. So the leader stops throttling a partition some seconds
  before; the broker that receives it still does.
* The follower's, once the last new replica is there: the old ones go, with a new leader epoch the
  fetcher begins anew, does not know yet that it lacks nothing (PartitionFetchState.lag), and does
  not ask for it while the throttle is used up. So that one stops just before.

What is let go passes the throttle by, and of small partitions that would be all there is: so of
it no more comes to a broker, or goes from it, than a tenth on top of the throttle, as measured over
half a minute, and nothing to a broker in the first ten seconds. Worked example: 400 partitions of 1
MiB come to a broker at 4 MiB/s, which takes 100 s. 4 come in each second, and later in every tenth
second 4 more, let go: together 92 s.

Of those at a follower two seconds' worth go at a time. What producers feel: docs/decisions/0012.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from control.model.ids import TopicPartition
from control.operations.reassignment.producer_traffic import EARNED

FETCH_BYTES: Final = 1 << 20
"""What comes of a partition at once: the default of replica.fetch.max.bytes."""
LEADER_READINGS: Final = 4
"""A leader's throttle goes so many readings ahead."""
FOLLOWER_READINGS: Final = 2
"""A follower's: what Kafka's average of ten seconds lets pass may come in one of them."""
UNEARNED_S: Final = 10.0
"""Of what comes to a broker nothing is earned in so many first seconds, Kafka's average: a throttle
comes unevenly then, and in a move of seconds more would be more than a tenth."""
COUNTED_S: Final = 30.0
"""What came in so many seconds counts: several times Kafka's average of ten."""
AT_A_TIME_S: Final = 2.0
"""Let go at a follower, and not yet there."""

FADES: Final = 0.8
"""Of what came at most, at each reading: a throttle that was lowered is forgotten."""

Replica = tuple[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Bytes that each broker received or sent in so many seconds, and those of them that were not
    throttled; both in seconds of the throttle's rate."""

    seconds: float
    came_s: Mapping[int, float]
    passed_s: Mapping[int, float]


@dataclass(slots=True, kw_only=True)
class Allowance:
    """Bounds the unthrottled bytes of each broker, in seconds of the throttle's rate. A broker
    earns EARNED of the last COUNTED_S, and nothing in the first `unearned_s`. It pays for
    unthrottled bytes beyond the rate, never for throttled ones, however uneven."""

    unearned_s: float = 0.0
    _came: dict[int, int] = field(default_factory=dict)
    _passed: dict[int, int] = field(default_factory=dict)
    _spans: deque[_Span] = field(default_factory=deque)
    _seconds: float = 0.0
    """Of the spans."""
    _age_s: float = 0.0
    _owed_s: dict[int, float] = field(default_factory=dict)

    def note(self, broker: int, came: int, *, is_held: bool) -> None:
        """So many bytes came, or went, throttled or let go."""
        self._came[broker] = self._came.get(broker, 0) + came
        if not is_held:
            self._passed[broker] = self._passed.get(broker, 0) + came

    def settle(self, seconds: float, rate: int) -> None:
        """So much time has passed since the last, at this rate."""
        came_s, passed_s = (
            {broker: size / rate for broker, size in sizes.items()}
            for sizes in (self._came, self._passed)
        )
        self._spans.append(_Span(seconds=seconds, came_s=came_s, passed_s=passed_s))
        self._seconds += seconds
        self._age_s += seconds
        while self._seconds - self._spans[0].seconds >= COUNTED_S:
            self._seconds -= self._spans.popleft().seconds
        self._came.clear()
        self._passed.clear()
        brokers = {broker for span in self._spans for broker in span.passed_s}
        self._owed_s = {broker: self._owed_by(broker) for broker in brokers}

    def of(self, broker: int) -> float:
        """Seconds of the rate that a broker may get unthrottled at once."""
        earned_s = min(max(self._age_s - self.unearned_s, 0.0), COUNTED_S)
        return EARNED * earned_s - self._owed_s.get(broker, 0.0)

    def _owed_by(self, broker: int) -> float:
        came_s = sum(span.came_s.get(broker, 0.0) for span in self._spans)
        passed_s = sum(span.passed_s.get(broker, 0.0) for span in self._spans)
        return max(min(passed_s, came_s - self._seconds), 0.0)


@dataclass(slots=True, kw_only=True)
class CatchUpWatch:
    """Remembers how much came of each new replica between two readings, at most."""

    _missing: dict[Replica, int] = field(default_factory=dict)
    _most: dict[Replica, float] = field(default_factory=dict)
    _brokers: dict[TopicPartition, list[int]] = field(default_factory=dict)
    _leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    _receiving: Allowance = field(default_factory=lambda: Allowance(unearned_s=UNEARNED_S))
    _sending: Allowance = field(default_factory=Allowance)
    _read_s: float = 0.0
    _held: tuple[frozenset[TopicPartition], frozenset[TopicPartition]] | None = None
    """At leaders and at followers; None unless told since the last reading."""
    _counted_s: float = 0.0

    def read(
        self,
        missing: Mapping[Replica, int],
        *,
        moving: Collection[TopicPartition],
        leaders: Mapping[TopicPartition, int],
        at_s: float,
    ) -> None:
        """Bytes that each new replica still lacks, which partitions are on their way, and who
        leads them; a monotonic clock."""
        if self._held is not None:
            self._note_what_came(missing, leaders, *self._held)
            self._counted_s += at_s - self._read_s
            self._held = None
        self._most = {
            replica: max(
                FADES * self._most.get(replica, 0), self._missing.get(replica, lacks) - lacks
            )
            for replica, lacks in missing.items()
        }
        self._missing, self._leaders, self._read_s = dict(missing), dict(leaders), at_s
        self._brokers = {}
        for key, broker in missing:
            if key in moving:
                self._brokers.setdefault(key, []).append(broker)

    def _note_what_came(
        self,
        missing: Mapping[Replica, int],
        leaders: Mapping[TopicPartition, int],
        at_leaders: Collection[TopicPartition],
        at_followers: Collection[TopicPartition],
    ) -> None:
        for (key, broker), lacked in self._missing.items():
            came = max(lacked - missing.get((key, broker), 0), 0)
            leader = self._leaders.get(key, leaders.get(key, -1))
            self._receiving.note(broker, came, is_held=key in at_followers)
            self._sending.note(leader, came, is_held=key in at_leaders)

    def let_go(
        self,
        at_leaders: Collection[TopicPartition],
        at_followers: Collection[TopicPartition],
        rate: int,
    ) -> tuple[frozenset[TopicPartition], frozenset[TopicPartition]]:
        """Partitions that leaders should stop throttling, and those that followers should. Of the
        first, a replica may catch up within a few readings; of the second, all replicas may sooner.
        The brokers' allowances bound both."""
        for allowance in (self._receiving, self._sending):
            allowance.settle(self._counted_s, rate)
        self._counted_s = 0.0
        led, followed = frozenset(at_leaders), frozenset(at_followers)
        soon, next_ = self._soon(led), self._next(followed, rate, held=led)
        self._held = led - soon, followed - next_
        return soon, next_

    def _soon(self, listed: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Costs nothing by itself, as followers still throttle: with a single one it is never
        more than the throttle; with several what went is counted."""
        return frozenset(
            key
            for key in listed
            if any(self._near(key, LEADER_READINGS))
            and self._sending.of(self._leaders.get(key, -1)) > 0
        )

    def _next(
        self, listed: frozenset[TopicPartition], rate: int, *, held: frozenset[TopicPartition]
    ) -> frozenset[TopicPartition]:
        """The nearest first. None that its leader still throttles, or did a moment ago: it would
        come so fast that the leader held it back at its end."""
        free_s = self._received_s(self._brokers.keys() - listed, rate)
        known = (listed - held) & self._brokers.keys()
        near = [key for key in known if all(self._near(key, FOLLOWER_READINGS))]
        room = {
            broker: min(self._receiving.of(broker), AT_A_TIME_S) - free_s.get(broker, 0.0)
            for broker in self._received_s(near, rate)
        }
        nearest = sorted(near, key=lambda key: (sum(self._received_s([key], 1).values()), key))
        return frozenset(key for key in nearest if _take(room, self._received_s([key], rate)))

    def _received_s(self, keys: Iterable[TopicPartition], rate: int) -> dict[int, float]:
        """Bytes that these partitions still lack, by receiving broker, in seconds of the rate."""
        found: dict[int, float] = {}
        for key in keys:
            for broker in self._brokers[key]:
                found[broker] = found.get(broker, 0.0) + self._missing[key, broker] / rate
        return found

    def _near(self, key: TopicPartition, readings: int) -> Iterator[bool]:
        """Whether each new replica may have all that it lacks within so many readings."""
        for broker in self._brokers.get(key, ()):
            ahead = 2 * FETCH_BYTES + readings * self._most[key, broker]
            yield self._missing[key, broker] <= ahead


def _take(room: dict[int, float], costs: Mapping[int, float]) -> bool:
    """Take this from the room of each broker, if all have so much; what costs nothing may go."""
    if any(cost > max(room[broker], 0.0) for broker, cost in costs.items()):
        return False
    for broker, cost in costs.items():
        room[broker] -= cost
    return True
