"""What a plan should reach, what it may touch, and how even is even enough."""

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

import numpy as np

from control.planner.columns import Floats
from control.planner.topology import Topology, TopologyPartition

NAMES_MAX: Final = 3
_ROUNDING: Final = 1e-9


class Goal(StrEnum):
    """BALANCE evens replicas, leaders and bytes; MINIMAL does so within Cruise Control's 9 %;
    RACKS only repairs what must hold (racks, removed brokers); LEADERS moves no data;
    REPLICATION changes the replication factor; RELIEVE takes bytes off single brokers."""

    BALANCE = "balance"
    MINIMAL = "minimal"
    RACKS = "racks"
    LEADERS = "leaders"
    REPLICATION = "replication"
    RELIEVE = "relieve"


class GoalError(ValueError):
    """A request that cannot be planned; the message says why, and what could be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Allowed distance from the mean as a fraction; None leaves that figure alone."""

    name: str
    replicas: float | None
    leaders: float | None
    bytes: float | None


def whole_bounds(mean: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """(fewest, most) whole numbers within the tolerance; where it has room for none, the two
    around the mean."""
    low = np.minimum(np.ceil(mean * (1 - tolerance) - _ROUNDING), np.floor(mean + _ROUNDING))
    high = np.maximum(np.floor(mean * (1 + tolerance) + _ROUNDING), np.ceil(mean - _ROUNDING))
    return low, high


_BALANCED: Final = Tolerance(name="balanced", replicas=0.03, leaders=0.03, bytes=0.035)
_EVEN: Final = Tolerance(name="even", replicas=0.0, leaders=0.0, bytes=0.01)
_MINIMAL: Final = Tolerance(name="minimal", replicas=0.09, leaders=0.09, bytes=0.09)
_RACKS: Final = Tolerance(name="racks", replicas=None, leaders=None, bytes=None)
_LEADERS: Final = Tolerance(name="leaders", replicas=None, leaders=0.0, bytes=None)
_PLACED: Final = Tolerance(name="placed", replicas=None, leaders=0.0, bytes=None)
_RELIEVED: Final = Tolerance(name="relieved", replicas=None, leaders=None, bytes=None)

_ALTERNATIVES: Final[dict[Goal, tuple[Tolerance, ...]]] = {
    Goal.BALANCE: (_BALANCED, _EVEN, _MINIMAL),
    Goal.MINIMAL: (_MINIMAL, _BALANCED, _EVEN),
    Goal.RACKS: (_RACKS, _MINIMAL, _BALANCED),
    Goal.LEADERS: (_LEADERS,),
    Goal.REPLICATION: (_PLACED, _MINIMAL, _BALANCED),
    Goal.RELIEVE: (_RELIEVED, _MINIMAL, _BALANCED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Goal and scope. `topics` are names or shell patterns, empty for all; `exclude_brokers`
    neither lose nor receive a replica; `keep_partitions` (``orders-3``) stay as they are."""

    goal: Goal = Goal.BALANCE
    topics: tuple[str, ...] = ()
    exclude_topics: tuple[str, ...] = ()
    keep_partitions: tuple[str, ...] = ()
    exclude_brokers: tuple[int, ...] = ()
    add_brokers: tuple[int, ...] = ()
    remove_brokers: tuple[int, ...] = ()
    relieve_brokers: tuple[int, ...] = ()
    replication_factor: int | None = None
    alternatives: int = 3

    @property
    def is_everything(self) -> bool:
        """Whether every partition may move."""
        return not (self.topics or self.exclude_topics or self.keep_partitions)

    def has_topic(self, topic: str) -> bool:
        """Whether the plan may move this topic."""
        if any(fnmatchcase(topic, pattern) for pattern in self.exclude_topics):
            return False
        return not self.topics or any(fnmatchcase(topic, pattern) for pattern in self.topics)

    def may_touch(self, partition: TopologyPartition) -> bool:
        """Whether the plan may move this partition."""
        return self.has_topic(partition.topic) and str(partition.key) not in self.keep_partitions

    def tolerances(self) -> tuple[Tolerance, ...]:
        """One per alternative, the recommended first."""
        return _ALTERNATIVES[self.goal][: max(1, self.alternatives)]

    def check(self, topology: Topology) -> None:
        """Whether the request makes sense for this topology.

        :raises GoalError: unknown broker or topic, contradictory lists, no broker left, or a wish
            that no assignment can fulfil, with the proof.
        """
        known = set(topology.broker_ids)
        for word, ids in (
            ("exclude", self.exclude_brokers),
            ("add", self.add_brokers),
            ("remove", self.remove_brokers),
            ("relieve", self.relieve_brokers),
        ):
            for id_ in ids:
                if id_ not in known:
                    raise GoalError(f"broker {id_} to {word} is not among {sorted(known)}")
        kept = set(self.add_brokers) | set(self.exclude_brokers)
        both = sorted(set(self.remove_brokers) & kept)
        if both:
            raise GoalError(f"brokers {both} cannot both stay and be removed")
        targets = known - set(self.remove_brokers) - set(self.exclude_brokers)
        if not targets:
            raise GoalError("no broker is left that may hold replicas")
        if self.topics and not any(self.has_topic(p.topic) for p in topology.partitions):
            raise GoalError(f"no topic matches {', '.join(self.topics)}")
        self._check_goal(topology, targets)

    def _check_goal(self, topology: Topology, targets: set[int]) -> None:
        if self.goal is Goal.RELIEVE and not self.relieve_brokers:
            raise GoalError("relieve which broker? name it")
        if (self.goal is Goal.REPLICATION) != (self.replication_factor is not None):
            raise GoalError("a replication factor goes with the goal replication, and only with it")
        if self.goal is Goal.REPLICATION:
            self._check_factor(topology, targets)
        elif self.remove_brokers:
            self._check_room(topology, targets)

    def _check_factor(self, topology: Topology, targets: set[int]) -> None:
        factor = self.replication_factor or 0
        if factor < 1:
            raise GoalError(f"a replication factor is at least 1, not {factor}")
        removed, excluded = set(self.remove_brokers), set(self.exclude_brokers)
        held = [
            str(p.key)
            for p in filter(self.may_touch, topology.partitions)
            if len(excluded.intersection(p.replicas)) > factor
        ]
        if held:
            raise GoalError(
                f"replication factor {factor} is impossible: brokers {sorted(excluded)} are left "
                f"alone and hold more replicas of {_named(held)}. Let one of them take part"
            )
        stuck = []
        for partition in filter(self.may_touch, topology.partitions):
            possible = len(targets | (set(partition.replicas) - removed))
            if possible < factor:
                stuck.append((possible, str(partition.key)))
        if stuck:
            most = min(possible for possible, _ in stuck)
            raise GoalError(
                f"replication factor {factor} is impossible: replicas are on distinct brokers, and "
                f"only {most} may hold {_named([name for _, name in stuck])}. "
                f"At most {most} is possible; or add brokers"
            )

    def _check_room(self, topology: Topology, targets: set[int]) -> None:
        """A replica of a removed broker needs a broker that has none of its partition."""
        removed = set(self.remove_brokers)
        stuck = [
            str(p.key)
            for p in topology.partitions
            if not removed.isdisjoint(p.replicas)
            and self.may_touch(p)
            and len(targets.difference(p.replicas)) < len(removed.intersection(p.replicas))
        ]
        if stuck:
            raise GoalError(
                f"brokers {sorted(removed)} cannot be emptied: {_named(stuck)} would need brokers "
                f"that hold no replica of it yet, and of {sorted(targets)} there are too few. "
                f"Keep one of them, add a broker, or lower the replication factor first"
            )


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return ", ".join(names[:NAMES_MAX]) + more
