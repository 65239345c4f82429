"""Evening replicas and bytes from the present placement, with as little data as a greedy can.

The most loaded broker gives until it is within its bounds, each time to the broker that needs it
most, a replica of the size that brings replicas and bytes to their bounds together: who has ten
too many and 50 GB too much gives replicas of 5 GB. Then brokers with too few take the smallest
from those that can spare one. Where numbers must stay, a large replica is exchanged for a small
one. A step is made only when it lowers the penalty of the two brokers together, so it ends.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import numpy as np

from planner.columns import Floats, Numbers
from planner.search.bounds import Bounds
from planner.search.candidates import GAIN_MIN, Reach
from planner.search.exchange import Exchanger
from planner.search.placement import Placement

_FOLLOWERS_WITHIN: Final = 8
"""How far from the ideal size a follower is preferred to a leader."""
_WORTH: Final = 0.1
"""How much larger, in mean replicas, a follower may be that moves in the place of a leader."""
_TARGETS_BY_WAY: Final = 4
_WAYS_TRIED: Final = 6
_BY_WAY_TRIED: Final = 4
_BY_WAY_COST: Final = 200
"""Of one of these, in replicas looked at."""
_SMALLEST: Final = 20
"""One in so many partitions is among the smallest."""
_PASSES_MAX: Final = 4


def even_out(placement: Placement, bounds: Bounds, *, gives_small: bool = False) -> None:
    """Give, take, exchange, until no step lowers the penalty. `gives_small`: who has too many bytes
    gives them in many small replicas to who lacks replicas, so that others need not give any; that
    is fewer bytes or more, and leaves those others with more replicas."""
    evener = Evener(placement, bounds, gives_small=gives_small)
    for _ in range(_PASSES_MAX):
        if bounds.is_settled(placement) or not evener.run_once():
            return


class Evener(Reach):
    """Makes the steps."""

    def __init__(self, placement: Placement, bounds: Bounds, *, gives_small: bool = False) -> None:
        super().__init__(placement, bounds)
        self._gives_small = gives_small
        self._exchanger = Exchanger(placement, bounds)
        self._picked_over: set[int] = set()
        """Brokers none of whose replicas near the ideal size may go anywhere nearby."""
        self._gone_short: set[int] = set()
        """Brokers that none of the smallest replicas nearby may go to."""
        number = len(placement.size)
        smallest = self.size_of(number // _SMALLEST) if number else 0
        self._small = max(_WORTH * bounds.unit, float(smallest))
        """Replicas no larger need no smaller one to be looked for."""

    def run_once(self) -> bool:
        """Every broker once in each role; whether anything was moved."""
        moved = self.give_and_take()
        return self.exchange() or moved

    def give_and_take(self) -> bool:
        """Those with too much give, then those with too few take; whether anything was moved."""
        moved = False
        many = many_small(self) if self._gives_small else {}
        for source in self._heaviest_first():
            left = many.get(source, 0.0)
            while self._is_over(source) and self._give(source, left):
                moved = True
                left -= 1
        for target in self.targets[np.argsort(self.placement.count[self.targets])].tolist():
            while self._is_under(target) and self._take(target):
                moved = True
        return moved

    def exchange(self) -> bool:
        """Those with too many bytes exchange large for small; whether any was found."""
        moved = False
        for source in self._heaviest_first():
            while self._is_heavy(source) and self._exchanger.relieve(source):
                moved = True
        return moved

    def _heaviest_first(self) -> list[int]:
        placement, bounds = self.placement, self.bounds
        over = np.maximum(0, placement.bytes - bounds.bytes_max) / bounds.unit
        over += np.maximum(0, placement.count - bounds.count_max)
        order = np.lexsort((-placement.bytes[self.targets], -over[self.targets]))
        return [int(b) for b in self.targets[order]]

    def _is_heavy(self, b: int) -> bool:
        return bool(self.placement.bytes[b] > self.bounds.bytes_max[b])

    def _is_over(self, b: int) -> bool:
        return bool(self._is_heavy(b) or self.placement.count[b] > self.bounds.count_max[b])

    def _is_under(self, b: int) -> bool:
        return bool(self.placement.count[b] < self.bounds.count_min[b])

    def _give(self, source: int, many: float) -> bool:
        """One replica from an overloaded broker to whom it helps most; `many`: it gives its excess
        in so many at least."""
        placement, bounds = self.placement, self.bounds
        surplus = float(placement.count[source] - bounds.count_max[source])
        excess = max(0.0, float(placement.bytes[source] - bounds.bytes_max[source]))
        if surplus <= 0 and placement.count[source] - 1 < bounds.count_min[source]:
            return False  # only an exchange keeps its number
        number = max(1.0, surplus) if np.isfinite(surplus) else 1.0
        room = bounds.bytes_max - placement.bytes
        neediest = self._neediest(room)

        def wanted(target: int) -> float:
            is_lacking = placement.count[target] < bounds.count_min[target]
            ideal = excess / (max(number, many) if is_lacking else number)
            return min(ideal, max(0.0, float(room[target])))

        if source not in self._picked_over:
            for target in self.nearby(neediest, source):
                if self._move_one_of(source, target, self.around(source, wanted(target))):
                    return True
            self._picked_over.add(source)
        further = self.of_each_rack(neediest, source)
        if any(
            self._move_one_of(source, b, self.around_beyond(source, b, wanted(b)))
            for b in self.ways.open_to(further, source)
        ):
            return True
        lacking = (b for b in further if placement.count[b] < bounds.count_max[b])
        return surplus > 0 and any(
            self._give_by(source, b, wanted(b)) for b in islice(lacking, _TARGETS_BY_WAY)
        )

    def _give_by(self, source: int, target: int, wanted: float) -> bool:
        """By way of another of its rack, where racks close the direct one to all it has: that one
        gives one of its own, and takes one of about the same size."""
        placement, size, rack = self.placement, self.placement.size, self.placement.rack
        beside = (b for b in self.targets.tolist() if rack[b] == rack[source] and b != source)
        for way in islice(beside, _WAYS_TRIED):
            for given in islice(self.around_beyond(way, target, wanted), _BY_WAY_TRIED):
                if not placement.may_move(given, way, target):
                    continue
                self.ways.looked_at += _BY_WAY_COST
                for taken in self.around(source, size[given]):
                    is_fit = placement.may_move(taken, source, way)
                    if is_fit and self._gain_by(source, way, target, taken, given) > GAIN_MIN:
                        placement.move(given, way, target)
                        placement.move(taken, source, way)
                        return True
        return False

    def _gain_by(self, source: int, way: int, target: int, taken: int, given: int) -> float:
        size = self.placement.size
        return (
            self._saved(source, -1, -size[taken])
            + self._saved(way, 0, size[taken] - size[given])
            + self._saved(target, 1, size[given])
        )

    def _neediest(self, room: Floats) -> Numbers:
        """Brokers with too few replicas first, then with room for one, the emptiest first."""
        placement, bounds, targets = self.placement, self.bounds, self.targets
        missing = np.maximum(0, bounds.count_min - placement.count)[targets]
        is_full = (placement.count >= bounds.count_max)[targets]
        emptiness = room if np.isfinite(bounds.bytes_max[targets]).all() else -placement.bytes
        order = np.lexsort((-emptiness[targets], -missing, is_full))
        return np.asarray(targets[order])

    def _take(self, target: int) -> bool:
        """The smallest replica of a broker that can spare one; the heaviest brokers first."""
        placement, bounds = self.placement, self.bounds
        can_spare = (placement.count > bounds.count_min)[self.targets]
        givers = self.targets[can_spare]
        order = np.lexsort(
            (-placement.bytes[givers], -(placement.count - bounds.count_max)[givers])
        )
        if target not in self._gone_short:
            ways = ((b, self.around(b, 0.0)) for b in self.nearby(givers[order], target))
            if self._take_smallest(target, ways):
                return True
            self._gone_short.add(target)
        further = self.of_each_rack(givers[order], target)
        return self._take_smallest(
            target, ((b, self.around_beyond(b, target, 0.0)) for b in further)
        )

    def _take_smallest(self, target: int, ways: Iterable[tuple[int, Iterator[int]]]) -> bool:
        """The smallest that one of these brokers may give, where racks leave only large ones to
        some; the first that is small enough will do."""
        placement, size = self.placement, self.placement.size
        best: tuple[int, int, int] | None = None
        for source, partitions in ways:
            partition = self._one_of(source, target, partitions)
            if partition is None:
                continue
            if best is None or size[partition] < best[0]:
                best = size[partition], partition, source
            if best[0] <= self._small:
                break
        if best is None:
            return False
        _, partition, source = best
        placement.move(partition, source, target)
        return True

    def _move_one_of(self, source: int, target: int, partitions: Iterator[int]) -> bool:
        partition = self._one_of(source, target, partitions)
        if partition is None:
            return False
        self.placement.move(partition, source, target)
        return True

    def _one_of(self, source: int, target: int, partitions: Iterator[int]) -> int | None:
        """The first that lowers the penalty: rather a follower, if it is near the first."""
        placement, size = self.placement, self.placement.size
        leader, gain = None, self.gain_of_one(source, target)
        for tried, partition in enumerate(partitions):
            if gain(size[partition]) <= GAIN_MIN:
                continue
            if not placement.may_move(partition, source, target):
                continue
            if leader is not None and size[partition] > size[leader] + _WORTH * self.bounds.unit:
                continue
            if placement.replicas[partition][0] != source:
                return partition
            leader = partition if leader is None else leader
            if tried >= _FOLLOWERS_WITHIN:
                break
        return leader


def many_small(reach: Reach) -> dict[int, float]:
    """In how many replicas each broker with too many bytes is to give these to who lacks replicas:
    as many of its smallest as it takes, as long as nobody else has to give replicas anyway.

    Worked example: 1 has 30 bytes too many, one of 30 and four of 8; 2 has four of 5; 3 lacks four.
    Gave 1 its 30, then 3 would take three of 5 as well: 45 bytes. It gives its four of 8: 32.
    """
    placement, bounds, targets = reach.placement, reach.bounds, reach.targets
    missing = float(np.maximum(0.0, bounds.count_min - placement.count)[targets].sum())
    surplus = np.maximum(0.0, placement.count - bounds.count_max)
    lacking = missing - float(surplus[targets].sum())
    further: dict[int, float] = {}
    for source in targets.tolist() if lacking > 0 else ():
        excess = float(placement.bytes[source] - bounds.bytes_max[source])
        spare = int(min(missing, placement.count[source] - bounds.count_min[source]))
        if excess > 0 and spare > 0:
            smallest = np.cumsum([reach.size_of(r) for r in placement.by_size[source][:spare]])
            number = float(smallest.searchsorted(excess)) + 1
            further[source] = max(0.0, number - float(surplus[source]))
    share = min(1.0, lacking / max(1.0, sum(further.values())))
    return {b: float(surplus[b]) + share * number for b, number in further.items()}
