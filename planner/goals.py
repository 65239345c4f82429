"""Goals: what a plan reaches, what it may touch, and how even is even enough."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from typing import Final

import numpy as np

from control.model.ids import TopicPartition
from planner.columns import Floats

INTERNAL: Final = "__"
"""Names of Kafka's own topics begin so."""
_ROUNDING: Final = 1e-9
_ANYHOW: Final = 1e3
"""Times its share: as good as no limit."""


class Goal(StrEnum):
    """BALANCE evens replicas, leaders and bytes; MINIMAL does so within Cruise Control's 9 %;
    RACKS only repairs what must hold (racks, removed brokers); LEADERS moves no data;
    REPLICATION changes the replication factor; RELIEVE takes bytes off single brokers; TOPICS
    spreads each topic's replicas and leaders; TRAFFIC evens bytes per second in and out."""

    BALANCE = "balance"
    MINIMAL = "minimal"
    RACKS = "racks"
    LEADERS = "leaders"
    REPLICATION = "replication"
    RELIEVE = "relieve"
    TOPICS = "topics"
    TRAFFIC = "traffic"


class GoalError(ValueError):
    """A request that cannot be planned; the message says why, and what could be."""


class ImpossibleError(GoalError):
    """A request that no plan fulfils wholly; the message says what stands in the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Allowed distance from the mean as a fraction; None leaves that figure alone. `traffic` is
    bytes per second in and out, where known; `spreads_topics`: each topic is evened for itself;
    `puts_traffic_first`: where not all can be had, numbers and bytes stay as even as they are."""

    name: str
    replicas: float | None
    leaders: float | None
    bytes: float | None
    traffic: float | None = None
    spreads_topics: bool = False
    puts_traffic_first: bool = False
    does_only_what_is_asked: bool = False
    """Racks and disks that the request does not touch stay as they are."""
    beside: float = 1.0
    """How far above their share brokers may stay (or as many times below) while racks, or
    partitions that fit nowhere else, force another to hold as much (or as few): moving what they
    have would not bring the largest down. 1: half to twice their share."""

    def is_stricter_than(self, other: "Tolerance") -> bool:
        """Whether whatever is within it is within the other as well, and not the other way round;
        of two that are about the same."""
        ours, theirs = self._shares(), other._shares()
        pairs = zip(ours, theirs, strict=True)
        is_alike = None not in (*ours[:3], *theirs[:3]) and self._manner() == other._manner()
        is_within = all(b is None or (a is not None and a <= b) for a, b in pairs)
        return is_alike and is_within and ours != theirs

    def _shares(self) -> tuple[float | None, ...]:
        return self.replicas, self.leaders, self.bytes, self.traffic

    def _manner(self) -> tuple[bool, bool]:
        return self.spreads_topics, self.puts_traffic_first


