"""Evening bytes per second in and out of brokers, within the bounds of numbers and bytes.

What arrives at a broker follows its replicas, leaders and followers alike: a replica with much
traffic is exchanged for one with little of about the same size (or given away, where numbers
allow), each time the pair that takes most off the overload per byte moved. What leaves a broker
follows leadership, which moves no data: a leadership with much traffic is handed to a follower,
against one with little where numbers of leaders must stay.
"""

from dataclasses import dataclass
from heapq import nlargest, nsmallest
from typing import Final

import numpy as np

from planner.columns import Floats, Numbers
from planner.search.bounds import Bounds
from planner.search.placement import Placement, columns_now, reorderable

_TARGETS_TRIED: Final = 6
_REPLICAS_TRIED: Final = 160
_PAIRS_TRIED: Final = 40
_BACKS_TRIED: Final = 16
_STEPS_PER_BROKER_MAX: Final = 200
_GAIN_MIN: Final = 1.0
"""Bytes per second."""


def even_arriving(placement: Placement, bounds: Bounds, share: float) -> None:
    """Bring what brokers receive under mean x (1 + share) by moving and exchanging replicas."""
    evener = _Arriving(placement, bounds, share)
    for source in evener.heaviest_first():
        for _ in range(_STEPS_PER_BROKER_MAX):
            if not evener.is_over(source) or not evener.relieve(source):
                break


def even_leaving(placement: Placement, share: float, leaders: tuple[int, int]) -> None:
    """Bring what leaders send under mean x (1 + share) by handing leadership over, within these
    bounds of leaders."""
    evener = _Leaving(placement, share, leaders)
    for source in evener.heaviest_first():
        for _ in range(_STEPS_PER_BROKER_MAX):
            if not evener.is_over(source) or not evener.relieve(source):
                break


def overload(placement: Placement, share: float) -> tuple[float, float]:
    """How far the busiest are above mean x (1 + share), in and out, in parts of the mean."""
    columns = columns_now(placement)
    arriving, leaving = (
        max(0.0, float(balanced.max() / balanced.mean()) - 1 - share) if balanced.any() else 0.0
        for load in (columns.traffic_in(), columns.traffic_out())
        for balanced in (load[placement.is_target],)
    )
    return arriving, leaving


class _Loads:
    """Bytes per second by broker, and the most that a balanced one should have."""

    def __init__(self, placement: Placement, load: Numbers, share: float) -> None:
        self.placement = placement
        self.load: Floats = load.astype(np.float64)
        self.targets = np.flatnonzero(placement.is_target)
        self.most = float(self.load[self.targets].mean()) * (1 + share)

    def heaviest_first(self) -> list[int]:
        """Overloaded brokers."""
        order = self.targets[np.argsort(-self.load[self.targets], kind="stable")]
        return [int(b) for b in order if self.is_over(int(b))]

    def is_over(self, broker: int) -> bool:
        """Whether it has more than it should."""
        return bool(self.load[broker] > self.most)


@dataclass(frozen=True, slots=True)
class _Side:
    """Replicas of one broker that may take part in an exchange."""

    partitions: list[int]
    rate: Floats
    size: Floats


