"""What a step of evening looks at: brokers near to one, replicas near to a size, what it gains."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import numpy as np

from control.planner.bounds import Bounds
from control.planner.columns import Numbers
from control.planner.placement import Placement

GAIN_MIN: Final = 1e-6
_TARGETS_TRIED: Final = 8
_REPLICAS_TRIED: Final = 48


class Reach:
    """A placement under bounds. Penalties are in replicas (control.planner.bounds)."""

    def __init__(self, placement: Placement, bounds: Bounds) -> None:
        self.placement = placement
        self.bounds = bounds
        self.targets = np.flatnonzero(placement.is_target)
        size = placement.size
        self._rack = np.array(placement.rack)
        self._sizes: list[int] = [size[p] for p in placement.partition_at]

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

    def gain(self, source: int, target: int, size: int, number: int) -> float:
        """Penalty saved when `size` bytes in `number` replicas go from source to target."""
        placement, penalty = self.placement, self.bounds.penalty
        counts, held = placement.count, placement.bytes
        return (
            penalty(source, counts[source], held[source])
            + penalty(target, counts[target], held[target])
            - penalty(source, counts[source] - number, held[source] - size)
            - penalty(target, counts[target] + number, held[target] + size)
        )
