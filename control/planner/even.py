"""Evening replicas and bytes from the present placement, with as little data as a greedy can.

The most loaded broker gives until it is within its bounds, each time to the broker that needs it
most, a replica of the size that brings replicas and bytes to their bounds together: who has ten
too many and 50 GB too much gives replicas of 5 GB. Then brokers with too few take the smallest
from those that can spare one. Where numbers must stay, a large replica is exchanged for a small
one. A step is made only when it lowers the penalty of the two brokers together, so it ends.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import numpy as np

from control.planner.bounds import Bounds
from control.planner.columns import Floats, Numbers
from control.planner.placement import Placement

_GAIN_MIN: Final = 1e-6
_TARGETS_TRIED: Final = 8
_REPLICAS_TRIED: Final = 48
_FOLLOWERS_WITHIN: Final = 8
"""How far from the ideal size a follower is preferred to a leader."""
_SMALL_TRIED: Final = 12
_PASSES_MAX: Final = 4


def even_out(placement: Placement, bounds: Bounds) -> None:
    """Give, take, exchange, until no step lowers the penalty."""
    evener = _Evener(placement, bounds)
    for _ in range(_PASSES_MAX):
        if bounds.is_settled(placement) or not evener.run_once():
            return


class _Evener:
    def __init__(self, placement: Placement, bounds: Bounds) -> None:
        self._placement = placement
        self._bounds = bounds
        self._targets = np.flatnonzero(placement.is_target)
        size = placement.size
        self._rack = np.array(placement.rack)
        self._sizes = [size[p] for p in placement.partition_at]

    def run_once(self) -> bool:
        """Every broker once in each role; whether anything was moved."""
        moved = False
        for source in self._heaviest_first():
            while self._is_over(source) and self._give(source):
                moved = True
        for target in self._targets[np.argsort(self._placement.count[self._targets])].tolist():
            while self._is_under(target) and self._take(target):
                moved = True
        for source in self._heaviest_first():
            while self._is_heavy(source) and self._exchange(source):
                moved = True
        return moved

    def _heaviest_first(self) -> list[int]:
        placement, bounds = self._placement, self._bounds
        over = np.maximum(0, placement.bytes - bounds.bytes_max) / bounds.unit
        over += np.maximum(0, placement.count - bounds.count_max)
        order = np.lexsort((-placement.bytes[self._targets], -over[self._targets]))
        return [int(b) for b in self._targets[order]]

    def _is_heavy(self, b: int) -> bool:
        return bool(self._placement.bytes[b] > self._bounds.bytes_max[b])

    def _is_over(self, b: int) -> bool:
        return bool(self._is_heavy(b) or self._placement.count[b] > self._bounds.count_max[b])

    def _is_under(self, b: int) -> bool:
        return bool(self._placement.count[b] < self._bounds.count_min[b])

    def _give(self, source: int) -> bool:
        """One replica from an overloaded broker to whom it helps most."""
        placement, bounds = self._placement, self._bounds
        surplus = float(placement.count[source] - bounds.count_max[source])
        excess = max(0.0, float(placement.bytes[source] - bounds.bytes_max[source]))
        if surplus <= 0 and placement.count[source] - 1 < bounds.count_min[source]:
            return False  # only an exchange keeps its number
        ideal = excess / max(1.0, surplus) if np.isfinite(surplus) else excess
        room = bounds.bytes_max - placement.bytes
        for target in self._nearby(self._neediest(room), source):
            wanted = min(ideal, max(0.0, float(room[target])))
            if self._move_nearest(source, target, wanted):
                return True
        return False

    def _nearby(self, brokers: Numbers, broker: int) -> list[int]:
        """The first few of the broker's own rack (always allowed), then the first few others."""
        rack = self._rack
        is_own = rack[brokers] == rack[broker]
        own, others = brokers[is_own], brokers[~is_own]
        chosen = (*own[: _TARGETS_TRIED + 1].tolist(), *others[:_TARGETS_TRIED].tolist())
        return [b for b in chosen if b != broker]

    def _neediest(self, room: Floats) -> Numbers:
        """Brokers with too few replicas first, then with room for one, the emptiest first."""
        placement, bounds, targets = self._placement, self._bounds, self._targets
        missing = np.maximum(0, bounds.count_min - placement.count)[targets]
        is_full = (placement.count >= bounds.count_max)[targets]
        emptiness = room if np.isfinite(bounds.bytes_max[targets]).all() else -placement.bytes
        order = np.lexsort((-emptiness[targets], -missing, is_full))
        return np.asarray(targets[order])

    def _take(self, target: int) -> bool:
        """The smallest replica of a broker that can spare one; the heaviest brokers first."""
        placement, bounds = self._placement, self._bounds
        can_spare = (placement.count > bounds.count_min)[self._targets]
        givers = self._targets[can_spare]
        order = np.lexsort(
            (-placement.bytes[givers], -(placement.count - bounds.count_max)[givers])
        )
        nearby = self._nearby(givers[order], target)
        return any(self._move_nearest(source, target, 0.0) for source in nearby)

    def _move_nearest(self, source: int, target: int, ideal: float) -> bool:
        """Move the replica nearest to the ideal size that lowers the penalty."""
        placement = self._placement
        leader = None
        for tried, partition in enumerate(self._around(source, ideal)):
            if not placement.may_move(partition, source, target):
                continue
            if self._gain(source, target, placement.size[partition], 1) <= _GAIN_MIN:
                continue
            if placement.replicas[partition][0] != source:
                placement.move(partition, source, target)
                return True
            leader = partition if leader is None else leader
            if tried >= _FOLLOWERS_WITHIN:
                break
        if leader is None:
            return False
        placement.move(leader, source, target)
        return True

    def _around(self, broker: int, ideal: float) -> Iterator[int]:
        """Movable partitions of a broker, from the ideal size outwards."""
        placement, sizes = self._placement, self._sizes
        ranks, partition_at = placement.by_size[broker], placement.partition_at
        high = bisect_left(ranks, ideal, key=sizes.__getitem__)
        low = high - 1
        for _ in range(_REPLICAS_TRIED):
            is_above = high < len(ranks)
            if low < 0 and not is_above:
                return
            above = sizes[ranks[high]] - ideal if is_above else np.inf
            if low < 0 or above <= ideal - sizes[ranks[low]]:
                yield partition_at[ranks[high]]
                high += 1
            else:
                yield partition_at[ranks[low]]
                low -= 1

    def _gain(self, source: int, target: int, size: int, number: int) -> float:
        """Penalty saved when `size` bytes in `number` replicas go from source to target."""
        placement, penalty = self._placement, self._bounds.penalty
        counts, held = placement.count, placement.bytes
        return (
            penalty(source, counts[source], held[source])
            + penalty(target, counts[target], held[target])
            - penalty(source, counts[source] - number, held[source] - size)
            - penalty(target, counts[target] + number, held[target] + size)
        )

    def _exchange(self, source: int) -> bool:
        """A large replica against a small one of a lighter broker."""
        placement, bounds = self._placement, self._bounds
        room = (bounds.bytes_max - placement.bytes)[self._targets]
        lightest = self._targets[np.argsort(-room, kind="stable")]
        return any(self._exchange_with(source, b) for b in self._nearby(lightest, source))

    def _exchange_with(self, source: int, target: int) -> bool:
        placement, bounds = self._placement, self._bounds
        excess = float(placement.bytes[source] - bounds.bytes_max[source])
        room = float(bounds.bytes_max[target] - placement.bytes[target])
        shift = min(excess, room)
        if shift <= 0:
            return False
        small = [placement.partition_at[r] for r in placement.by_size[target][:_SMALL_TRIED]]
        for back in small:
            if not placement.may_move(back, target, source):
                continue
            for forth in self._around(source, shift + placement.size[back]):
                if self._swap(source, target, forth, back):
                    return True
        return False

    def _swap(self, source: int, target: int, forth: int, back: int) -> bool:
        placement = self._placement
        shift = placement.size[forth] - placement.size[back]
        if shift <= 0 or forth == back or not placement.may_move(forth, source, target):
            return False
        if self._gain(source, target, shift, 0) <= _GAIN_MIN * 100:
            return False
        placement.move(forth, source, target)
        placement.move(back, target, source)
        return True
