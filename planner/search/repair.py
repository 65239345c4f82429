"""Repair of the hard rules: nothing on removed brokers, every partition on as many racks as it can
be, the wanted replication factor.

Every replica that must be placed goes to the broker that lacks most: of bytes per replica still
missing, so that numbers and bytes fill up together. Largest first, as in packing.
"""

from typing import Final

import numpy as np

from planner.columns import Flags, Floats
from planner.search.bounds import fair_shares
from planner.search.placement import Placement, leave, most_per_rack, rack_limit

_COUNT_WEIGHT: Final = 0.7
"""What a missing replica counts in bytes of a mean one when a rack is repaired. Lower moves fewer
bytes in all but more replicas (tried on six clusters: from 0.4 to 1 little changes)."""
_LEADER_WEIGHT: Final = 0.25
_ALWAYS: Final = 1e12
_FULL: Final = 1e18
"""Taken off the need of a broker that has its number of replicas already."""
_NONE: Final = -1
"""No rack."""


class Mender:
    """Places replicas that must be placed. `keeps_leaders`: a follower moves rather than the
    leader, even off a less loaded broker."""

    def __init__(self, placement: Placement, *, keeps_leaders: bool = False) -> None:
        self._placement = placement
        self._leader_weight = _ALWAYS if keeps_leaders else _LEADER_WEIGHT
        count, held = fair_shares(placement)
        self._count_share = np.ceil(count - 1e-9)
        self._bytes_share = held
        self._rack = np.array(placement.rack, dtype=np.int64)
        self._is_open = placement.is_target & (self._rack < placement.known_racks)
        """Brokers that may receive what has to leave its rack."""
        self._unit = 0.0
        """Bytes of a mean replica, while racks are repaired."""

    def evacuate(self) -> None:
        """Move every movable replica off the removed brokers, where a target exists."""
        placement = self._placement
        leaving = [
            (placement.size[p], p, int(source))
            for source in np.flatnonzero(placement.is_removed)
            for p in placement.movable_on(int(source))
        ]
        for _, partition, source in sorted(leaving, key=lambda item: (-item[0], item[1])):
            target = self._best(partition, source)
            if target is not None:
                placement.move(partition, source, target)

    def spread_over_racks(self, chosen: Flags) -> None:
        """Move one replica at a time off racks that hold several of a chosen partition, followers
        first."""
        placement = self._placement
        if placement.known_racks == 1:
            return
        wrong = np.flatnonzero(chosen & is_crowded(placement)).tolist()
        self._unit = float(placement.bytes.sum()) / max(1, int(placement.count.sum()))
        for partition in sorted(wrong, key=lambda p: (-placement.size[p], p)):
            while self._is_crowded(partition):
                if not self._leave_crowded_rack(partition):
                    break

    def replicate(self, factor: int) -> None:
        """Give every movable partition `factor` replicas, none of them on a broker that does not
        run."""
        placement = self._placement
        chosen = np.flatnonzero(placement.is_movable).tolist()
        for partition in sorted(chosen, key=lambda p: (-placement.size[p], p)):
            self._shrink(partition, factor)
            if placement.sync.has_lost_all(partition, placement.replicas[partition]):
                leave(placement, partition)  # excluded brokers keep theirs
                continue
            self._replace_dead(partition)
            while len(placement.replicas[partition]) < factor:
                target = self._best(partition, None)
                if target is None:
                    break
                placement.add(partition, target)

    def shrink(self, factor: int) -> None:
        """Drop what is more than `factor` replicas."""
        for partition in np.flatnonzero(self._placement.is_movable).tolist():
            self._shrink(partition, factor)

    def _shrink(self, partition: int, factor: int) -> None:
        while len(self._placement.replicas[partition]) > factor:
            self._placement.drop(partition, self._most_dispensable(partition, factor))

    def _replace_dead(self, partition: int) -> None:
        """Moves replicas off brokers that do not run; the present leader is then first."""
        placement = self._placement
        for source in _dead(placement, partition):
            target = self._best(partition, source)
            if target is None:
                return
            placement.move(partition, source, target)
            leader = placement.sync.leader(partition)
            if leader is not None and leader in placement.replicas[partition]:
                placement.lead(partition, leader)

    def _most_dispensable(self, partition: int, factor: int) -> int:
        """The replica to drop: dead, then out of sync, then of a removed broker, then on an unknown
        rack in the place of a known one, then not the leader. After that, on a rack with another
        one or an unknown one, then not preferred, then of the fullest broker."""
        placement = self._placement
        replicas, leader = placement.replicas[partition], placement.sync.leader(partition)
        racks = [placement.rack[b] for b in replicas]
        known = {placement.rack[b] for b in replicas if not placement.is_removed[b]}
        known = {rack for rack in known if rack < placement.known_racks}
        unknown = sum(rack >= placement.known_racks for rack in racks)
        takes_a_rack = unknown > max(0, factor - len(known))
        keeps_leader = partition in placement.sync.partly_synced

        def rank(b: int) -> tuple[bool | float, ...]:
            return (
                bool(placement.is_down[b]),
                not placement.sync.is_in_sync(partition, b),
                bool(placement.is_removed[b]),
                takes_a_rack
                and placement.rack[b] >= placement.known_racks
                and not (keeps_leader and b == leader),
                b != leader,
                racks.count(placement.rack[b]) > 1,
                placement.rack[b] >= placement.known_racks,
                b != replicas[0],
                float(placement.bytes[b]),
            )

        free = [b for b in replicas if placement.is_down[b] or not placement.is_excluded[b]]
        chosen: int = max(free or replicas, key=rank)
        return chosen

    def _is_crowded(self, partition: int) -> bool:
        """Whether it could be on more racks, or more evenly on those that it is on."""
        placement = self._placement
        if placement.distinct_racks(partition) < placement.wanted_racks(partition):
            return True
        if len(placement.replicas[partition]) <= placement.known_racks:
            return False
        limit = rack_limit(placement, partition)
        return bool((placement.on_rack[partition, : placement.racks] > limit).any())

    def _leave_crowded_rack(self, partition: int) -> bool:
        placement = self._placement
        replicas, rack = placement.replicas[partition], placement.rack
        racks = [rack[b] for b in replicas]
        lacks_racks = placement.distinct_racks(partition) < placement.wanted_racks(partition)
        limit = 1 if lacks_racks else rack_limit(placement, partition)
        full = [b for b in replicas if racks.count(rack[b]) > limit]
        crowded = [b for b in full if not self._stays(partition, b)]
        if not crowded:
            return False
        dear, room = self._leader_weight * self._unit, self._room()
        source = max(crowded, key=lambda b: (-float(room[b]) - dear * (b == replicas[0]), -b))
        is_unused = placement.on_rack[partition, self._rack] < limit
        room[~(self._is_open & is_unused)] = -np.inf
        target = self._roomiest(partition, room)
        if target is None:
            return False
        placement.move(partition, source, target)
        return True

    def _stays(self, partition: int, broker: int) -> bool:
        """Whether racks are no reason for it to go: it is excluded, or leads a partition that is
        only partly in sync, or is the last one in sync there."""
        placement = self._placement
        if placement.is_excluded[broker]:
            return True
        if not placement.sync.is_pinned(partition, broker):
            return False
        others = (b for b in placement.replicas[partition] if b != broker)
        is_last = not any(placement.sync.is_pinned(partition, b) for b in others)
        return is_last or broker == placement.sync.leader(partition)

    def _best(self, partition: int, source: int | None) -> int | None:
        """The allowed broker in most need; None where there is none."""
        placement, needs = self._placement, self._needs()
        needs[~placement.is_target] = -np.inf
        if placement.racks > 1:
            self._prefer_racks(needs, partition, source)
        return self._roomiest(partition, needs)

    def _roomiest(self, partition: int, needs: Floats) -> int | None:
        """The broker in most need that has no replica of it, and room for one."""
        placement = self._placement
        needs[list(placement.replicas[partition])] = -np.inf
        if placement.sync.has_any:
            needs[placement.sync.stale_homes(partition)] = -np.inf
        if placement.capacity is not None:
            is_full = placement.bytes + placement.size[partition] > placement.capacity
            needs[is_full & (placement.size[partition] > 0)] = -np.inf
        best = int(np.argmax(needs))
        return None if needs[best] == -np.inf else best

    def _prefer_racks(self, needs: Floats, partition: int, source: int | None) -> None:
        """A rack that the other replicas lack comes first, where one is wanted: a known one, for
        an unknown one may be the same as another."""
        placement = self._placement
        others = [b for b in placement.replicas[partition] if b != source]
        used = {placement.rack[b] for b in others}
        width, known = len(others) + 1, placement.known_racks
        if known < placement.racks and len({r for r in used if r < known}) < min(width, known):
            # Best is the rack that it leaves: whatever the unknown ones are, nothing changes.
            rack = np.array(placement.rack)
            left = _NONE if source is None else placement.rack[source]
            needs -= np.where(rack >= known, 4 * _FULL, np.where(rack == left, 0.0, 2 * _FULL))
        if len({r for r in used if r < placement.racks}) < min(width, known):
            is_used = np.isin(placement.rack, list(used))
            needs[is_used] -= 6 * _FULL
        elif width > known:
            limit = rack_limit(placement, partition)
            racks = [placement.rack[b] for b in others]
            full = [r for r in used if racks.count(r) >= limit]
            needs[np.isin(placement.rack, full)] -= 4 * _FULL

    def _room(self) -> Floats:
        """Bytes still missing; replicas count a little: the smallest ones even them later."""
        placement = self._placement
        slots = self._count_share - placement.count
        room: Floats = self._bytes_share - placement.bytes + _COUNT_WEIGHT * self._unit * slots
        return room

    def _needs(self) -> Floats:
        """Bytes still missing per replica still missing; far below zero where a broker is full."""
        placement = self._placement
        slots = self._count_share - placement.count
        lacking = self._bytes_share - placement.bytes
        needs: Floats = np.where(slots > 0, lacking / np.maximum(slots, 1.0), lacking - _FULL)
        return needs


def is_crowded(placement: Placement) -> Flags:
    """Which partitions could be on more racks, or more evenly on those that they are on."""
    width, on_rack = placement.on_rack.sum(axis=1), placement.on_rack[:, : placement.racks]
    known = placement.known_racks
    crowded: Flags = (on_rack > 0).sum(axis=1) < np.minimum(width, known)
    for wide in np.unique(width[width > known]).tolist():
        limit = most_per_rack(wide, placement.rack_brokers[:known])
        crowded |= (width == wide) & (on_rack > limit).any(axis=1)
    return crowded


def leave_what_cannot_be(placement: Placement) -> None:
    """Puts a partition back that would keep a replica on a broker that does not run or is cordoned.
    A move would wait for the one, and the controller refuses the other."""
    if not placement.is_unnamable.any():
        return
    columns = placement.columns
    for partition in np.unique(columns.of[placement.is_unnamable[columns.on]]).tolist():
        kept = placement.is_unnamable[list(placement.replicas[partition])]
        if placement.is_movable[partition] and kept.any():
            leave(placement, partition)


def _dead(placement: Placement, partition: int) -> list[int]:
    return [b for b in placement.replicas[partition] if placement.is_down[b]]
