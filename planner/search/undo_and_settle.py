"""Moving fewer bytes to the same balance, where no single trade helps: undo and settle anew.

A large replica that went to a broker which has itself given replicas away was mostly moved in vain:
had it stayed, that broker could have kept some of its own. But these are seldom of the same size,
so several brokers must settle anew. One attempt at a time: a replica that was moved goes home, or
to another broker whose own replicas leave room for it, or another one of its rack leaves in its
stead; whom it comes to hands on what came from elsewhere, whom it leaves takes back its own, and
all are evened again. What costs fewer bytes and leaves brokers within their bounds stays; all else
is undone.

Worked example: 1 and 2 must lose 6 and 9 bytes, 3 has room for 15. 1 gave a replica of 6 to 2, and
2 gave 9 and 6 to 3: 21 bytes. Undone, 6 goes back to 1, 2 takes its 6 back, and 1 gives 6 to 3:
15 bytes.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from planner.columns import Floats
from planner.search.bounds import Bounds
from planner.search.even import Evener
from planner.search.placement import Placement, Step, hold, release

_ATTEMPTS_MAX: Final = 600
_ATTEMPTS_MIN: Final = 10
"""Fewer are not worth a beginning."""
_WORK_MAX: Final = 3_000_000
"""Replicas times attempts: under a second. Large clusters have one to match every gap, anyway."""
_LOOKED_AT_MAX: Final = 2_000_000
"""Replicas where racks leave few of a broker's to choose from: a second."""
_ELSEWHERE_TRIED: Final = 8
_WORTH: Final = 1e-3
"""Of all moved bytes: what is less is not looked at."""
_EACH: Final = 0.05
"""Of the bytes of a mean replica: what moving one more has to spare."""
_PATIENCE: Final = 200
"""Attempts without success, after which no more are made."""
_ROUNDING: Final = 1e-3
"""Of a mean replica: so far outside of their bounds brokers may be left in all."""


