"""Evening preferred leaders by reordering replicas: no data moves.

Broker u can hand leadership to v through any partition that u leads and v holds. A broker with
too many leaders reaches one with room along such hands (breadth first, so by the fewest changes);
this is an augmenting path, and when none is left no order of the replicas is more even.
"""

from collections import deque
from itertools import pairwise
from typing import Final

import numpy as np

from planner.columns import Numbers
from planner.goals import Tolerance, whole_bounds
from planner.search.placement import Placement, reorderable

_NOBODY: Final = -1


def leader_bounds(
    placement: Placement, tolerance: Tolerance, *, is_no_worse: bool = False
) -> tuple[int, int]:
    """(fewest, most) leaders of a balanced broker: mean ± tolerance; `is_no_worse`: or as few and
    as many as one has now."""
    leaders = placement.leaders[placement.is_target]
    if not len(leaders):
        return 0, 0
    low, high = whole_bounds(leaders.mean(keepdims=True), tolerance.leaders or 0.0)
    if is_no_worse:
        return min(int(low[0]), int(leaders.min())), max(int(high[0]), int(leaders.max()))
    return int(low[0]), int(high[0])


def even_leaders(placement: Placement, bounds: tuple[int, int]) -> None:
    """Bring leaders per balanced broker into these bounds, as far as replicas allow.

    A removed or excluded broker keeps what it leads.
    """
    low, high = bounds
    hands = _Hands(placement)
    for broker in _ordered(placement, most_first=True):
        while placement.leaders[broker] > high:
            if not hands.shift(broker, limit=high, is_giving=True):
                break
    for broker in _ordered(placement, most_first=False):
        while placement.leaders[broker] < low:
            if not hands.shift(broker, limit=low, is_giving=False):
                break


def _ordered(placement: Placement, *, most_first: bool) -> list[int]:
    brokers = [int(b) for b in np.flatnonzero(placement.is_target)]
    return sorted(brokers, key=lambda b: placement.leaders[b], reverse=most_first)


class _Hands:
    """How many partitions u leads and v holds, and which: the first are looked up in a sorted
    list, those that came later in `_later`. An entry that is no longer true is skipped."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._brokers = brokers = placement.brokers
        leader, follower, partition = _pairs(placement)
        code = leader * brokers + follower
        order = np.lexsort((partition, code))
        self._partitions: list[int] = partition[order].tolist()
        edges = np.searchsorted(code[order], np.arange(brokers * brokers + 1))
        self._next: list[int] = edges[:-1].tolist()
        self._end: list[int] = edges[1:].tolist()
        self._later: dict[int, list[int]] = {}
        self._number = np.bincount(code, minlength=brokers * brokers).reshape(brokers, brokers)

    def shift(self, start: int, *, limit: int, is_giving: bool) -> bool:
        """Move one leadership between `start` and the nearest broker on the other side."""
        path = self._find_path(start, limit, is_giving=is_giving)
        if path is None:
            return False
        for giver, taker in pairwise(path if is_giving else path[::-1]):
            self._hand_over(giver, taker)
        return True

    def _hand_over(self, giver: int, taker: int) -> None:
        placement = self._placement
        partition = self._pop(giver, taker)
        for follower in placement.replicas[partition][1:]:
            self._number[giver, follower] -= 1
        placement.lead(partition, taker)
        for follower in placement.replicas[partition][1:]:
            self._number[taker, follower] += 1
            self._later.setdefault(taker * self._brokers + follower, []).append(partition)

    def _pop(self, giver: int, taker: int) -> int:
        code = giver * self._brokers + taker
        while self._next[code] < self._end[code]:
            partition = self._partitions[self._next[code]]
            self._next[code] += 1
            if self._is_true(partition, giver, taker):
                return partition
        while True:
            partition = self._later[code].pop()
            if self._is_true(partition, giver, taker):
                return partition

    def _is_true(self, partition: int, giver: int, taker: int) -> bool:
        replicas = self._placement.replicas[partition]
        return replicas[0] == giver and taker in replicas

    def _find_path(self, start: int, limit: int, *, is_giving: bool) -> list[int] | None:
        placement = self._placement
        load = placement.leaders
        has_room = (load < limit if is_giving else load > limit) & placement.is_target
        came_from = np.full(self._brokers, _NOBODY)
        came_from[start] = start
        queue = deque([start])
        while queue:
            here = queue.popleft()
            edges = self._number[here] if is_giving else self._number[:, here]
            reached = (edges > 0) & (came_from == _NOBODY) & placement.is_target
            came_from[reached] = here
            found = np.flatnonzero(reached & has_room)
            if len(found):
                extreme = np.argmin(load[found]) if is_giving else np.argmax(load[found])
                return _walk_back(came_from, int(found[extreme]))
            queue.extend(np.flatnonzero(reached).tolist())
        return None


def _pairs(placement: Placement) -> tuple[Numbers, Numbers, Numbers]:
    """(leader, follower, partition) of every movable partition."""
    leaders, followers, partitions = [], [], []
    for p in reorderable(placement):
        replicas = placement.replicas[p]
        leader = replicas[0]
        for follower in replicas[1:]:
            leaders.append(leader)
            followers.append(follower)
            partitions.append(p)
    return (
        np.array(leaders, dtype=np.int64),
        np.array(followers, dtype=np.int64),
        np.array(partitions, dtype=np.int64),
    )


def _walk_back(came_from: Numbers, end: int) -> list[int]:
    path = [end]
    while came_from[path[-1]] != path[-1]:
        path.append(int(came_from[path[-1]]))
    return path[::-1]
