"""Moving fewer bytes to the same balance: what an evened placement can spare.

Every replica that was moved is looked at once more, the largest first; each step leaves every
broker as far within its bounds as it was:

* back: it was not needed in the end, and goes home;
* instead: it goes home, and a smaller one of its home, which has not moved, goes in its place;
* elsewhere: where its home could keep more, it goes home, and a smaller one goes to any broker;
* onwards: it goes home, and one that has come to its home from elsewhere goes on to where it was:
  that one travels once whatever its end, so this one need not travel at all.

Worked example: racks were repaired by moving p from 1 to 2, then 2 had too many and gave q to 3.
When p may be on 3, p goes from 1 to 3 and q stays.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import islice
from typing import Final

import numpy as np

from planner.search.bounds import Bounds
from planner.search.candidates import LOSS_MAX, Reach
from planner.search.placement import Placement

_PASSES_MAX: Final = 4
_FEW: Final = 0.01
"""Of what has moved: so little spared is not worth another pass."""
_TRIED: Final = 64
_ELSEWHERE_TRIED: Final = 8
_WORTH: Final = 0.05
"""Of a replica's bytes: so much must be spared at least before other places are looked for."""


def economize(placement: Placement, bounds: Bounds) -> None:
    """Spare what can be spared, until next to nothing is."""
    economy = _Economy(placement, bounds)
    for _ in range(_PASSES_MAX):
        if economy.run_once() <= _FEW:
            return


