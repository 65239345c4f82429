"""What a step of evening looks at: brokers near to one, replicas near to a size, what it gains."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from control.planner.bounds import Bounds
from control.planner.columns import Numbers
from control.planner.placement import Placement, racks_let_go

GAIN_MIN: Final = 1e-6
LOSS_MAX: Final = 1e-9
_TARGETS_TRIED: Final = 8
_REPLICAS_TRIED: Final = 48
_OF_EACH_RACK: Final = 6


class Reach:
    """A placement under bounds. Penalties are in replicas: one too many is as bad as the bytes of a
    mean one."""

    def __init__(self, placement: Placement, bounds: Bounds) -> None:
        self.placement = placement
        self.bounds = bounds
        self.targets = np.flatnonzero(placement.is_target)
        size = placement.size
        self._rack = np.array(placement.rack)
        self._sizes: list[int] = [size[p] for p in placement.partition_at]
        self._limits: list[tuple[float, float, float, float]] = [
            (least, most, held, bounds.unit)
            for least, most, held in zip(
                bounds.count_min.tolist(),
                bounds.count_max.tolist(),
                bounds.bytes_max.tolist(),
                strict=True,
            )
        ]
        self._partition_at = np.array(placement.partition_at, dtype=np.int64)
        self._free_to: dict[tuple[int, int], Numbers] = {}
        self._free_at = -1
        self.looked_at = 0
        """Replicas that were looked at one and all."""

    def size_of(self, rank: int) -> int:
        """Bytes of the replica with this rank."""
        return self._sizes[rank]

    def nearby(self, brokers: Numbers, broker: int) -> list[int]:
        """The first few of the broker's own rack (always allowed), then the first few others."""
        rack = self._rack
        is_own = rack[brokers] == rack[broker]
        own, others = brokers[is_own], brokers[~is_own]
        chosen = (*own[: _TARGETS_TRIED + 1].tolist(), *others[:_TARGETS_TRIED].tolist())
        return [b for b in chosen if b != broker]

    def of_each_rack(self, brokers: Numbers, broker: int) -> list[int]:
        """The first few of every rack, in their order: for when all nearby ones are closed."""
        rack, chosen = self.placement.rack, []
        left = dict.fromkeys(rack, _OF_EACH_RACK)
        for b in brokers.tolist():
            if left[rack[b]]:
                left[rack[b]] -= 1
                if b != broker:
                    chosen.append(b)
        return chosen

    def around(self, broker: int, ideal: float) -> Iterator[int]:
        """Movable partitions of a broker, from the ideal size outwards."""
        placement, sizes = self.placement, self._sizes
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

    def around_beyond(self, source: int, target: int, ideal: float) -> Iterator[int]:
        """Like `around`, of those that racks let go to `target`, however far from the ideal."""
        free = self._let_go(source, target)
        sizes = self.placement.columns.size[free]
        middle = int(np.searchsorted(sizes, ideal))
        low = max(0, middle - _REPLICAS_TRIED)
        distance = np.abs(sizes[low : middle + _REPLICAS_TRIED] - ideal)
        nearest = low + np.argsort(distance, kind="stable")[:_REPLICAS_TRIED]
        yield from free[nearest].tolist()

    def _let_go(self, source: int, target: int) -> Numbers:
        """All of the source's that racks let go to the target, the smallest first. The same for
        every target of a rack, as long as nothing changes."""
        placement = self.placement
        if self._free_at != placement.changes:
            self._free_at, self._free_to = placement.changes, {}
        way = source, placement.rack[target]
        if way in self._free_to:
            return self._free_to[way]
        ranks = np.array(placement.by_size[source], dtype=np.int64)
        partitions = self._partition_at[ranks]
        self.looked_at += len(ranks)
        free: Numbers = partitions[racks_let_go(placement, partitions, source, target)]
        self._free_to[way] = free
        return free

    def gain(self, source: int, target: int, size: int, number: int) -> float:
        """Penalty saved when `size` bytes in `number` replicas go from source to target."""
        return self._saved(source, -number, -size) + self._saved(target, number, size)

    def gain_of_one(self, source: int, target: int) -> Callable[[int], float]:
        """`gain` of one replica, by its bytes: for trying many, as long as nothing moves."""
        of_numbers = self.gain(source, target, 0, 1)
        placement, unit = self.placement, self.bounds.unit
        from_source = float(placement.bytes[source]) - self._limits[source][2]
        from_target = float(placement.bytes[target]) - self._limits[target][2]
        now = max(from_source, 0.0) + max(from_target, 0.0)

        def gain(size: int) -> float:
            left, came = from_source - size, from_target + size
            then = (left if left > 0 else 0.0) + (came if came > 0 else 0.0)
            return of_numbers + (now - then) / unit

        return gain

    def shifts(self, source: int, target: int) -> tuple[float, float]:
        """(least, most) bytes that an exchange may take from source to target so that `gain` of
        it is no loss; the least is below zero."""
        placement = self.placement
        from_source = float(placement.bytes[source]) - self._limits[source][2]
        from_target = float(placement.bytes[target]) - self._limits[target][2]
        least = max(-from_source, 0.0) + max(from_target, 0.0)
        most = max(-from_target, 0.0) + max(from_source, 0.0)
        return -least, most

    def _saved(self, broker: int, number: int, size: int) -> float:
        """Penalty saved when a broker has so much more. Plain numbers: this is the inner loop."""
        limits = self._limits[broker]
        count, held = int(self.placement.count[broker]), int(self.placement.bytes[broker])
        return _penalty(limits, count, held) - _penalty(limits, count + number, held + size)


def _penalty(limits: tuple[float, float, float, float], count: int, held: int) -> float:
    """How far outside of its bounds a broker is, in replicas."""
    count_min, count_max, bytes_max, unit = limits
    outside = 0.0
    if count > count_max:
        outside += count - count_max
    if count < count_min:
        outside += count_min - count
    if held > bytes_max:
        outside += (held - bytes_max) / unit
    return outside
