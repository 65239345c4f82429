"""Room for replicas that must be placed: others make way, along chains of brokers.

What has to leave a broker, or to be added, may fit nowhere although there is enough room in all.
Then a replica that may move makes way, and where that fits nowhere, another one for it.

Worked example: p (30 bytes) must leave 1. Broker 2 has 10 bytes free, and 3 has 25. q (20 bytes)
goes from 2 to 3, then p goes to 2.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from control.model.units import bytes_text
from planner.search.placement import Placement

_DEPTH: Final = 3
"""Replicas that make way for each other, one after the other."""
_TARGETS_TRIED: Final = 8
_VICTIMS_TRIED: Final = 6
_VICTIMS_MAX: Final = 3
"""So many of one broker make way for one replica."""
_PLACES_MAX: Final = 20_000
"""So often a place is looked for, for all replicas of a plan."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """A replica that has no place yet. `source`: the broker that it has to leave; None: it is to
    be added."""

    partition: int
    source: int | None


def lacking(placement: Placement, partitions: Iterable[int]) -> list[Lacking]:
    """Replicas of these partitions that still need a place, the largest first."""
    found = []
    factor = placement.request.replication_factor
    for partition in partitions:
        replicas = placement.replicas[partition]
        gone = [b for b in replicas if placement.is_removed[b]]
        if factor is not None:
            gone += [b for b in replicas if placement.is_down[b] and not placement.is_removed[b]]
            found += [Lacking(partition, None)] * max(0, factor - len(replicas))
        found += [Lacking(partition, b) for b in gone]
    return sorted(found, key=lambda it: -placement.size[it.partition])


def make_room(placement: Placement, replicas: Iterable[Lacking]) -> None:
    """Place these as far as others can make way."""
    maker = _RoomMaker(placement)
    for each in replicas:
        maker.place(each.partition, each.source, _DEPTH, frozenset())


def make_within_disks(placement: Placement, brokers: Iterable[int]) -> None:
    """Move replicas off these brokers until their disks take what is left, as far as can be."""
    maker = _RoomMaker(placement)
    for broker in brokers:
        if placement.is_full(broker):
            maker.clear(broker, 0, _DEPTH, frozenset())


def why_no_place(placement: Placement, missing: Lacking) -> str:
    """Which broker comes nearest to having room for it, and how many bytes it lacks."""
    ids, size = placement.topology.broker_ids, placement.size[missing.partition]
    key = placement.topology.partitions[missing.partition].key
    takers = may_take(placement, missing.partition, missing.source)
    if not takers or placement.capacity is None:
        return f"no broker that may hold {key} is without a replica of it"
    short = {b: float(placement.bytes[b]) + size - float(placement.capacity[b]) for b in takers}
    nearest = min(takers, key=lambda b: (short[b], b))
    lacks = max(1, int(short[nearest]))
    return (
        f"a replica of {key} ({bytes_text(size)}) finds no place: broker {ids[nearest]} comes "
        f"nearest and lacks {bytes_text(lacks)}, also where others make way"
    )


def may_take(placement: Placement, partition: int, source: int | None) -> list[int]:
    """Brokers that may get this replica if they have room, those first that racks let it go to."""
    replicas, sync = placement.replicas[partition], placement.sync
    free = [b for b in np.flatnonzero(placement.is_target).tolist() if b not in replicas]
    if sync.has_any and source is not None:
        free = [b for b in free if sync.keeps(partition, source, b, replicas)]
    if sync.has_any and source is None:
        stale = sync.stale_homes(partition)
        free = [b for b in free if b not in stale]
    return sorted(free, key=lambda b: not _keeps_racks(placement, partition, source, b))


def _keeps_racks(placement: Placement, partition: int, source: int | None, target: int) -> bool:
    if source is not None:
        return placement.may_change_racks(partition, source, target)
    replicas, rack = placement.replicas[partition], placement.rack
    used = [rack[b] for b in replicas]
    return rack[target] not in used or len(set(used)) >= placement.known_racks


class _RoomMaker:
    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._sizes = [placement.size[p] for p in placement.partition_at]
        self._left = _PLACES_MAX
        self._steps: list[tuple[int, int | None, int]] = []

    def place(self, partition: int, source: int | None, depth: int, chain: frozenset[int]) -> bool:
        """Put one replica where there is room, or where others make way for it."""
        placement, size = self._placement, self._placement.size[partition]
        self._left -= 1
        targets = may_take(placement, partition, source)
        if chain and source is not None:
            targets = [b for b in targets if placement.may_change_racks(partition, source, b)]
        for target in targets:
            if placement.has_room(target, size):
                self._put(partition, source, target)
                return True
        nearest = sorted(targets, key=lambda b: self._missing(b, size))
        for target in nearest[:_TARGETS_TRIED] if depth else ():
            mark = len(self._steps)
            if self._left > 0 and self.clear(target, size, depth - 1, chain | {partition}):
                self._put(partition, source, target)
                return True
            self._undo(mark)
        return False

    def _missing(self, broker: int, size: int) -> float:
        """Bytes that a broker lacks for a replica."""
        capacity = self._placement.capacity
        assert capacity is not None
        return float(self._placement.bytes[broker]) + size - float(capacity[broker])

    def clear(self, broker: int, size: int, depth: int, chain: frozenset[int]) -> bool:
        """Moves others off a broker until it has so much room."""
        for _ in range(_VICTIMS_MAX):
            victims = self._victims(broker, self._missing(broker, size), chain)
            if not any(self.place(victim, broker, depth, chain) for victim in victims):
                return False
            if not self._placement.is_full(broker, size):
                return True
        return False

    def _victims(self, broker: int, missing: float, chain: frozenset[int]) -> list[int]:
        """The smallest that are enough, then the largest that are not."""
        placement = self._placement
        ranks = placement.by_size[broker]
        enough = bisect_left(ranks, bisect_left(self._sizes, missing))
        chosen = ranks[enough : enough + _VICTIMS_TRIED]
        chosen = chosen + ranks[max(0, enough - _VICTIMS_MAX) : enough][::-1]
        return [p for rank in chosen if (p := placement.partition_at[rank]) not in chain]

    def _put(self, partition: int, source: int | None, target: int) -> None:
        if source is None:
            self._placement.add(partition, target)
        else:
            self._placement.move(partition, source, target)
        self._steps.append((partition, source, target))

    def _undo(self, mark: int) -> None:
        while len(self._steps) > mark:
            partition, source, target = self._steps.pop()
            if source is None:
                self._placement.drop(partition, target)
            else:
                self._placement.move(partition, target, source)
