"""Server-side assignors: who of a group shall get which partitions. Pure.

`uniform` spreads all partitions evenly and moves as few as it can; `range` gives each subscriber of
a topic a run of partitions, the same run of topics that are partitioned alike.
Source: KIP-848; UniformAssignor and RangeAssignor of Kafka's group-coordinator.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final
from uuid import UUID

from broker.coordinator.consumer.consumer_member import Assigned

Partition = tuple[UUID, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A member as an assignor sees it."""

    topics: frozenset[UUID]
    current: Assigned
    """Its part of the target until now."""
    instance_id: str | None = None


Subscribers = Mapping[str, Subscriber]
Assignor = Callable[[Subscribers, Mapping[UUID, int]], dict[str, Assigned]]
"""From members by id and counts of partitions by topic to each member's part."""


def assign_uniform(members: Subscribers, partitions: Mapping[UUID, int]) -> dict[str, Assigned]:
    """Numbers of partitions that differ by one at most where all subscribe alike; else as even as
    subscriptions allow. A member keeps what it has as far as that goes."""
    is_alike = len({member.topics for member in members.values()}) <= 1
    return (_assign_alike if is_alike else _assign_unlike)(members, partitions)


def _assign_alike(members: Subscribers, partitions: Mapping[UUID, int]) -> dict[str, Assigned]:
    """By shares: who has more gives up the rest, who has less is filled up."""
    topics = next(iter(members.values())).topics if members else frozenset()
    free = {topic: set(range(count)) for topic, count in partitions.items() if topic in topics}
    shares = _shares(members, sum(map(len, free.values())))
    parts: dict[str, dict[UUID, set[int]]] = {}
    for member_id, member in members.items():
        parts[member_id] = _kept(member.current, free, shares[member_id])
    left = iter([(topic, number) for topic in free for number in sorted(free[topic])])
    for member_id, part in parts.items():
        lacks = shares[member_id] - sum(map(len, part.values()))
        for topic, number in islice(left, lacks):
            part.setdefault(topic, set()).add(number)
    return {it: {t: frozenset(ps) for t, ps in part.items()} for it, part in parts.items()}


def _shares(members: Subscribers, total: int) -> dict[str, int]:
    """Equal shares; what is left over stays with those who have the most."""
    share, rest = divmod(total, max(len(members), 1))
    sizes = {it: sum(map(len, member.current.values())) for it, member in members.items()}
    ordered = sorted(members, key=lambda it: (-sizes[it], it))
    return {member_id: share + (place < rest) for place, member_id in enumerate(ordered)}


def _kept(current: Assigned, free: dict[UUID, set[int]], share: int) -> dict[UUID, set[int]]:
    """So many at most of what a member has; they are not free any more."""
    kept: dict[UUID, set[int]] = {}
    for topic in current.keys() & free.keys():
        numbers = current[topic] & free[topic]
        if len(numbers) > share:
            numbers = frozenset(sorted(numbers)[:share])
        if numbers:
            kept[topic] = set(numbers)
            free[topic] -= numbers
            share -= len(numbers)
    return kept


def _assign_unlike(members: Subscribers, partitions: Mapping[UUID, int]) -> dict[str, Assigned]:
    """Partitions that few can take go first, each to who has the fewest; then who has too many
    gives to who has too few."""
    by_topic = _subscribers_by_topic(members, partitions)
    free = {(topic, p) for topic in by_topic for p in range(partitions[topic])}
    parts: dict[str, set[Partition]] = {it: set() for it in members}
    for member_id, member in members.items():
        parts[member_id] = {it for it in _pairs(member.current) & free if it[0] in member.topics}
        free -= parts[member_id]
    for topic, number in sorted(free, key=lambda it: (len(by_topic[it[0]]), it)):
        least = min(by_topic[topic], key=lambda it: (len(parts[it]), it))
        parts[least].add((topic, number))
    _even_out(parts, by_topic)
    return {member_id: _assigned(part) for member_id, part in parts.items()}


def assign_range(members: Subscribers, partitions: Mapping[UUID, int]) -> dict[str, Assigned]:
    """Runs of partitions by topic, longer by one for the first members."""
    found: dict[str, dict[UUID, frozenset[int]]] = {it: {} for it in members}
    for topic, subscribers in _subscribers_by_topic(members, partitions).items():
        ordered = sorted(subscribers, key=lambda it: (members[it].instance_id or it, it))
        share, rest = divmod(partitions[topic], len(ordered))
        start = 0
        for place, member_id in enumerate(ordered):
            end = start + share + (place < rest)
            if end > start:
                found[member_id][topic] = frozenset(range(start, end))
            start = end
    return {member_id: dict(part) for member_id, part in found.items()}


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}
"""By name, the usual one first (group.consumer.assignors)."""


def _subscribers_by_topic(
    members: Subscribers, partitions: Mapping[UUID, int]
) -> dict[UUID, list[str]]:
    by_topic: dict[UUID, list[str]] = {}
    for member_id, member in members.items():
        for topic in member.topics:
            if topic in partitions:
                by_topic.setdefault(topic, []).append(member_id)
    return by_topic


def _even_out(parts: dict[str, set[Partition]], by_topic: Mapping[UUID, list[str]]) -> None:
    """Move partitions from who has more to who has at least two fewer, while any can move."""
    has_moved = True
    while has_moved:
        has_moved = False
        for giver in sorted(parts, key=lambda it: (-len(parts[it]), it)):
            for partition in sorted(parts[giver]):
                taker = min(by_topic[partition[0]], key=lambda it: (len(parts[it]), it))
                if len(parts[taker]) + 1 < len(parts[giver]):
                    parts[giver].remove(partition)
                    parts[taker].add(partition)
                    has_moved = True


def _pairs(assigned: Assigned) -> set[Partition]:
    return {(topic, number) for topic, numbers in assigned.items() for number in numbers}


def _assigned(pairs: set[Partition]) -> Assigned:
    found: dict[UUID, set[int]] = {}
    for topic, number in pairs:
        found.setdefault(topic, set()).add(number)
    return {topic: frozenset(numbers) for topic, numbers in found.items()}