def whole_bounds(mean: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """(fewest, most) whole numbers within the tolerance; where it has room for none, the two
    around the mean."""
    low = np.minimum(np.ceil(mean * (1 - tolerance) - _ROUNDING), np.floor(mean + _ROUNDING))
    high = np.maximum(np.floor(mean * (1 + tolerance) + _ROUNDING), np.ceil(mean - _ROUNDING))
    return low, high


_BALANCED: Final = Tolerance(name="balanced", replicas=0.03, leaders=0.03, bytes=0.035, traffic=0.1)
_EVEN: Final = Tolerance(
    name="even", replicas=0.0, leaders=0.0, bytes=0.01, traffic=0.05, beside=0.4
)
_MINIMAL: Final = Tolerance(name="minimal", replicas=0.09, leaders=0.09, bytes=0.09, beside=_ANYHOW)
_RACKS: Final = Tolerance(name="racks", replicas=None, leaders=None, bytes=None)
_ONLY_REMOVED: Final = Tolerance(
    name="decommission only", replicas=None, leaders=None, bytes=None, does_only_what_is_asked=True
)
"""Moves what stands on removed brokers and nothing else, however uneven the others get."""
_LEADERS: Final = Tolerance(name="leaders", replicas=None, leaders=0.0, bytes=None)
_PLACED: Final = Tolerance(
    name="placed", replicas=None, leaders=0.0, bytes=None, does_only_what_is_asked=True
)
_RELIEVED: Final = Tolerance(
    name="relieved", replicas=None, leaders=None, bytes=None, does_only_what_is_asked=True
)
_SPREAD: Final = Tolerance(
    name="spread", replicas=0.03, leaders=0.03, bytes=0.035, traffic=0.1, spreads_topics=True
)
_SPREAD_ONLY: Final = Tolerance(
    name="topics only", replicas=None, leaders=0.0, bytes=None, spreads_topics=True
)
_CALM: Final = Tolerance(
    name="traffic",
    replicas=0.09,
    leaders=0.09,
    bytes=0.09,
    traffic=0.03,
    puts_traffic_first=True,
)
_CALM_LEADERS: Final = Tolerance(
    name="leaders",
    replicas=None,
    leaders=0.09,
    bytes=None,
    traffic=0.03,
    puts_traffic_first=True,
)

_ALTERNATIVES: Final[dict[Goal, tuple[Tolerance, ...]]] = {
    Goal.BALANCE: (_BALANCED, _EVEN, _MINIMAL),
    Goal.MINIMAL: (_MINIMAL, _BALANCED, _EVEN),
    Goal.RACKS: (_RACKS, _MINIMAL, _BALANCED),
    Goal.LEADERS: (_LEADERS,),
    Goal.REPLICATION: (_PLACED, _MINIMAL, _BALANCED),
    Goal.RELIEVE: (_RELIEVED, _MINIMAL, _BALANCED),
    Goal.TOPICS: (_SPREAD, _SPREAD_ONLY, _BALANCED),
    Goal.TRAFFIC: (_CALM, _CALM_LEADERS, _EVEN),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Goal and scope. `topics` are names or shell patterns, `partitions` names (``orders-3``);
    empty for all. `keep_partitions` stay as they are; `exclude_brokers` neither lose nor receive
    a replica; `require_racks` refuses while a broker that may hold replicas has none."""

    goal: Goal = Goal.BALANCE
    topics: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    exclude_topics: tuple[str, ...] = ()
    keep_partitions: tuple[str, ...] = ()
    exclude_brokers: tuple[int, ...] = ()
    add_brokers: tuple[int, ...] = ()
    remove_brokers: tuple[int, ...] = ()
    relieve_brokers: tuple[int, ...] = ()
    replication_factor: int | None = None
    require_racks: bool = False
    alternatives: int = 3

    def without_internal(self) -> "PlanRequest":
        """The same request; a new replication factor is for internal topics only where these are
        named."""
        is_named = any(name.startswith(INTERNAL) for name in (*self.topics, *self.partitions))
        if self.goal is not Goal.REPLICATION or is_named:
            return self
        return replace(self, exclude_topics=(*self.exclude_topics, f"{INTERNAL}*"))

    @property
    def is_everything(self) -> bool:
        """Whether every partition may move."""
        wanted, kept = (self.topics, self.partitions), (self.exclude_topics, self.keep_partitions)
        return not any((*wanted, *kept))

    def has_topic(self, topic: str) -> bool:
        """Whether the plan may move this topic."""
        if any(fnmatchcase(topic, pattern) for pattern in self.exclude_topics):
            return False
        return not self.topics or any(fnmatchcase(topic, pattern) for pattern in self.topics)

    def scope(self) -> Callable[[TopicPartition], bool]:
        """Whether the plan may move a partition: for asking about many."""
        wanted, kept = frozenset(self.partitions), frozenset(self.keep_partitions)
        has_topic = cache(self.has_topic)

        def may_touch(key: TopicPartition) -> bool:
            if not has_topic(key.topic):
                return False
            name = str(key) if wanted or kept else ""
            return (not wanted or name in wanted) and name not in kept

        return may_touch

    def tolerances(self) -> tuple[Tolerance, ...]:
        """One per alternative, the recommended first."""
        offered = _ALTERNATIVES[self.goal]
        if self.goal is Goal.MINIMAL and self.remove_brokers:
            offered = (_MINIMAL, _ONLY_REMOVED, _BALANCED)
        return offered[: max(1, self.alternatives)]
