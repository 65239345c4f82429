"""Every placement of a small cluster, the fewest bytes first: the last resort on tight disks.

From the placement before, one replica at a time goes to a broker that has room for it then, or is
dropped where there are too many. No replica moves twice. So whatever can be done one after the
other is found, unless there are more placements than may be looked at.

A state is one bit mask of brokers for each partition.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Final

from planner.search.placement import Placement

_REPLICAS_MAX: Final = 400
_LOOKED_AT_MAX: Final = 600_000
"""Moves: a second or two."""
_JUDGED_COST: Final = 600
"""Of judging one placement, in moves."""
_KEPT_MAX: Final = 12_000_000
"""Partitions times states: some hundred MB."""

State = tuple[int, ...]


def search_all(
    start: Placement, partitions: list[int], is_fine: Callable[[Placement], bool]
) -> Placement | None:
    """The first placement found that has all that is wanted of these partitions, and is fine."""
    if int(start.count.sum()) > _REPLICAS_MAX:
        return None
    cheapest = _Search(start, partitions, is_fine)
    found = cheapest.run(is_hasty=False)
    if found is not None or cheapest.has_seen_all:
        return found
    return _Search(start, partitions, is_fine).run(is_hasty=True)


class _Search:
    def __init__(
        self, start: Placement, partitions: list[int], is_fine: Callable[[Placement], bool]
    ) -> None:
        self._start, self._partitions, self._is_fine = start, frozenset(partitions), is_fine
        self._looked_at = 0
        self.has_seen_all = False
        factor = start.request.replication_factor
        self._home: State = tuple(map(_mask, start.replicas))
        self._wide = [
            factor if factor is not None and p in self._partitions else len(replicas)
            for p, replicas in enumerate(start.replicas)
        ]
        self._gone = sum(
            1 << b
            for b in range(start.brokers)
            if start.is_removed[b] or (factor is not None and start.is_down[b])
        )
        self._most: list[float] = (
            [float("inf")] * start.brokers if start.capacity is None else start.capacity.tolist()
        )
        self._targets = [b for b in range(start.brokers) if start.is_target[b]]
        self._partly_synced = frozenset(start.sync.partly_synced)
        self._movable = [0] * len(start.replicas)
        for broker, ranks in enumerate(start.by_size):
            for rank in ranks:
                self._movable[start.partition_at[rank]] |= 1 << broker
        for partition in self._partitions:
            self._movable[partition] |= self._home[partition] & self._gone

    def run(self, *, is_hasty: bool) -> Placement | None:
        """Fewest bytes first: those that have moved, and those that still must. Where that takes
        too long (`is_hasty`), first what lacks fewest bytes, however many have moved."""
        first, size = self._home, self._start.size
        seen = {first}
        must = sum(size[p] * self._lacks(p, first[p]) for p in self._partitions)
        left = sum(self._left(p, first[p]) for p in self._partitions)
        rank = (must, 0) if is_hasty else (must, left)
        queue = [(rank, must, left, first, tuple(self._start.bytes.tolist()))]
        while queue:
            (lacks, _), cost, left, state, held = heappop(queue)
            if not left and self._keeps_racks(state):
                self._looked_at += _JUDGED_COST
                placement = self._made(state)
                if self._is_fine(placement):
                    return placement
            if self._looked_at > _LOOKED_AT_MAX or len(seen) * len(state) > _KEPT_MAX:
                return None
            for partition, source, target in self._steps(state, held):
                then = state[partition] & ~source | target
                following = (*state[:partition], then, *state[partition + 1 :])
                if following in seen:
                    continue
                seen.add(following)
                bytes_ = list(held)
                if target:
                    bytes_[target.bit_length() - 1] += size[partition]
                if source:
                    bytes_[source.bit_length() - 1] -= size[partition]
                fewer = self._lacks(partition, state[partition]) - self._lacks(partition, then)
                further = cost + size[partition] * (bool(target) - fewer)
                left_then = left - self._left(partition, state[partition])
                left_then += self._left(partition, then)
                rank = (further, left_then)
                if is_hasty:
                    rank = (lacks - size[partition] * fewer, further)
                heappush(queue, (rank, further, left_then, following, tuple(bytes_)))
        self.has_seen_all = True
        return None

    def _lacks(self, partition: int, mask: int) -> int:
        """Replicas that lack a place."""
        if partition not in self._partitions:
            return 0
        return max(0, self._wide[partition] - (mask & ~self._gone).bit_count())

    def _left(self, partition: int, mask: int) -> int:
        """Steps that are left: replicas that lack a place, and those that are too many."""
        if partition not in self._partitions:
            return 0
        return self._lacks(partition, mask) + max(0, mask.bit_count() - self._wide[partition])

    def _steps(self, state: State, held: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
        """(partition, bit of the source or 0 where one is added, bit of the target or 0 where one
        is dropped)."""
        size, room = (
            self._start.size,
            [most - has for most, has in zip(self._most, held, strict=True)],
        )
        for partition, mask in enumerate(state):
            is_partly = partition in self._partly_synced
            sources = self._movable[partition] & self._home[partition] & mask
            if mask.bit_count() > self._wide[partition]:
                for broker in self._droppable(partition, sources, is_partly=is_partly):
                    self._looked_at += 1
                    yield partition, 1 << broker, 0
            needed = size[partition] or float("-inf")
            free = [b for b in self._targets if room[b] >= needed and not mask >> b & 1]
            if not free:
                continue
            is_short = mask.bit_count() < self._wide[partition]
            for broker in range(-1, self._start.brokers):
                if not (is_short if broker < 0 else sources >> broker & 1):
                    continue
                for target in free:
                    self._looked_at += 1
                    if is_partly and not self._in_sync(partition, broker, target, mask):
                        continue
                    yield partition, 1 << broker if broker >= 0 else 0, 1 << target

    def _droppable(self, partition: int, sources: int, *, is_partly: bool) -> list[int]:
        """While not all are in sync, those that are not go first, and the leader stays."""
        brokers = [b for b in range(self._start.brokers) if sources >> b & 1]
        if not is_partly:
            return brokers
        sync = self._start.sync
        stale = [b for b in brokers if not sync.is_in_sync(partition, b)]
        return stale or [b for b in brokers if b != sync.leader(partition)]

    def _in_sync(self, partition: int, source: int, target: int, mask: int) -> bool:
        sync = self._start.sync
        if source < 0:
            return target not in sync.stale_homes(partition)
        replicas = [b for b in range(self._start.brokers) if mask >> b & 1]
        return sync.keeps(partition, source, target, replicas)

    def _keeps_racks(self, state: State) -> bool:
        """Whether what was on as many racks as its replicas now can be on, and crowded on none,
        still is on as many."""
        for now, home in zip(state, self._home, strict=True):
            needed = min(now.bit_count(), self._start.known_racks)
            if now == home or len(self._racks(now)) >= needed:
                continue
            before = self._racks(home)
            if len(before) >= needed and max(before.values()) == 1:
                return False
        return True

    def _racks(self, mask: int) -> Counter[int]:
        """Replicas on each rack."""
        rack, racks = self._start.rack, self._start.racks
        used = [rack[b] for b in range(self._start.brokers) if mask >> b & 1]
        return Counter(r for r in used if r < racks)

    def _made(self, state: State) -> Placement:
        placement = self._start.copied()
        for partition, (then, home) in enumerate(zip(state, self._home, strict=True)):
            coming = [b for b in range(placement.brokers) if (then & ~home) >> b & 1]
            for source in [b for b in placement.replicas[partition] if not then >> b & 1]:
                if coming:
                    placement.move(partition, source, coming.pop())
                else:
                    placement.drop(partition, source)
            for target in coming:
                placement.add(partition, target)
        return placement


def _mask(brokers: tuple[int, ...]) -> int:
    return sum(1 << b for b in brokers)
