"""Candidates of a step of evening: brokers near to one, replicas near to a size, and the gain."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from planner.columns import Floats, Numbers
from planner.search.bounds import Bounds
from planner.search.placement import Placement
from planner.search.rack_moves import Ways

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
        self._size_at = np.array(self._sizes, dtype=np.int64)
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
        self.ways = Ways(placement)

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
        high = bisect_left(ranks, self.rank_from(ideal))
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
        free = self.ways.let_go(source, target)
        middle = int(free.searchsorted(self.rank_from(ideal)))
        near = free[max(0, middle - _REPLICAS_TRIED) : middle + _REPLICAS_TRIED]
        distance = np.abs(self._size_at[near] - ideal)
        nearest = near[distance.argsort(kind="stable")[:_REPLICAS_TRIED]]
        yield from self._partition_at[nearest].tolist()

    def rank_from(self, size: float) -> int:
        """The first rank of at least this size."""
        return bisect_left(self._sizes, size)

    def rank_after(self, size: float) -> int:
        """The first rank of more than this size."""
        return bisect_right(self._sizes, size)

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

    def gains(self, source: int, targets: Numbers, sizes: Numbers) -> Floats:
        """`gain` of one replica: a row for each of these sizes, a column for each target."""
        placement, bounds = self.placement, self.bounds
        of_numbers = self._of_numbers(source, targets)
        from_source = float(placement.bytes[source]) - self._limits[source][2]
        from_target = placement.bytes[targets] - bounds.bytes_max[targets]
        now = max(from_source, 0.0) + np.maximum(from_target, 0.0)
        left, came = from_source - sizes[:, None], from_target + sizes[:, None]
        then = np.maximum(left, 0.0) + np.maximum(came, 0.0)
        gained: Floats = of_numbers + (now - then) / bounds.unit
        return gained

    def _of_numbers(self, source: int, targets: Numbers) -> Floats:
        """Penalty saved when one replica of no bytes goes from source to each target."""
        placement, bounds = self.placement, self.bounds
        count, least, most = (
            each[targets] for each in (placement.count, bounds.count_min, bounds.count_max)
        )
        held = np.maximum(placement.bytes[targets] - bounds.bytes_max[targets], 0.0) / bounds.unit
        now = np.maximum(count - most, 0.0) + np.maximum(least - count, 0.0) + held
        count = count + 1
        then = np.maximum(count - most, 0.0) + np.maximum(least - count, 0.0) + held
        saved: Floats = self._saved(source, -1, 0) + (now - then)
        return saved

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
