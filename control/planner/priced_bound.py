"""The proven minimum by prices: a linear relaxation that sees racks, numbers and bytes together.

Every broker asks a price for each replica that it holds, and one for each byte; whoever is to hold
more pays instead. At such prices each partition for itself chooses the cheapest places, a move
costing its bytes. A plan within the reached balance cannot do better than all these choices
together, less what the brokers earn at most within that balance:

    moved ≥ Σ cheapest places(p) - Σ most that b can earn

That holds for any prices (Lagrangian relaxation), so they need no proof, only to be good: those of
brokers that are chosen too often rise, and the other way round (a subgradient with memory, steps
by Polyak's rule). The best prices give what the linear program of the whole problem gives.

What is cheapest on a rack is a concave function of a partition's size. It is computed at a few
sizes; between two of them the straight line lies below, so the sum stays proven.

Worked example: brokers 1 and 2 of one rack hold 100 and 0 bytes, and none may hold more than 60.
At a price of 1 a byte on broker 1, staying costs a partition as much as going: 100 bytes pay 100,
of which broker 1 earns at most 60. So 40 must move.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np

from control.planner.columns import Columns, Flags, Floats, Numbers, sampled
from control.planner.demand import Demand
from control.planner.placement import most_per_rack
from control.planner.shares import Reached

_SIZES: Final = 256
_ROUNDS_MAX: Final = 400
_WORK_MAX: Final = 12_000_000
"""Replicas looked at in all rounds together: about a second."""
_SAMPLE: Final = 10_000
"""Replicas on which prices are found first, where there are many more."""
_ROUNDS_MIN: Final = 8
"""Those of a sample are good already: the largest clusters do with few of their own."""
_ROUNDS_AFRESH: Final = 100
"""So many of its own lead a search somewhere from nowhere."""
_FAR: Final = 1.03
_PATIENCE: Final = 15
_SHRINK: Final = 0.6
_TIMID: Final = 0.03
_MEMORY: Final = 0.7
_PROGRESS: Final = 3e-4
_CLOSE: Final = 1.002
_ROUNDING: Final = 1e-9


def priced_bytes(demand: Demand, moved: int) -> int:
    """Bytes that every plan must move. `moved`: what a plan moves, which ends the search."""
    cost = demand.columns.size.astype(np.float64)
    return max(0, int(_proven(demand, cost, float(moved)) - _ROUNDING * cost.sum()))


def priced_replicas(demand: Demand, moved: int) -> int:
    """Replicas that every plan must move: each costs the same."""
    size = demand.columns.size
    unit = max(1.0, float(size.mean())) if len(size) else 1.0
    cost = np.full(len(size), unit)
    proven = _proven(demand, cost, moved * unit) - _ROUNDING * float(cost.sum())
    return max(0, ceil(proven / unit))


def _proven(demand: Demand, cost: Floats, moved: float) -> float:
    """The least that moves cost in all; `cost`: of moving a replica of each partition."""
    columns, kept, everybody = demand.columns, ~demand.removed, np.arange(len(cost))
    if not len(cost):
        return 0.0
    rounds = min(_ROUNDS_MAX, max(_ROUNDS_MIN, _WORK_MAX // len(columns.of)))
    prices = np.zeros((2, columns.brokers))
    every = len(columns.of) // _SAMPLE
    if every > 1:
        few, chosen = sampled(columns, every)
        looser = demand.reached.by_extremes(kept)
        market = _Market(few, cost[chosen], _slots(demand, few, chosen), demand, looser)
        market.stand_for(columns, few, every)
        _, prices = market.search(moved, _ROUNDS_MAX, prices)
    best, slots = 0.0, _slots(demand, columns, everybody)
    for limits in _looser_first(demand.reached, kept):
        market = _Market(columns, cost, slots, demand, limits)
        if every > 1 and rounds >= _ROUNDS_AFRESH and market.proven(prices)[0] * _FAR < moved:
            # A sample's prices may be near the best, and still nowhere to go on from.
            prices = np.zeros_like(prices)
        proven, prices = market.search(moved, rounds, prices)
        best = max(best, proven)
    return best


def _slots(demand: Demand, columns: Columns, chosen: Numbers) -> "_Slots":
    """Of these partitions, which `columns` has alone."""
    maker = _SlotMaker(columns, demand.rack, demand.removed, demand.scope[chosen])
    return maker.made(demand.mended[chosen])


def _looser_first(reached: Reached, kept: Flags) -> list[Reached]:
    """Prices that are good where all have the same limits prove no less where some have closer
    ones, and are found sooner: the search for those begins there."""
    looser = reached.by_extremes(kept)
    is_same = bool(
        (reached.count_max[kept] == looser.count_max[kept]).all()
        and (reached.bytes_max[kept] == looser.bytes_max[kept]).all()
    )
    return [reached] if is_same else [looser, reached]


@dataclass(frozen=True, slots=True)
class _Choice:
    """Of `slots[partition][rack]` as many are filled as `wanted`: at most `limit` of a rack, and
    where `everywhere` at least one."""

    slots: Numbers
    wanted: Numbers
    limit: int
    everywhere: bool

    def filled(self, value: Floats) -> Flags:
        """The cheapest, shaped as `slots`."""
        offered = value[self.slots]
        if offered.shape[2] == 1 and not self.everywhere:
            return self._cheapest(offered[:, :, 0])[:, :, None]
        place = offered.argsort(axis=2, kind="stable").argsort(axis=2)
        offered[place >= self.limit] = np.inf
        if self.everywhere:
            offered[place == 0] = -np.inf
        rows = offered.reshape(len(offered), -1)
        order = rows.argsort(axis=1, kind="stable").argsort(axis=1)
        return (order < self.wanted[:, None]).reshape(offered.shape)

    def _cheapest(self, offered: Floats) -> Flags:
        """One slot a rack: all rows want as many."""
        number = int(self.wanted[0])
        filled = np.zeros(offered.shape, dtype=np.bool_)
        places = offered.argpartition(number - 1, axis=1)[:, :number]
        np.put_along_axis(filled, places, True, axis=1)
        return filled


@dataclass(frozen=True, slots=True)
class _Slots:
    """Places to fill: `of` which partition, in which `zone` of `members` (a rack, anywhere, or
    nowhere for one that can only be filled from home). Broker `home_on` fills slot `home_slot`
    (ascending) without a move. Slots outside all `choices` are filled."""

    of: Numbers
    zone: Numbers
    members: tuple[Numbers, ...]
    home_slot: Numbers
    home_on: Numbers
    choices: tuple[_Choice, ...]


class _SlotMaker:
    """Slots of every partition, kind by kind."""

    def __init__(
        self, columns: Columns, rack: tuple[Numbers, int], removed: Flags, scope: Flags
    ) -> None:
        self._columns, self._removed, self._scope = columns, removed, scope
        self._rack, self._racks = rack
        self._slot_of = np.full(len(columns.of), -1)
        """Of each replica: the slot that it fills by staying."""
        self._of: list[Numbers] = []
        self._zone: list[Numbers] = []
        self._choices: list[_Choice] = []
        self._number = 0

    def made(self, mended: Flags) -> _Slots:
        """All of them."""
        columns, racks = self._columns, self._racks
        members = [np.flatnonzero((self._rack == r) & ~self._removed) for r in range(racks)]
        spread = mended & (racks > 1)
        for width in np.unique(columns.width[spread]).tolist():
            chosen = np.flatnonzero(spread & (columns.width == width))
            if width <= racks:
                self._one_a_rack(chosen, width)
            else:
                limit = most_per_rack(width, tuple(len(brokers) for brokers in members))
                self._several_a_rack(chosen, width, limit)
        self._free(np.flatnonzero(~spread[columns.of]))
        slot = np.where(self._removed[columns.on] & mended[columns.of], -1, self._slot_of)
        homes = np.argsort(slot, kind="stable")
        homes = homes[slot[homes] >= 0]
        return _Slots(
            of=np.concatenate(self._of),
            zone=np.concatenate(self._zone),
            members=(*members, np.flatnonzero(~self._removed), np.zeros(0, np.int64)),
            home_slot=slot[homes],
            home_on=columns.on[homes],
            choices=tuple(self._choices),
        )

    def _one_a_rack(self, partitions: Numbers, width: int) -> None:
        """A slot for each rack, filled by whoever is there."""
        racks = self._racks
        slots = self._add(partitions, np.arange(racks)[None, :]).reshape(-1, racks, 1)
        mine, row, rack = self._replicas_of(partitions)
        known = rack < racks
        self._slot_of[mine[known]] = slots[row[known], rack[known], 0]
        if width < racks:
            self._choose(slots, width, limit=1)

    def _several_a_rack(self, partitions: Numbers, width: int, limit: int) -> None:
        """For each rack a slot for each replica that may stay, and `limit` for what comes."""
        racks, nowhere = self._racks, self._racks + 1
        zones = np.full((racks, width + limit), nowhere)
        zones[:, width:] = np.arange(racks)[:, None]
        slots = self._add(partitions, zones.reshape(1, -1)).reshape(-1, racks, width + limit)
        mine, row, rack = self._replicas_of(partitions)
        place = mine - self._columns.first[self._columns.of[mine]]
        known = rack < racks
        self._slot_of[mine[known]] = slots[row[known], rack[known], place[known]]
        self._choose(slots, width, limit)

    def _free(self, replicas: Numbers) -> None:
        """Each replica stays, or goes anywhere where its partition may move."""
        partitions = self._columns.of[replicas]
        zones = np.where(self._scope[partitions], self._racks, self._racks + 1)
        self._slot_of[replicas] = self._add(partitions, zones[:, None])[:, 0]

    def _add(self, partitions: Numbers, zones: Numbers) -> Numbers:
        """New slots, a row for each partition; `zones`: a row for each, or one for all."""
        zones = np.broadcast_to(zones, (len(partitions), zones.shape[1]))
        self._of.append(np.repeat(partitions, zones.shape[1]))
        self._zone.append(zones.ravel())
        slots = self._number + np.arange(zones.size).reshape(zones.shape)
        self._number += zones.size
        return slots

    def _replicas_of(self, partitions: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """(replica, which of the partitions, rack) of each of their replicas."""
        row = np.full(len(self._columns.size), -1)
        row[partitions] = np.arange(len(partitions))
        mine = np.flatnonzero(row[self._columns.of] >= 0)
        return mine, row[self._columns.of[mine]], self._rack[self._columns.on[mine]]

    def _choose(self, slots: Numbers, width: int, limit: int) -> None:
        wanted = np.full(len(slots), width)
        everywhere = width >= self._racks
        self._choices.append(
            _Choice(slots=slots, wanted=wanted, limit=limit, everywhere=everywhere)
        )


class _Market:
    """Prices and what they prove."""

    def __init__(
        self,
        columns: Columns,
        cost: Floats,
        slots: _Slots,
        demand: Demand,
        reached: Reached,
    ) -> None:
        self._slots, self._kept = slots, ~demand.removed
        self._brokers = columns.brokers
        number, racks = demand.rack
        self._in_rack: Floats = (number[:, None] == np.arange(racks)) * (racks > 1.0)
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
        self._unit = max(1.0, float(size.mean()))
        self._weight, self._base = 1.0, np.zeros((2, columns.brokers))
        fewest, most = reached.count_min * self._unit, reached.count_max * self._unit
        self._low: Floats = np.stack((fewest, np.zeros(columns.brokers)))
        self._high: Floats = np.stack((most, reached.bytes_max.astype(np.float64)))

    def stand_for(self, whole: Columns, few: Columns, every: int) -> None:
        """Let each partition of a sample count as `every` many. What brokers hold before is that
        of all, so that chance shifts only what moves."""
        self._weight = float(every)
        count = whole.count() - every * few.count()
        held = whole.held() - every * few.held()
        self._base = np.stack((count * self._unit, held.astype(np.float64)))

    def search(self, moved: float, rounds: int, prices: Floats) -> tuple[float, Floats]:
        """(the most that was proven within so many rounds, at which prices). Prices are per
        replica of mean size and per byte: a row each; the search begins at those given. Prices of
        a rack's brokers also rise and fall together: where racks are unequal, they have to."""
        best_prices = prices
        in_rack = self._in_rack
        trend = np.zeros((2, sum(in_rack.shape)))
        scale = np.zeros_like(trend)
        best, boldness, waited = -np.inf, 1.0, 0
        for _ in range(rounds):
            proven, slope = self.proven(prices)
            waited = 0 if proven > best + _PROGRESS * moved else waited + 1
            if proven > best:
                best, best_prices = proven, prices
            if best * _CLOSE >= moved or boldness < _TIMID or not slope.any():
                break
            if waited >= _PATIENCE:
                boldness, waited = boldness * _SHRINK, 0
                prices, trend = best_prices, np.zeros_like(trend)
                continue
            slope = np.concatenate((slope, slope @ in_rack), axis=1)
            scale = 0.9 * scale + 0.1 * slope**2
            step = slope / np.sqrt(scale + 1e-3 * scale.max())
            trend = _MEMORY * trend + boldness * (moved - proven) / (slope * step).sum() * step
            prices = prices + trend[:, : self._brokers] + trend[:, self._brokers :] @ in_rack.T
        return float(best), best_prices

    def proven(self, prices: Floats) -> tuple[float, Floats]:
        """(bytes that these prices prove, how that changes with each price)."""
        value, filler, is_home = self._filled(prices)
        chosen = self._chosen(value)
        count = np.zeros(self._brokers)
        held = np.zeros(self._brokers)
        at_home = np.flatnonzero(chosen & is_home)
        count += np.bincount(filler[at_home], minlength=self._brokers)
        held += np.bincount(filler[at_home], weights=self._size[at_home], minlength=self._brokers)
        self._spread_over(np.flatnonzero(chosen & ~is_home), count, held)
        load = self._base + self._weight * np.stack((count * self._unit, held))
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
        per_replica, per_byte = prices[0] * self._unit, prices[1]
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
        """(price of the cheapest broker, who it is) per zone and size of the grid."""
        members = self._slots.members
        cheapest = np.full((len(members), len(self._grid)), 1e30)
        seller = np.zeros((len(members), len(self._grid)), dtype=np.int64)
        for zone, brokers in enumerate(members):
            if len(brokers):
                asked = per_replica[brokers, None] + per_byte[brokers, None] * self._grid
                least = asked.argmin(axis=0)
                cheapest[zone] = asked[least, np.arange(len(self._grid))]
                seller[zone] = brokers[least]
        return cheapest, seller

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
        size = np.tile(self._grid, len(self._slots.members))
        np.add.at(count, self._seller.ravel(), got)
        np.add.at(held, self._seller.ravel(), got * size)
