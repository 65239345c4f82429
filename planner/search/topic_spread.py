"""Spreading each topic evenly: its replicas, then its leaders, over the brokers.

A broker that holds more replicas of a topic than its share gives one to the broker in most need
of it; where racks forbid that, along the shortest chain of brokers that may. It gives the replica
of the size that the receiver lacks per replica that it lacks, or the smallest. Afterwards the
placement keeps topics within their bounds, so that evening numbers and bytes undoes nothing.
"""

from collections import deque
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from planner.columns import Columns, topic_numbers
from planner.goals import PlanRequest
from planner.roles import roles_of
from planner.search.bounds import fair_shares
from planner.search.placement import Placement, columns_now
from planner.search.topic_counts import TopicCounts, topic_counts
from planner.topology import Topology


def spread_topics(placement: Placement, *, fills_bytes: bool) -> None:
    """Every movable topic within its bounds, as far as racks and disks allow. `fills_bytes`:
    choose replicas by what brokers lack; else the smallest."""
    counts = counts_for(placement.topology, placement.request, columns_now(placement))
    placement.topics = counts
    spreader = _Spreader(placement, counts, fills_bytes=fills_bytes)
    target = placement.is_target
    wrong = ((counts.count > counts.high) | (counts.count < counts.low))[:, target].any(axis=1)
    for topic in np.flatnonzero(wrong).tolist():
        spreader.spread(topic)


def counts_for(topology: Topology, request: PlanRequest, columns: Columns) -> TopicCounts:
    """The topics of a placement under a request. `columns` may be of another placement."""
    return topic_counts(columns, topic_numbers(topology), roles_of(topology, request))


class _Spreader:
    def __init__(self, placement: Placement, counts: TopicCounts, *, fills_bytes: bool) -> None:
        self._placement = placement
        self._counts = counts
        self._targets: list[int] = np.flatnonzero(placement.is_target).tolist()
        self._fills_bytes = fills_bytes
        self._count_share, self._share = fair_shares(placement)

    def spread(self, topic: int) -> None:
        """Give from those above, then to those below."""
        counts = self._counts
        movable = [p for p in counts.members(topic) if self._placement.is_movable[p]]
        for broker in self._targets:
            while counts.count[topic, broker] > counts.high[topic, broker]:
                if not self._shift(topic, movable, broker, is_giving=True):
                    break
        for broker in self._targets:
            while counts.count[topic, broker] < counts.low[topic, broker]:
                if not self._shift(topic, movable, broker, is_giving=False):
                    break

    def _shift(self, topic: int, movable: list[int], start: int, *, is_giving: bool) -> bool:
        """One replica more or fewer on `start`, along the shortest chain."""
        came_from = {start: start}
        queue = deque([start])
        while queue:
            here = queue.popleft()
            nearby = [b for b in self._targets if b not in came_from]
            for broker in sorted(nearby, key=self._need, reverse=is_giving):
                pair = (here, broker) if is_giving else (broker, here)
                if self._candidate(movable, *pair) is None:
                    continue
                came_from[broker] = here
                if self._has_spare(topic, broker, is_giving=is_giving):
                    return self._walk(movable, came_from, broker, is_giving=is_giving)
                queue.append(broker)
        return False

    def _walk(
        self, movable: list[int], came_from: dict[int, int], end: int, *, is_giving: bool
    ) -> bool:
        """Move one replica along each link, from the end that has room; whether all could."""
        path = [end]
        while came_from[path[-1]] != path[-1]:
            path.append(came_from[path[-1]])
        for last, before in pairwise(path):
            source, target = (before, last) if is_giving else (last, before)
            partition = self._candidate(movable, source, target)
            if partition is None:
                return False
            self._placement.move(partition, source, target)
        return True

    def _has_spare(self, topic: int, broker: int, *, is_giving: bool) -> bool:
        counts = self._counts
        number = counts.count[topic, broker]
        if is_giving:
            return bool(number < counts.high[topic, broker])
        return bool(number > counts.low[topic, broker])

    def _need(self, broker: int) -> float:
        return float(self._share[broker] - self._placement.bytes[broker])

    def _candidate(self, movable: list[int], source: int, target: int) -> int | None:
        """The replica of the topic that goes from one to the other."""
        placement = self._placement
        ideal = self._ideal_size(target) if self._fills_bytes else 0.0

        def cost(partition: int) -> tuple[float, bool]:
            is_leader = placement.replicas[partition][0] == source
            return abs(placement.size[partition] - ideal), is_leader

        return min(self._may_go(movable, source, target), key=cost, default=None)

    def _ideal_size(self, target: int) -> float:
        """Bytes still missing per replica still missing."""
        slots = float(self._count_share[target] - self._placement.count[target])
        return max(0.0, self._need(target)) / max(1.0, slots)

    def _may_go(self, movable: list[int], source: int, target: int) -> Iterator[int]:
        placement = self._placement
        for partition in movable:
            replicas = placement.replicas[partition]
            if source not in replicas or target in replicas:
                continue
            if not placement.sync.keeps(partition, source, target, replicas):
                continue
            if not placement.has_room(target, placement.size[partition]):
                continue
            if placement.may_change_racks(partition, source, target):
                yield partition
