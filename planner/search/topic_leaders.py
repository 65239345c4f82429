"""Leaders of each topic evenly over the brokers, by reordering replicas: no data moves.

Each topic gets its leaders by augmenting paths, as search.leaders does for all of them,
over that topic's partitions alone; among brokers that may lead one more, the one that leads least
in all is chosen. So the remainders of many topics (5 leaders on 3 brokers) even each other out.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import groupby
from operator import itemgetter

import numpy as np

from planner.columns import topic_numbers
from planner.search.placement import Placement, reorderable


def even_topic_leaders(placement: Placement) -> None:
    """Every topic's leaders within its mean, rounded down and up, as far as replicas allow."""
    counts = placement.topics
    assert counts is not None
    of = counts.of.tolist()
    chosen = reorderable(placement)
    by_topic = sorted(((of[p], p) for p in chosen), key=itemgetter(0))
    for _, members in groupby(by_topic, key=itemgetter(0)):
        _TopicLeaders(placement, [p for _, p in members]).even()


def uneven_topic_leaders(placement: Placement) -> int:
    """Leaders of each topic that brokers have too many or too few of."""
    chosen = reorderable(placement)
    leader = np.array([placement.replicas[p][0] for p in chosen], dtype=np.int64)
    of = topic_numbers(placement.topology)[chosen]
    led = np.zeros((int(of.max(initial=-1)) + 1, placement.brokers), dtype=np.int64)
    np.add.at(led, (of, leader), 1)
    led = led[:, placement.is_target]
    low, rest = np.divmod(led.sum(axis=1, keepdims=True), max(1, led.shape[1]))
    off = np.maximum(led - low - (rest > 0), 0) + np.maximum(low - led, 0)
    return int(off.sum())


class _TopicLeaders:
    def __init__(self, placement: Placement, partitions: list[int]) -> None:
        self._placement = placement
        targets: list[int] = np.flatnonzero(placement.is_target).tolist()
        self._led: dict[int, list[int]] = {b: [] for b in targets}
        for partition in partitions:
            leader = placement.replicas[partition][0]
            if leader in self._led:
                self._led[leader].append(partition)
        total = sum(map(len, self._led.values()))
        self._low, rest = divmod(total, len(self._led))
        self._high = self._low + (rest > 0)

    def even(self) -> None:
        """From whoever leads too many; to whoever leads too few; then to who leads least in all."""
        for broker in self._by_number(-1):
            while self._number(broker) > self._high:
                if not self._shift(broker, lambda b: self._number(b) < self._high):
                    break
        for broker in self._by_number(1):
            while self._number(broker) < self._low:
                if not self._fetch(broker):
                    break
        self._use_the_rest()

    def _number(self, broker: int) -> int:
        return len(self._led[broker])

    def _by_number(self, sign: int) -> list[int]:
        return sorted(self._led, key=lambda b: (sign * self._number(b), b))

    def _use_the_rest(self) -> None:
        """The brokers that lead one more of this topic be those that lead fewest in all."""
        total = self._placement.leaders
        above = [b for b in self._led if self._number(b) > self._low]
        for broker in sorted(above, key=lambda b: (-total[b], b)):
            self._shift(broker, partial(self._is_better, most=int(total[broker]) - 1))

    def _is_better(self, broker: int, *, most: int) -> bool:
        is_free = self._number(broker) <= self._low
        return is_free and bool(self._placement.leaders[broker] < most)

    def _fetch(self, start: int) -> bool:
        """From whoever can spare one and reaches `start`; who leads most first."""
        spare = [b for b in self._led if self._number(b) > self._low]
        total = self._placement.leaders
        by_load = sorted(spare, key=lambda b: (-self._number(b), -total[b], b))
        return any(self._shift(broker, lambda b: b == start) for broker in by_load)

    def _shift(self, start: int, is_end: Callable[[int], bool]) -> bool:
        """One leadership along the shortest chain to an end; the one that leads least in all."""
        links: dict[int, tuple[int, int]] = {}
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for partition in self._led[here]:
                for follower in self._placement.replicas[partition][1:]:
                    if follower in self._led and follower not in links and follower != start:
                        links[follower] = (here, partition)
                        queue.append(follower)
            total = self._placement.leaders
            end = min(filter(is_end, links), key=lambda b: (total[b], b), default=None)
            if end is not None:
                self._hand_over(links, start, end)
                return True
        return False

    def _hand_over(self, links: dict[int, tuple[int, int]], start: int, end: int) -> None:
        while end != start:
            giver, partition = links[end]
            self._placement.lead(partition, end)
            self._led[giver].remove(partition)
            self._led[end].append(partition)
            end = giver
