"""Whether a request makes sense for a cluster, and the proof where it cannot be fulfilled. Pure."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from typing import Final

from control.model.ids import no_partition_words
from control.model.units import brokers_text, bytes_text
from planner.goals import Goal, GoalError, ImpossibleError, PlanRequest
from planner.immovable import Hindrance, Immovable
from planner.racks import unknown_words
from planner.topology import Topology, TopologyPartition

NAMES_MAX: Final = 3


def check_request(topology: Topology, request: PlanRequest, stuck: Immovable) -> None:
    """Answers nothing when the request can be planned. `stuck`: partitions that it cannot move.

    :raises GoalError: unknown broker, topic or partition, contradictory lists, no broker left, or
        a wish that no assignment can fulfil, with the proof and what could be.
    """
    known = set(topology.broker_ids)
    _check_brokers(request, known)
    unfit = {b.id: b.why_no_target for b in topology.brokers if b.why_no_target}
    removed, excluded = set(request.remove_brokers), set(request.exclude_brokers)
    for id_ in sorted(unfit.keys() & set(request.add_brokers)):
        first = "uncordon" if unfit[id_] == "is cordoned" else "start"
        raise ImpossibleError(
            f"broker {id_} {unfit[id_]} and gets no replica: {first} it first, or plan for "
            f"{brokers_text(known - unfit.keys() - removed)}"
        )
    _check_cordoned(topology, request)
    targets = known - removed - excluded - unfit.keys()
    if not targets:
        raise ImpossibleError(
            "no broker is left that may hold replicas: decommission or exclude fewer brokers"
        )
    _check_names(topology, request, stuck)
    _check_racks(topology, request, targets)
    feasibility = _Feasibility(topology, request, frozenset(targets), stuck)
    feasibility.check_goal()


def named(names: list[str]) -> str:
    """The first few of many."""
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return ", ".join(names[:NAMES_MAX]) + more


def _check_brokers(request: PlanRequest, known: set[int]) -> None:
    for word, ids in (
        ("exclude", request.exclude_brokers),
        ("add", request.add_brokers),
        ("remove", request.remove_brokers),
        ("relieve", request.relieve_brokers),
    ):
        for id_ in ids:
            if id_ not in known:
                raise GoalError(f"broker {id_} to {word} is not among {brokers_text(known)}")
    kept = set(request.add_brokers) | set(request.exclude_brokers)
    both = sorted(set(request.remove_brokers) & kept)
    if both:
        raise GoalError(f"brokers {both} cannot both stay and be decommissioned")


def _check_cordoned(topology: Topology, request: PlanRequest) -> None:
    """A partition can leave one cordoned broker only if it leaves all: no list may name one."""
    removed = set(request.remove_brokers)
    cordoned = {b.id for b in topology.brokers if b.is_cordoned} - removed
    for id_ in sorted(cordoned.intersection(request.relieve_brokers)):
        raise ImpossibleError(
            f"broker {id_} is cordoned, so Kafka refuses a plan that leaves it some replicas: "
            "uncordon it first, or decommission it"
        )
    may_touch = request.scope()
    stuck = [
        p
        for p in topology.partitions
        if not cordoned.isdisjoint(p.replicas)
        and not removed.isdisjoint(p.replicas)
        and may_touch(p.key)
    ]
    if stuck:
        others = sorted(cordoned.intersection(chain.from_iterable(p.replicas for p in stuck)))
        raise ImpossibleError(
            f"{brokers_text(removed)} cannot be decommissioned: {brokers_text(others)}, cordoned, "
            f"may not stay in the lists of {named([str(p.key) for p in stuck])}: Kafka refuses "
            "every list with a cordoned broker. Uncordon these, or decommission them as well"
        )


def _check_names(topology: Topology, request: PlanRequest, stuck: Immovable) -> None:
    topics = {partition.topic for partition in topology.partitions}
    plain = [name for name in request.exclude_topics if not set(name) & set("*?[")]
    for pattern in (*request.topics, *plain):
        if not any(fnmatchcase(topic, pattern) for topic in topics):
            raise GoalError(f"no topic matches {pattern}{_like(pattern, topics)}")
    if request.topics and not any(map(request.has_topic, topics)):
        raise GoalError("no topic is left: all that match are excluded")
    named_ones = (*request.partitions, *request.keep_partitions)
    keys = {str(p.key) for p in topology.partitions} if named_ones else set()
    for name in named_ones:
        if name not in keys:
            word = "move" if name in request.partitions else "keep"
            raise GoalError(f"partition {name} to {word}: {_no_partition(name, keys)}")
    if not stuck and not request.partitions:
        return
    may_touch = request.scope()
    wanted = [p for p in topology.partitions if may_touch(p.key)]
    if request.partitions and not wanted:
        raise GoalError("no partition is left: all that are named are kept, or of other topics")
    if wanted and stuck and all(p.key in stuck for p in wanted):
        met = {stuck[p.key] for p in wanted}
        if request.topics or request.partitions or met.isdisjoint(_PASSING):
            raise ImpossibleError(_nothing_left(wanted, stuck))


_PASSING: Final = frozenset({Hindrance.REASSIGNING, Hindrance.DOWN})
"""A plan of everything may have nothing to move for these, and says so."""


_WHY: Final = {
    Hindrance.LEADERLESS: ("no leader", "Bring back a broker of their replicas"),
    Hindrance.REASSIGNING: ("a reassignment under way", "Wait until it is done, or cancel it"),
    Hindrance.CORDONED: (
        "a replica on a cordoned broker",
        "Uncordon the broker, or decommission it",
    ),
    Hindrance.DOWN: (
        "a replica on a broker that does not run",
        "Start the broker, or decommission it",
    ),
}


def _nothing_left(wanted: Iterable[TopologyPartition], stuck: Immovable) -> str:
    keys = [p.key for p in wanted]
    met = set(map(stuck.__getitem__, keys))
    why, how = zip(*(_WHY[each] for each in Hindrance if each in met), strict=True)
    have = "have" if len(keys) > 1 else "has"
    return (
        f"no partition is left: {named(list(map(str, keys)))} {have} {', or '.join(why)} and "
        f"cannot move. {'; '.join(how)}"
    )


def _check_racks(topology: Topology, request: PlanRequest, targets: Collection[int]) -> None:
    without = [b.id for b in topology.brokers if b.rack is None and b.id in targets]
    if request.require_racks and without:
        raise GoalError(
            f"racks are required, and {unknown_words(without)}: set broker.rack there and restart, "
            "exclude those brokers, or do not require racks"
        )


def _no_partition(name: str, keys: Iterable[str]) -> str:
    topic, _, number = name.rpartition("-")
    count = sum(key.rpartition("-")[0] == topic for key in keys)
    if number.isdecimal() and count:
        return no_partition_words(topic, number, count)
    return f"it does not exist{_like(name, keys)}"


def _like(name: str, names: Iterable[str]) -> str:
    alike = difflib.get_close_matches(name, sorted(names), n=1)
    return f"; {alike[0]} exists" if alike else ""


@dataclass(frozen=True, slots=True)
class _Feasibility:
    topology: Topology
    request: PlanRequest
    targets: frozenset[int]
    stuck: Immovable

    def check_goal(self) -> None:
        """Checks the goal's needs, and whether brokers and disks can give them."""
        request, partitions = self.request, self.topology.partitions
        if request.goal is Goal.RELIEVE and not request.relieve_brokers:
            raise GoalError("name the brokers to relieve")
        if request.goal is Goal.LEADERS and request.remove_brokers:
            raise GoalError(
                f"goal leaders moves no data, so it cannot decommission "
                f"{brokers_text(request.remove_brokers)}: use goal racks, minimal or balance"
            )
        if (request.goal is Goal.REPLICATION) != (request.replication_factor is not None):
            raise GoalError("a replication factor goes with the goal replication, and only with it")
        has_traffic = any(p.in_bytes_per_s or p.out_bytes_per_s for p in partitions)
        if request.goal is Goal.TRAFFIC and not has_traffic:
            raise GoalError(
                "traffic cannot be evened: no rate is known, or nothing is written and read"
            )
        if request.goal is Goal.REPLICATION:
            self._check_factor(request.replication_factor or 0)
        elif request.remove_brokers:
            self._check_distinct()
        self._check_disks()
        self._check_added()

    def _touched(self) -> Iterable[TopologyPartition]:
        partitions, stuck = self.topology.partitions, self.stuck
        if self.request.is_everything:
            return (p for p in partitions if p.key not in stuck) if stuck else partitions
        may_touch = self.request.scope()
        return (p for p in partitions if may_touch(p.key) and p.key not in stuck)

    def _check_factor(self, factor: int) -> None:
        if factor < 1:
            raise GoalError(f"a replication factor is at least 1, not {factor}")
        removed = set(self.request.remove_brokers)
        excluded = set(self.request.exclude_brokers) - removed
        held = [str(p.key) for p in self._touched() if len(excluded & set(p.replicas)) > factor]
        if held:
            raise GoalError(
                f"replication factor {factor} is impossible: more replicas of {named(held)} "
                f"lie on excluded brokers ({brokers_text(excluded)}). Exclude fewer of them"
            )
        stuck = []
        for partition in self._touched():
            running = set(partition.replicas) - removed - self.topology.down
            possible = len(self.targets | running)
            if possible < factor:
                stuck.append((possible, str(partition.key)))
        if stuck:
            most = min(possible for possible, _ in stuck)
            raise GoalError(
                f"replication factor {factor} is impossible: replicas are on distinct brokers, and "
                f"only {most} may hold {named([name for _, name in stuck])}. "
                f"At most {most} is possible; or add brokers"
            )
        if factor > (known := len(self.topology.brokers)):
            raise GoalError(
                f"replication factor {factor} is impossible: replicas are on distinct brokers, and "
                f"there are {known}. Choose {known} at most"
            )

    def _check_distinct(self) -> None:
        """A replica of a removed broker needs a broker that has none of its partition."""
        removed = set(self.request.remove_brokers)
        stuck = [
            str(p.key)
            for p in self._touched()
            if not removed.isdisjoint(p.replicas)
            and len(self.targets.difference(p.replicas)) < len(removed.intersection(p.replicas))
        ]
        if stuck:
            raise ImpossibleError(
                f"{brokers_text(removed)} cannot be decommissioned: too few of the others "
                f"({brokers_text(self.targets)}) are without a replica of {named(stuck)}. "
                f"Keep one of them, add a broker, or lower the replication factor first"
            )

    def _check_disks(self) -> None:
        """Incoming replicas must fit on all disks together, and each of them on one disk."""
        capacity = {b.id: b.capacity_bytes for b in self.topology.brokers if b.id in self.targets}
        gone, factor = self.topology.down.union(self.request.remove_brokers), self._factor
        if not gone and factor is None:
            return
        coming = [(p, n) for p in self._touched() if (n := self._coming(p, gone))]
        if not coming:
            return
        if None not in capacity.values():
            held = self._held(capacity, self.topology.partitions)
            room = sum(max(0, (most or 0) - held[broker]) for broker, most in capacity.items())
            room += self._freed()
            wanted = sum(partition.size_bytes * number for partition, number in coming)
            if wanted > room:
                raise ImpossibleError(
                    f"there is no disk room: {bytes_text(wanted)} must come to "
                    f"{brokers_text(self.targets)}, where {bytes_text(room)} is free. "
                    f"Add a broker, delete data (retention), or {self._instead()}"
                )
        may_touch = self.request.scope()
        staying = () if self.request.is_everything else self.topology.partitions
        held = self._held(capacity, (p for p in staying if not may_touch(p.key)))
        self._check_each(
            coming, {b: most - held[b] for b, most in capacity.items() if most is not None}
        )

    def _check_added(self) -> None:
        """An empty broker that is to carry a share must have room for some replica."""
        topology = self.topology
        capacity = {
            b.id: b.capacity_bytes for b in topology.brokers if b.capacity_bytes is not None
        }
        empty = set(self.request.add_brokers) & capacity.keys()
        empty = empty.difference(*(p.replicas for p in topology.partitions)) if empty else empty
        smallest = min(self._touched(), key=lambda p: p.size_bytes, default=None) if empty else None
        for id_ in sorted(empty):
            if smallest is not None and smallest.size_bytes > capacity[id_]:
                raise ImpossibleError(
                    f"broker {id_} can carry no share: its disks take {bytes_text(capacity[id_])}, "
                    f"and the smallest replica, of {smallest.key}, holds "
                    f"{bytes_text(smallest.size_bytes)}. Give it a larger disk, or do not add it"
                )

    def _check_each(
        self, coming: Iterable[tuple[TopologyPartition, int]], most: Mapping[int, int]
    ) -> None:
        """`most`: bytes of each broker's disks once all that may leave it has left."""
        least = min(most.values(), default=0)
        stuck = [
            partition
            for partition, number in coming
            if partition.size_bytes > least and number > self._places(partition, most)
        ]
        if stuck:
            first = max(stuck, key=lambda partition: partition.size_bytes)
            others = self.targets.difference(first.replicas)
            roomiest = max(others & most.keys(), key=lambda b: (most[b], -b))
            raise ImpossibleError(
                f"there is no disk room for {named([str(p.key) for p in stuck])}: a replica of "
                f"{first.key} holds {bytes_text(first.size_bytes)}. Of {brokers_text(others)}, "
                f"broker {roomiest} takes most: {bytes_text(most[roomiest])}, once its own "
                f"partitions have left. Add a broker with a larger disk, delete data (retention), "
                f"or {self._instead()}"
            )

    def _places(self, partition: TopologyPartition, most: Mapping[int, int]) -> int:
        """Brokers without a replica of it that are large enough for one."""
        size, others = partition.size_bytes, self.targets.difference(partition.replicas)
        return sum(most.get(broker, size) >= size for broker in others)

    @staticmethod
    def _held(brokers: Iterable[int], partitions: Iterable[TopologyPartition]) -> dict[int, int]:
        held = dict.fromkeys(brokers, 0)
        for partition in partitions:
            for broker in partition.replicas:
                if broker in held:
                    held[broker] += partition.size_bytes
        return held

    def _coming(self, partition: TopologyPartition, gone: frozenset[int]) -> int:
        """Replicas that need another broker."""
        staying = sum(broker not in gone for broker in partition.replicas)
        return max(0, (self._factor or len(partition.replicas)) - staying)

    @property
    def _factor(self) -> int | None:
        return self.request.replication_factor

    def _freed(self) -> int:
        """Bytes of replicas that a smaller replication factor drops, at most."""
        factor = self._factor
        if factor is None:
            return 0
        surplus = ((p, len(p.replicas) - factor) for p in self._touched())
        return sum(partition.size_bytes * max(0, number) for partition, number in surplus)

    def _instead(self) -> str:
        if self.request.goal is Goal.REPLICATION:
            return "ask for fewer replicas, or name fewer topics"
        return "remove fewer brokers at a time"
