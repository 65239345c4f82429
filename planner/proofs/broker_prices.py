"""Prices of brokers for replicas and bytes, and what they prove (proofs.priced_bound).

What is cheapest on a rack is a concave function of a partition's size. It is computed at a few
sizes; between two of them the straight line lies below, so the sum stays proven. Of prices, what
they prove is concave as well, with kinks (proofs.concave_maximum goes up there).
"""

from typing import Final

import numpy as np

from planner.columns import Columns, Flags, Floats, Numbers
from planner.proofs.concave_maximum import Footing, climbed
from planner.proofs.demand import Demand
from planner.proofs.slots import Slots

_SIZES: Final = 256
_NOBODY: Final = 1e30
"""The price where there is no broker."""
_TOGETHER: Final = 10.0
"""So much more than alone."""
_STEP: Final = 0.2
"""Of a price: a fifth of what a move costs."""


class Market:
    """Prices and what they prove."""

    def __init__(
        self,
        columns: Columns,
        cost: Floats,
        slots: Slots,
        demand: Demand,
    ) -> None:
        reached = demand.reached
        self._slots, self._kept = slots, ~demand.removed
        self._brokers = columns.brokers
        number, racks = demand.rack
        self._in_rack: Floats = self._kept[:, None] * (
            (number[:, None] == np.arange(racks)) * (racks > 1.0)
        )
        size = columns.size.astype(np.float64)
        grid = np.unique(np.quantile(size, np.linspace(0, 1, _SIZES)))
        self._grid: Floats = np.append(grid, grid[-1] + 1) if len(grid) == 1 else grid
        self._size: Floats = size[slots.of]
        self._cost: Floats = cost[slots.of]
        self._below = np.clip(
            np.searchsorted(self._grid, self._size, side="right") - 1, 0, len(self._grid) - 2
        )
        step = np.diff(self._grid)[self._below]
        self._above_share: Floats = (self._size - self._grid[self._below]) / step
        self._at = slots.zone * len(self._grid) + self._below
        self._home_size: Floats = self._size[slots.home_slot]
        self._first_home = np.flatnonzero(np.diff(slots.home_slot, prepend=-1))
        homes = np.diff(np.append(self._first_home, len(slots.home_slot)))
        self._filled_slot = slots.home_slot[self._first_home]
        self._shared = np.flatnonzero(homes > 1)
        """Slots, among those with a home, that have several: `_rivals` are these homes."""
        self._rivals = np.flatnonzero(np.repeat(homes > 1, homes))
        self._rival_homes = homes[self._shared]
        self.places = len(slots.of)
        self.unit = max(1.0, float(size.mean()))
        """Bytes of a replica that prices per replica are for."""
        self._weight, self._base = 1.0, np.zeros((2, columns.brokers))
        fewest, most = reached.count_min * self.unit, reached.count_max * self.unit
        self._low: Floats = np.stack((fewest, np.zeros(columns.brokers)))
        self._high: Floats = np.stack((most, reached.bytes_max.astype(np.float64)))

    def stand_for(self, whole: Columns, few: Columns, every: int) -> None:
        """Let each partition of a sample count as `every` many. What brokers hold before is that
        of all, so that chance shifts only what moves."""
        self._weight = float(every)
        count = whole.count() - every * few.count()
        held = whole.held() - every * few.held()
        self._base = np.stack((count * self.unit, held.astype(np.float64)))

    def climbed(self, start: Footing, *, rounds: int, enough: float) -> tuple[float, Footing]:
        """(the most that was proven within so many rounds, at which prices). `enough`: a proof of
        so much ends it."""
        shape = (2, self._brokers)

        def proven(point: Floats) -> tuple[float, Floats]:
            value, slope = self.proven(point.reshape(shape))
            return value, slope.ravel()

        return climbed(proven, start, rounds=rounds, enough=enough)

    def footing(self, prices: Floats) -> Footing:
        """To begin at these prices. Those of a rack's brokers rise and fall together, most of all:
        where racks are unequal, they have to."""
        mean = self._in_rack / np.maximum(self._in_rack.sum(axis=0), 1)
        together = np.eye(self._brokers) + _TOGETHER * mean @ self._in_rack.T
        return Footing(point=prices.ravel(), stretch=np.kron(np.eye(2), together), step=_STEP)

    def proven(self, prices: Floats) -> tuple[float, Floats]:
        """(bytes that these prices prove, how that changes with each price). What removed brokers
        ask does not count."""
        prices = np.where(self._kept, prices, 0.0)
        value, filler, is_home = self._filled(prices)
        chosen = self._chosen(value)
        count = np.zeros(self._brokers)
        held = np.zeros(self._brokers)
        at_home = np.flatnonzero(chosen & is_home)
        count += np.bincount(filler[at_home], minlength=self._brokers)
        held += np.bincount(filler[at_home], weights=self._size[at_home], minlength=self._brokers)
        self._spread_over(np.flatnonzero(chosen & ~is_home), count, held)
        load = self._base + self._weight * np.stack((count * self.unit, held))
        earned = np.where(prices > 0, prices * self._high, prices * self._low)
        asked = self._weight * value[chosen].sum() + (self._base * prices)[:, self._kept].sum()
        total = float(asked - earned[:, self._kept].sum())
        outside = load - np.clip(load, self._low, self._high)
        priced = load - np.where(prices > 0, self._high, self._low)
        slope = np.where(prices == 0, outside, priced)
        return total, np.where(self._kept, slope, 0.0)

    def _filled(self, prices: Floats) -> tuple[Floats, Numbers, Flags]:
        """Per slot: the cheapest price, the broker of the cheapest home, whether that is it."""
        slots = self._slots
        per_replica, per_byte = prices[0] * self.unit, prices[1]
        self._cheapest, self._seller = self._by_zone(per_replica, per_byte)
        flat, share = self._cheapest.ravel(), self._above_share
        value = flat[self._at] * (1 - share) + flat[self._at + 1] * share + self._cost
        filler = np.zeros(len(value), dtype=np.int64)
        is_home = np.zeros(len(value), dtype=np.bool_)
        if len(slots.home_slot):
            asked = per_replica[slots.home_on] + per_byte[slots.home_on] * self._home_size
            least = np.minimum.reduceat(asked, self._first_home)
            winners = self._winners(asked, least)
            better = least <= value[self._filled_slot]
            stays = self._filled_slot[better]
            value[stays] = least[better]
            filler[stays] = slots.home_on[winners[better]]
            is_home[stays] = True
        return value, filler, is_home

    def _winners(self, asked: Floats, least: Floats) -> Numbers:
        """Per slot with a home the cheapest of its homes, the first of those that ask the same."""
        winners = self._first_home.copy()
        if len(self._shared):
            wanted = np.repeat(least[self._shared], self._rival_homes)
            slot = np.repeat(self._shared, self._rival_homes)
            matches = np.flatnonzero(asked[self._rivals] == wanted)[::-1]
            winners[slot[matches]] = self._rivals[matches]
        return winners

    def _by_zone(self, per_replica: Floats, per_byte: Floats) -> tuple[Floats, Numbers]:
        """(price of the cheapest broker, who it is) per zone and size of the grid; of the second
        cheapest for a partition's second, and so on. All of them together are the cheapest for so
        many, which again is a concave function of the size."""
        members, turns = self._slots.members, self._slots.turns
        cheapest = np.full((turns, len(members), len(self._grid)), _NOBODY)
        seller = np.zeros((turns, len(members), len(self._grid)), dtype=np.int64)
        for zone, brokers in enumerate(members):
            if len(brokers):
                asked = per_replica[brokers, None] + per_byte[brokers, None] * self._grid
                least = asked.argsort(axis=0)[:turns] if turns > 1 else asked.argmin(axis=0)[None]
                cheapest[: len(least), zone] = np.take_along_axis(asked, least, axis=0)
                seller[: len(least), zone] = brokers[least]
        shape = turns * len(members), len(self._grid)
        return cheapest.reshape(shape), seller.reshape(shape)

    def _chosen(self, value: Floats) -> Flags:
        """Which slots are filled."""
        chosen = np.ones(len(value), dtype=np.bool_)
        for choice in self._slots.choices:
            chosen[choice.slots] = choice.filled(value)
        return chosen

    def _spread_over(self, travelling: Numbers, count: Floats, held: Floats) -> None:
        """Add what travels to the sellers of the sizes that its own lies between."""
        number = self._cheapest.size
        at, share = self._at[travelling], self._above_share[travelling]
        got = np.bincount(at, weights=1 - share, minlength=number)
        got += np.bincount(at + 1, weights=share, minlength=number)
        size = np.tile(self._grid, number // len(self._grid))
        np.add.at(count, self._seller.ravel(), got)
        np.add.at(held, self._seller.ravel(), got * size)
