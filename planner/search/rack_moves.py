"""Which replicas racks let go from a broker to another, kept up to date while replicas move."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.columns import Flags, Numbers
from planner.search.placement import Placement, is_offered, racks_let_go

_TOUCHED_MAX: Final = 24
"""Partitions: where more were touched, all of a broker's replicas are looked at again."""
_TOUCHED_COST: Final = 50
"""Of each of these, in replicas looked at."""


@dataclass(slots=True)
class _Free:
    """Ranks as they were when `at` partitions had been touched."""

    ranks: Numbers
    at: int


class Ways:
    """From each broker to each rack. Replicas are ranks, as in Placement.by_size."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._partition_at = np.array(placement.partition_at, dtype=np.int64)
        self._free_to: dict[tuple[int, int], _Free] = {}
        self.looked_at = 0
        """Replicas that were looked at one and all."""

    def let_go(self, source: int, target: int) -> Numbers:
        """All of the source's that racks let go to the target, the smallest first. The same for
        every target of a rack; only what was touched since the last time is looked at again."""
        placement = self._placement
        way = source, placement.rack[target]
        free, at = self._free_to.get(way), len(placement.touched)
        if free is None or at - free.at > _TOUCHED_MAX:
            ranks = np.array(placement.by_size[source], dtype=np.int64)
            self.looked_at += len(ranks)
            may_go = racks_let_go(placement, self._partition_at[ranks], source, target)
            free = self._free_to[way] = _Free(ranks[may_go], at)
        elif free.at < at:
            touched = dict.fromkeys(placement.touched[free.at :])
            self.looked_at += _TOUCHED_COST * len(touched)
            for partition in touched:
                self._bring_up_to_date(free, partition, source, target)
            free.at = at
        return free.ranks

    def lets_go(self, source: int, target: int, ranks: Numbers) -> Flags:
        """Which of these racks let go from source to target."""
        free = self.let_go(source, target)
        if not len(free):
            return np.zeros(len(ranks), dtype=np.bool_)
        place = np.minimum(free.searchsorted(ranks), len(free) - 1)
        is_free: Flags = free[place] == ranks
        return is_free

    def open_to(self, targets: Sequence[int], source: int) -> list[int]:
        """Those of the targets that racks let any of the source's go to."""
        rack = self._placement.rack
        one_of = {rack[b]: b for b in targets}
        is_open = {r: bool(len(self.let_go(source, b))) for r, b in one_of.items()}
        return [b for b in targets if is_open[rack[b]]]

    def _bring_up_to_date(self, free: _Free, partition: int, source: int, target: int) -> None:
        placement, ranks = self._placement, free.ranks
        rank = placement.rank_of[partition]
        place = int(ranks.searchsorted(rank))
        is_in = place < len(ranks) and int(ranks[place]) == rank
        may_go = is_offered(placement, partition, source)
        may_go = may_go and placement.may_change_racks(partition, source, target)
        if is_in and not may_go:
            free.ranks = np.concatenate((ranks[:place], ranks[place + 1 :]))
        elif may_go and not is_in:
            free.ranks = np.concatenate((ranks[:place], (rank,), ranks[place:]))
