"""The judge: looks only at the topology before, the request and the proposal.

It shares no code with the optimizer, so an error there is found here.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from control.model.ids import TopicPartition
from control.model.units import bytes_text
from control.planner.goals import PlanRequest
from control.planner.proposal import PartitionChange, Proposal
from control.planner.topology import Topology

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
    """Every violated rule: unknown, stopped, duplicate, excluded or removed brokers, a changed
    number of replicas, partitions outside the scope, fewer racks than possible, full disks."""
    found: list[Violation] = []
    for change in proposal.changes:
        found += _change_violations(before, request, change)
    after = {change.key: change.after for change in proposal.changes}
    found += _removed_violations(before, after, request)
    found += _rack_violations(before, after, request)
    found += _capacity_violations(before, after)
    return tuple(found)


def distinct_racks_needed(replicas: int, racks: int) -> int:
    """On how many racks a partition can and therefore should be."""
    return min(replicas, racks)


def _change_violations(
    before: Topology, request: PlanRequest, change: PartitionChange
) -> list[Violation]:
    known = set(before.broker_ids)
    where, found = str(change.key), []

    def add(rule: str, reason: str) -> None:
        found.append(Violation(rule=rule, where=where, reason=reason, is_new=True))

    unknown = [id_ for id_ in change.after if id_ not in known]
    if unknown:
        add("brokers", f"brokers {unknown} do not exist")
    down = {broker.id for broker in before.brokers if not broker.is_running}
    if down.intersection(change.adding):
        add("brokers", f"brokers {sorted(down.intersection(change.adding))} do not run")
    if len(set(change.after)) < len(change.after):
        add("replicas", f"{list(change.after)} names a broker twice")
    if len(change.after) != (request.replication_factor or len(change.before)):
        add("replicas", f"replicas change from {len(change.before)} to {len(change.after)}")
    touched = {*change.adding, *change.removing} & set(request.exclude_brokers)
    if touched:
        add("excluded", f"touches excluded brokers {sorted(touched)}")
    if not request.has_topic(change.topic) or where in request.keep_partitions:
        add("scope", "is outside the scope of the request")
    return found


def _removed_violations(before: Topology, after: _After, request: PlanRequest) -> list[Violation]:
    removed = set(request.remove_brokers)
    if not removed:
        return []
    found = []
    for partition in before.partitions:
        still = removed.intersection(after.get(partition.key, partition.replicas))
        if still:
            reason = f"still on brokers {sorted(still)} that are removed"
            where = str(partition.key)
            found.append(Violation(rule="removed", where=where, reason=reason, is_new=False))
    return found


def _rack_violations(before: Topology, after: _After, request: PlanRequest) -> list[Violation]:
    kept = [b for b in before.brokers if b.id not in request.remove_brokers]
    if any(b.rack is None for b in kept):
        return []
    rack_of = {b.id: b.rack for b in before.brokers}
    racks = len({b.rack for b in kept})
    if racks == 1:
        return []
    brokers_on = Counter(b.rack for b in kept)
    found = []
    for partition in before.partitions:
        replicas = after.get(partition.key, partition.replicas)
        needed = distinct_racks_needed(len(replicas), racks)
        most = _most_on_a_rack(len(replicas), brokers_on)
        used = Counter(rack_of.get(id_) for id_ in replicas)
        was = Counter(rack_of.get(id_) for id_ in partition.replicas)
        fullest = max(used.values(), default=0)
        if len(used) < needed:
            reason = f"on {len(used)} racks where {needed} are possible"
        elif fullest > most:
            reason = f"{fullest} replicas on one rack where {most} would do"
        else:
            continue
        is_new = len(was) >= needed and max(was.values(), default=0) <= most
        where = str(partition.key)
        found.append(Violation(rule="racks", where=where, reason=reason, is_new=is_new))
    return found


def _most_on_a_rack(replicas: int, brokers_on: Mapping[str | None, int]) -> int:
    """Of replicas spread over the racks as evenly as their brokers allow."""
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