class _Arriving(_Loads):
    def __init__(self, placement: Placement, bounds: Bounds, share: float) -> None:
        self._columns = columns_now(placement)
        self._bounds = bounds
        super().__init__(placement, self._columns.traffic_in(), share)

    def relieve(self, source: int) -> bool:
        """One step; whether there was any."""
        room = self.load[self.targets]
        lightest = self.targets[np.argsort(room, kind="stable")][:_TARGETS_TRIED]
        forth = self._side(source, most_first=True)
        return any(self._exchange(source, int(b), forth) for b in lightest if b != source)

    def _side(self, broker: int, *, most_first: bool) -> _Side:
        movable = np.array(self.placement.movable_on(broker), dtype=np.int64)
        rate = self._columns.bytes_in[movable].astype(np.float64)
        order = np.argsort(-rate if most_first else rate, kind="stable")[:_REPLICAS_TRIED]
        chosen = movable[order]
        size = self._columns.size[chosen].astype(np.float64)
        return _Side(chosen.tolist(), rate[order], size)

    def _exchange(self, source: int, target: int, forth: _Side) -> bool:
        back = self._side(target, most_first=False)
        nothing = self._nothing_back(source, target)
        partitions = [*back.partitions, *([-1] if nothing else [])]
        rate = np.append(back.rate, [0.0] * nothing)
        size = np.append(back.size, [0.0] * nothing)
        gained = self._gain(source, target, forth.rate[:, None] - rate[None, :])
        grows = forth.size[:, None] - size[None, :]
        placement, most = self.placement, self._bounds.bytes_max
        fits = (placement.bytes[target] + grows <= max(most[target], placement.bytes[target])) & (
            placement.bytes[source] - grows <= max(most[source], placement.bytes[source])
        )
        worth = np.where(fits & (gained > _GAIN_MIN), gained, 0.0)
        worth /= forth.size[:, None] + size[None, :] + self._bounds.unit
        for pair in np.argsort(-worth, axis=None, kind="stable")[:_PAIRS_TRIED].tolist():
            one, other = divmod(pair, len(partitions))
            if worth[one, other] <= 0:
                return False
            if self._try(source, target, forth.partitions[one], partitions[other]):
                return True
        return False

    def _gain(self, source: int, target: int, shift: Floats) -> Floats:
        """Overload that a shift takes off both together; below zero where it only adds."""
        over, room = self.load[source] - self.most, self.load[target] - self.most
        before = max(over, 0.0) + max(room, 0.0)
        gained: Floats = before - np.maximum(over - shift, 0.0) - np.maximum(room + shift, 0.0)
        return gained

    def _nothing_back(self, source: int, target: int) -> bool:
        count, bounds = self.placement.count, self._bounds
        return bool(
            count[source] > bounds.count_min[source] and count[target] < bounds.count_max[target]
        )

    def _try(self, source: int, target: int, forth: int, back: int) -> bool:
        placement = self.placement
        if forth == back:
            return False
        if not placement.may_move(forth, source, target, for_=None if back < 0 else back):
            return False
        if back >= 0 and not placement.may_move(back, target, source, for_=forth):
            return False
        placement.move(forth, source, target)
        shift = int(self._columns.bytes_in[forth])
        if back >= 0:
            placement.move(back, target, source)
            shift -= int(self._columns.bytes_in[back])
        self.load[source] -= shift
        self.load[target] += shift
        return True


class _Leaving(_Loads):
    def __init__(self, placement: Placement, share: float, leaders: tuple[int, int]) -> None:
        columns = columns_now(placement)
        super().__init__(placement, columns.traffic_out(), share)
        self._rate: list[int] = columns.leader_out().tolist()
        self._low, self._high = leaders
        self._led: dict[int, list[int]] = {int(b): [] for b in self.targets}
        for partition in reorderable(placement):
            leader = placement.replicas[partition][0]
            if leader in self._led:
                self._led[leader].append(partition)

    def relieve(self, source: int) -> bool:
        """Hand over the leadership that helps most, against another where numbers must stay."""
        best = (_GAIN_MIN, -1, -1, -1)
        backs: dict[int, list[int]] = {}
        busiest = nlargest(_REPLICAS_TRIED, self._led[source], key=self._rate.__getitem__)
        for partition in busiest:
            for target in self.placement.replicas[partition][1:]:
                if target not in self._led or self.load[target] >= self.load[source]:
                    continue
                if target not in backs:
                    backs[target] = self._may_come_back(source, target)
                for back in backs[target]:
                    shift = self._rate[partition] - (self._rate[back] if back >= 0 else 0)
                    gained = self._gain(source, target, shift)
                    best = max(best, (gained, partition, target, back))
        _, partition, target, back = best
        if partition < 0:
            return False
        self._hand_over(partition, source, target)
        if back >= 0:
            self._hand_over(back, target, source)
        return True

    def _may_come_back(self, source: int, target: int) -> list[int]:
        """The quietest partitions whose leadership `source` can take; -1: none needs to."""
        replicas, leaders = self.placement.replicas, self.placement.leaders
        backs = (q for q in self._led[target] if source in replicas[q])
        quietest = nsmallest(_BACKS_TRIED, backs, key=self._rate.__getitem__)
        is_free = leaders[source] > self._low and leaders[target] < self._high
        return [-1, *quietest] if is_free else quietest

    def _gain(self, source: int, target: int, shift: float) -> float:
        over, room = float(self.load[source]) - self.most, float(self.load[target]) - self.most
        before = max(over, 0.0) + max(room, 0.0)
        return before - max(over - shift, 0.0) - max(room + shift, 0.0)

    def _hand_over(self, partition: int, giver: int, taker: int) -> None:
        self.placement.lead(partition, taker)
        self._led[giver].remove(partition)
        self._led[taker].append(partition)
        self.load[giver] -= self._rate[partition]
        self.load[taker] += self._rate[partition]