def rethink(placement: Placement, bounds: Bounds) -> None:
    """Attempt by attempt, the largest replicas first, until none of them helps."""
    if placement.topics is not None:
        return  # exchanges within a topic are not to be undone
    attempts = min(_ATTEMPTS_MAX, _WORK_MAX // max(1, int(placement.count.sum())))
    if attempts >= _ATTEMPTS_MIN:
        _Rethinker(placement, bounds, attempts).run()


class _Rethinker:
    def __init__(self, placement: Placement, bounds: Bounds, attempts: int) -> None:
        self._placement, self._bounds = placement, bounds
        self._homes = placement.home
        self._evener = Evener(placement, bounds)
        self._own: list[list[int]] = [[] for _ in range(placement.brokers)]
        """Partitions that each broker had at first, the largest first."""
        for partition in reversed(placement.partition_at):
            for home in self._homes[partition]:
                self._own[home].append(partition)
        self._away: Floats = np.zeros(placement.brokers)
        """Bytes per broker of what came from elsewhere."""
        self._each = int(_EACH * bounds.unit)
        self._left = attempts
        self._patience = _PATIENCE

    def run(self) -> None:
        """All that are worth it, again as long as anything helps; nothing where brokers could not
        be brought within their bounds: one bound would be traded for another."""
        if self._outside() > _ROUNDING:
            return
        while not self._is_over and self._run_once():
            pass

    @property
    def _is_over(self) -> bool:
        is_tired = self._left <= 0 or self._patience <= 0
        return is_tired or self._evener.ways.looked_at > _LOOKED_AT_MAX

    def _run_once(self) -> bool:
        moved = self._moved()
        self._away = np.zeros(self._placement.brokers)
        for size, _, broker in moved:
            self._away[broker] += size
        least = _WORTH * sum(size for size, *_ in moved)
        helped = [self._reconsider(p, broker) for size, p, broker in moved if size > least]
        return any(helped)

    def _moved(self) -> list[tuple[int, int, int]]:
        """(bytes, partition, broker) of each replica that is not at home, the largest first."""
        size = self._placement.size
        received = ((size[p], p, broker) for p, broker in self._placement.received())
        return sorted(received, reverse=True)

    def _reconsider(self, partition: int, broker: int) -> bool:
        if broker not in self._placement.replicas[partition]:
            return False
        return any(
            self._attempt(partition, source, target)
            for source, target in self._other_ways(partition, broker)
        )

    def _other_ways(self, partition: int, broker: int) -> Iterator[tuple[int, int]]:
        """(from, to): home, or to one whose own replicas leave room for it, or another of its rack
        leaves in its stead."""
        placement, homes = self._placement, self._homes[partition]
        left = [b for b in homes if b not in placement.replicas[partition]]
        free = [b for b in left if placement.is_target[b]]
        yield from ((broker, home) for home in free)
        for home in free:
            for other in placement.replicas[partition]:
                if other in homes and placement.rack[other] == placement.rack[home]:
                    yield other, home
        room = self._bounds.bytes_max - placement.bytes + self._away
        order = np.argsort(-np.where(placement.is_target, room, -np.inf), kind="stable")
        for target in order[:_ELSEWHERE_TRIED].tolist():
            fits = placement.is_target[target] and room[target] >= placement.size[partition]
            if fits and target not in (broker, *homes):
                yield broker, target

    def _attempt(self, partition: int, source: int, target: int) -> bool:
        placement = self._placement
        if self._is_over or not placement.may_move(partition, source, target):
            return False
        self._left -= 1
        self._patience -= 1
        steps: list[Step] = []
        placement.journal = steps
        placement.move(partition, source, target)
        self._hand_on(target, partition)
        self._take_back(source, partition)
        hold(placement, partition, target)
        is_better = self._settle(steps)
        release(placement, partition, target)
        placement.journal = None
        if is_better:
            self._patience = _PATIENCE
            return True
        for moved, left, came in reversed(steps):
            placement.move(moved, came, left)
        return False

    def _settle(self, steps: list[Step]) -> bool:
        """Even everybody; whether fewer bytes move than before and all are within their bounds."""
        self._evener.give_and_take()
        if self._cost(steps) >= 0:
            return False
        if self._outside() > _ROUNDING:
            self._evener.exchange()
            self._evener.give_and_take()
        return self._cost(steps) < 0 and self._outside() <= _ROUNDING

    def _hand_on(self, broker: int, without: int) -> None:
        """Hands on replicas that came from elsewhere, the largest first, as long as there is too
        much."""
        placement, bounds = self._placement, self._bounds
        for rank in reversed(placement.by_size[broker].copy()):
            excess = float(placement.bytes[broker] - bounds.bytes_max[broker])
            partition = placement.partition_at[rank]
            if excess <= 0:
                return
            if partition == without or broker in self._homes[partition]:
                continue
            room = bounds.bytes_max - placement.bytes
            for place in np.argsort(-room, kind="stable")[:_ELSEWHERE_TRIED].tolist():
                fits = placement.is_target[place] and room[place] >= placement.size[partition]
                if fits and placement.may_move(partition, broker, place):
                    placement.move(partition, broker, place)
                    break

    def _take_back(self, broker: int, without: int) -> None:
        """Its own come home, the largest first, as far as there is room."""
        placement, homes = self._placement, self._homes
        for partition in self._own[broker]:
            replicas = placement.replicas[partition]
            if partition == without or broker in replicas:
                continue
            room = float(self._bounds.bytes_max[broker] - placement.bytes[broker])
            if placement.size[partition] > room:
                continue
            for place in replicas:
                if place not in homes[partition] and placement.may_move(partition, place, broker):
                    placement.move(partition, place, broker)
                    break

    def _cost(self, steps: list[Step]) -> int:
        """Bytes that these steps add to what moves; a replica more counts as some."""
        size, homes = self._placement.size, self._homes
        return sum(
            (size[p] + self._each) * ((target not in homes[p]) - (source not in homes[p]))
            for p, source, target in steps
        )

    def _outside(self) -> float:
        """How far brokers are outside of their bounds, in replicas."""
        placement, bounds = self._placement, self._bounds
        target = placement.is_target
        count = np.maximum(placement.count - bounds.count_max, 0)
        count += np.maximum(bounds.count_min - placement.count, 0)
        held = np.maximum(placement.bytes - bounds.bytes_max, 0) / bounds.unit
        return float((count + held)[target].sum())