class _Economy(Reach):
    def __init__(self, placement: Placement, bounds: Bounds) -> None:
        super().__init__(placement, bounds)
        self._homes = placement.home
        self._come: list[list[int]] = [[] for _ in range(placement.brokers)]
        """Ranks of the replicas that each broker has received, the smallest first."""
        for partition, broker in placement.received():
            self._come[broker].append(placement.rank_of[partition])
        for ranks in self._come:
            ranks.sort()

    def run_once(self) -> float:
        """Every moved replica once; the share of them that was spared."""
        moved = {(rank, broker) for broker, ranks in enumerate(self._come) for rank in ranks}
        spared = 0
        for rank, broker in sorted(moved, reverse=True):
            partition = self.placement.partition_at[rank]
            if broker in self.placement.replicas[partition]:
                spared += self._spare(partition, broker)
        return spared / max(1, len(moved))

    def _spare(self, partition: int, broker: int) -> bool:
        replicas = self.placement.replicas[partition]
        free = [b for b in self._homes[partition] if b not in replicas]
        for home in free:
            if not self.placement.is_target[home]:
                continue
            if not self.placement.may_change_racks(partition, broker, home):
                continue  # racks asked for it
            if (
                self._back(partition, broker, home)
                or self._onwards(partition, broker, home)
                or self._instead(partition, broker, home)
                or self._elsewhere(partition, broker, home)
            ):
                return True
        return False

    def _back(self, partition: int, broker: int, home: int) -> bool:
        size = self.placement.size[partition]
        if self.gain(broker, home, size, 1) < -LOSS_MAX:
            return False
        if not self.placement.may_move(partition, broker, home):
            return False
        self._move(partition, broker, home)
        return True

    def _onwards(self, partition: int, broker: int, home: int) -> bool:
        """Another that came to its home goes on to `broker`."""
        least, most = self.shifts(broker, home)
        own = self.placement.size[partition]
        others = self._near(partition, broker, home, (own - most, own - least))
        return self._trade(partition, broker, home, ((p, broker) for p in others))

    def _instead(self, partition: int, broker: int, home: int) -> bool:
        """A smaller one of its home goes to `broker`: the smallest for which its home has room."""
        room = float(self.bounds.bytes_max[home] - self.placement.bytes[home])
        free = self.ways.let_go(home, broker)
        size = self.placement.size[partition]
        first, last = (
            int(free.searchsorted(self.rank_from(bytes_)))
            for bytes_ in (size - max(0.0, room), size)
        )
        others = self._unmoved(free[first : min(last, first + _TRIED)].tolist(), home)
        return self._trade(partition, broker, home, ((p, broker) for p in others))

    def _elsewhere(self, partition: int, broker: int, home: int) -> bool:
        """Where its home gave more than it had to: a smaller one of its home goes to any broker."""
        placement, bounds = self.placement, self.bounds
        own, room = placement.size[partition], float(bounds.bytes_max[home] - placement.bytes[home])
        is_missed = placement.count[broker] <= bounds.count_min[broker]
        if is_missed or not _WORTH * own < room < np.inf:
            return False
        has_place = (placement.count < bounds.count_max)[self.targets]
        free = (bounds.bytes_max - placement.bytes)[self.targets]
        places = self.targets[np.argsort(-np.where(has_place, free, -np.inf), kind="stable")]
        smaller = self._unmoved(self._smaller(partition, home, room), home)
        others = list(islice(smaller, _ELSEWHERE_TRIED))
        if not others:
            return False
        near = np.array([b for b in self.nearby(places, home) if b != broker], dtype=np.int64)
        is_way = self.gains(home, near, placement.columns.size[others]) >= 0
        ranks = np.array([placement.rank_of[p] for p in others])
        racks = self._rack[near]
        for rack in np.unique(racks[is_way.any(axis=0)]).tolist():
            of_it = racks == rack
            is_way[:, of_it] &= self.ways.lets_go(home, int(near[of_it][0]), ranks)[:, None]
        ways = ((others[row], int(near[column])) for row, column in np.argwhere(is_way).tolist())
        return self._trade(partition, broker, home, ways)

    def _smaller(self, partition: int, home: int, room: float) -> list[int]:
        """Ranks of its home's, from the smallest for which there is room."""
        size, ranks = self.placement.size[partition], self.placement.by_size[home]
        first = bisect_left(ranks, self.rank_from(size - max(0.0, room)))
        last = bisect_left(ranks, self.rank_from(size), lo=first)
        return ranks[first : min(last, first + _TRIED)]

    def _unmoved(self, ranks: list[int], home: int) -> Iterator[int]:
        """The partitions of those that were there at first."""
        smaller = (self.placement.partition_at[rank] for rank in ranks)
        return (p for p in smaller if home in self._homes[p])

    def _trade(
        self, partition: int, broker: int, home: int, ways: Iterator[tuple[int, int]]
    ) -> bool:
        """It goes home, and the first other that may goes where it is to go."""
        may_move = self.placement.may_move
        for other, target in ways:
            for_ = partition if target == broker else None
            if not may_move(other, home, target, for_=for_):
                continue
            if may_move(partition, broker, home, for_=other):
                self._move(partition, broker, home)
                self._move(other, home, target)
                return True
        return False

    def _near(
        self, partition: int, broker: int, home: int, sizes: tuple[float, float]
    ) -> Iterator[int]:
        """The nearest in size among replicas that came to its home, that racks let go to `broker`,
        within these sizes."""
        ranks, partition_at = self._come[home], self.placement.partition_at
        at = bisect_left(ranks, self.placement.rank_of[partition])
        low, high = max(0, at - _TRIED // 2), min(len(ranks), at + _TRIED // 2)
        first = bisect_left(ranks, self.rank_from(sizes[0]), low, high)
        last = bisect_left(ranks, self.rank_after(sizes[1]), first, high)
        if first == last:
            return
        free = self.ways.lets_go(home, broker, np.array(ranks[first:last], dtype=np.int64))
        places = (first + np.flatnonzero(free)).tolist()
        for place in sorted(places, key=lambda place: abs(place - at)):
            if partition_at[ranks[place]] != partition:
                yield partition_at[ranks[place]]

    def _move(self, partition: int, source: int, target: int) -> None:
        self.placement.move(partition, source, target)
        rank, homes = self.placement.rank_of[partition], self._homes[partition]
        if source not in homes:
            ranks = self._come[source]
            del ranks[bisect_left(ranks, rank)]
        if target not in homes:
            insort(self._come[target], rank)
