"""The judge: looks only at the topology before, the request and the proposal.

It shares no code with the optimizer, so an error there is found here.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

import numpy as np

from control.model.ids import TopicPartition
from control.model.units import brokers_text, bytes_text, counted
from planner.goals import PlanRequest
from planner.in_sync import why_too_few, why_unsafe
from planner.proposal import PartitionChange, Proposal
from planner.racks import Racks
from planner.topology import Topology, TopologyBroker, TopologyPartition

_After = Mapping[TopicPartition, tuple[int, ...]]
"""Replicas of the changed partitions; the others are as they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule that does not hold after the proposal. `is_new` when it held before."""

    rule: str
    where: str
    reason: str
    is_new: bool

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


def verify_proposal(
    before: Topology, request: PlanRequest, proposal: Proposal
) -> tuple[Violation, ...]:
    """Every violated rule. Brokers: unknown, stopped, cordoned, duplicate, excluded or removed.
    Partitions: another number of replicas than wanted, outside the scope, without a leader, being
    reassigned, without what is in sync, on fewer racks than possible. Disks: full."""
    found = _change_violations(before, request, proposal.changes)
    after = {change.key: change.after for change in proposal.changes}
    found += _factor_violations(before, after, request)
    found += _removed_violations(before, after, request)
    found += _rack_violations(before, after, request)
    found += _capacity_violations(before, after)
    return tuple(found)


def distinct_racks_needed(replicas: int, racks: int) -> int:
    """On how many racks a partition can and therefore should be."""
    return min(replicas, racks)


def _change_violations(
    before: Topology, request: PlanRequest, changes: Iterable[PartitionChange]
) -> list[Violation]:
    known, down = set(before.broker_ids), before.down
    cordoned = {broker.id for broker in before.brokers if broker.is_cordoned}
    excluded = set(request.exclude_brokers)
    may_touch, topics = request.scope(), {p.topic for p in before.partitions}
    changes = tuple(changes)
    now = before.named({change.key for change in changes})
    found = []
    for change in changes:
        where, partition = str(change.key), now.get(change.key)
        adding, removing, after = change.adding, change.removing, change.after
        wrong = []
        if unknown := [id_ for id_ in after if id_ not in known]:
            wrong.append(("brokers", f"unknown: {brokers_text(unknown)}"))
        if stopped := down.intersection(after):
            wrong.append(("brokers", f"not running: {brokers_text(stopped)}"))
        if refused := cordoned.intersection(after):
            wrong.append(("brokers", f"Kafka refuses cordoned {brokers_text(refused)}"))
        if partition is not None:
            wrong += _hindrances(partition, after, down)
        if len(set(after)) < len(after):
            wrong.append(("replicas", f"{list(after)} names a broker twice"))
        if request.replication_factor is None and len(after) != len(change.before):
            reason = f"replicas change from {len(change.before)} to {len(after)}"
            wrong.append(("replicas", reason))
        if touched := excluded.intersection((*adding, *removing)):
            wrong.append(("excluded", f"touches excluded {brokers_text(touched)}"))
        if change.topic not in topics or not may_touch(change.key):
            wrong.append(("scope", "is outside the scope of the request"))
        found += [Violation(rule=r, where=where, reason=why, is_new=True) for r, why in wrong]
    return found


def _hindrances(
    partition: TopologyPartition, after: Sequence[int], down: Collection[int]
) -> list[tuple[str, str]]:
    """(rule, reason) of what keeps one partition from this change."""
    found = []
    if not partition.has_leader:
        found.append(("leader", "has no leader and cannot move"))
    if partition.is_reassigning:
        found.append(("leader", "is being reassigned already"))
    in_sync = partition.in_sync(down)
    found += [
        ("in sync", why)
        for why in (
            why_unsafe(partition.replicas, after, in_sync),
            why_too_few(partition.replicas, after, in_sync, partition.min_isr),
        )
        if why
    ]
    return found


def _factor_violations(before: Topology, after: _After, request: PlanRequest) -> list[Violation]:
    wanted = request.replication_factor
    if wanted is None:
        return []
    may_touch, found = request.scope(), []
    for partition in before.partitions:
        number = len(after.get(partition.key, partition.replicas))
        if number != wanted and may_touch(partition.key):
            reason = f"has {counted(number, 'replica')} where {wanted} are asked for"
            is_new = len(partition.replicas) == wanted
            where = str(partition.key)
            found.append(Violation(rule="replicas", where=where, reason=reason, is_new=is_new))
    return found


def _removed_violations(before: Topology, after: _After, request: PlanRequest) -> list[Violation]:
    removed = set(request.remove_brokers)
    if not removed:
        return []
    found = []
    for partition in before.partitions:
        still = removed.intersection(after.get(partition.key, partition.replicas))
        if still:
            reason = f"still on removed {brokers_text(still)}"
            where = str(partition.key)
            found.append(Violation(rule="removed", where=where, reason=reason, is_new=False))
    return found


def _rack_violations(before: Topology, after: _After, request: PlanRequest) -> list[Violation]:
    kept = [b for b in before.brokers if b.id not in request.remove_brokers]
    brokers_on = Counter(b.rack for b in kept if b.rack is not None)
    racks = len(brokers_on)
    if racks < 2:
        return []
    rack_of = Racks(of={b.id: b.rack for b in before.brokers})
    replicas = _replicas(before, after)
    most = {wide: _most_on_a_rack(wide, brokers_on) for wide in set(map(len, replicas))}
    found = _given_up(before, kept, after)
    for number in _suspicious(replicas, rack_of.of, racks, most):
        partition, wide = before.partitions[number], len(replicas[number])
        needed = distinct_racks_needed(wide, racks)
        was_fine = rack_of.most(partition.replicas) <= most[wide]
        reason = (
            f"{rack_of.most(replicas[number])} replicas on one rack where {most[wide]} would do"
        )
        if rack_of.number(replicas[number]) < needed:
            reason = f"on {rack_of.words(replicas[number])} where {needed} are possible"
        is_new = was_fine and rack_of.number(partition.replicas) >= needed
        where = str(partition.key)
        found.append(Violation(rule="racks", where=where, reason=reason, is_new=is_new))
    return found


def _replicas(before: Topology, after: _After) -> list[tuple[int, ...]]:
    """Replicas of every partition afterwards."""
    if not after:
        return [p.replicas for p in before.partitions]
    names = map(attrgetter("topic", "partition"), before.partitions)
    both = zip(names, before.partitions, strict=True)
    return [after[p.key] if name in after else p.replicas for name, p in both]


def _given_up(before: Topology, kept: Iterable[TopologyBroker], after: _After) -> list[Violation]:
    """Partitions that leave a known rack while another of theirs is unknown."""
    racks = Racks(of={b.id: b.rack for b in kept})
    known = {id_ for id_, rack in racks.of.items() if rack is not None}
    unsure = {key for key, replicas in after.items() if not known.issuperset(replicas)}
    told = {
        key: racks.given_up((b for b in p.replicas if b in racks.of), after[key])
        for key, p in (before.named(unsure) if unsure else {}).items()
    }
    return [
        Violation(
            rule="racks",
            where=str(key),
            reason=lost,
            is_new=True,
        )
        for key, lost in told.items()
        if lost
    ]


def _suspicious(
    replicas: Sequence[tuple[int, ...]],
    rack_of: Mapping[int, str | None],
    racks: int,
    most: Mapping[int, int],
) -> list[int]:
    """Which partitions are on too few racks, or too many of one; in columns, for there are many.
    Unknown racks share the last column, each replica there on one of its own."""
    known = sorted({rack for rack in rack_of.values() if rack is not None})
    names = {rack: number for number, rack in enumerate([*known, None])}
    number_of, nowhere = {broker: names[rack] for broker, rack in rack_of.items()}, names[None]
    width = np.fromiter(map(len, replicas), np.int64, len(replicas))
    flat = chain.from_iterable(replicas)
    on = np.fromiter((number_of.get(b, nowhere) for b in flat), np.int64, int(width.sum()))
    of = np.repeat(np.arange(len(width)), width)
    used = np.bincount(of * len(names) + on, minlength=len(width) * len(names))
    used = used.reshape(-1, len(names))
    limit = np.array([most.get(wide, 0) for wide in range(int(width.max(initial=0)) + 1)])
    number, crowd = (used[:, :-1] > 0).sum(axis=1) + used[:, -1], used[:, :-1].max(axis=1)
    lacks = number < np.minimum(width, racks)
    found: list[int] = np.flatnonzero(lacks | (crowd > limit[width])).tolist()
    return found


def _most_on_a_rack(replicas: int, brokers_on: Mapping[str, int]) -> int:
    """Most replicas on a rack, if they are spread as evenly as its brokers allow."""
    most = 1
    while sum(min(most, brokers) for brokers in brokers_on.values()) < replicas and most < replicas:
        most += 1
    return most


def _capacity_violations(before: Topology, after: _After) -> list[Violation]:
    most = {b.id: b.capacity_bytes for b in before.brokers if b.capacity_bytes is not None}
    if not most:
        return []
    now, then = dict.fromkeys(most, 0), dict.fromkeys(most, 0)
    for partition in before.partitions:
        for held, replicas in (
            (now, partition.replicas),
            (then, after.get(partition.key, partition.replicas)),
        ):
            for broker in replicas:
                if broker in held:
                    held[broker] += partition.size_bytes
    return [
        Violation(
            rule="capacity",
            where=f"broker {broker}",
            reason=f"holds {bytes_text(then[broker])}, its disks take {bytes_text(size)}",
            is_new=now[broker] <= size,
        )
        for broker, size in most.items()
        if then[broker] > size
    ]
