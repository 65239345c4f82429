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
from typing import Final

import numpy as np

from control.planner.columns import Columns, Flags, Floats, Numbers
from control.planner.figures import Balance

_SIZES: Final = 256
_ROUNDS_MAX: Final = 400
_WORK_MAX: Final = 12_000_000
"""Replicas looked at in all rounds together: about a second."""
_ROUNDS_MIN: Final = 60
"""Fewer find no good prices: very large clusters go without."""
_PATIENCE: Final = 25
_SHRINK: Final = 0.6
_TIMID: Final = 0.1
_MEMORY: Final = 0.7
_PROGRESS: Final = 3e-4
_CLOSE: Final = 1.002
_ROUNDING: Final = 1e-9


def priced_bytes(
    columns: Columns,
    rack: tuple[Numbers, int],
    removed: Flags,
    reached: Balance,
    *,
    scope: Flags,
    mended: Flags,
    moved: int,
) -> int:
    """Bytes that every plan reaching `reached` must move. `rack`: number of each broker's rack,
    and how many there are; `scope`: partitions that may move at all; `mended`: those of which
    racks and removed brokers are asked; `moved`: what a plan moves, which ends the search."""
    rounds = min(_ROUNDS_MAX, _WORK_MAX // max(1, len(columns.of)))
    if not len(columns.size) or rounds < _ROUNDS_MIN:
        return 0
    slots = _slots(columns, rack, removed, scope, mended)
    best = _Market(columns, slots, ~removed, reached).search(moved, rounds)
    return max(0, int(best - _ROUNDING * columns.size.sum()))


@dataclass(frozen=True, slots=True)
class _Slots:
    """Places to fill: `of` which partition, in which `zone` (a rack, or `zones` - 1 for a
    replica that stays wherever it is); `homes` lists brokers that fill a slot without a move,
    `home_slot` ascending. Of a row of `choice` only as many slots are filled as `wanted` says."""

    of: Numbers
    zone: Numbers
    members: tuple[Numbers, ...]
    home_slot: Numbers
    home_on: Numbers
    choice: Numbers
    wanted: Numbers


def _slots(
    columns: Columns, rack: tuple[Numbers, int], removed: Flags, scope: Flags, mended: Flags
) -> _Slots:
    number, racks = rack
    anywhere, nowhere = racks, racks + 1
    members = [np.flatnonzero((number == r) & ~removed) for r in range(racks)]
    is_spread = mended & (racks > 1) & (columns.width <= racks)
    spread = np.flatnonzero(is_spread)
    row = np.full(len(columns.size), -1)
    row[spread] = np.arange(len(spread))
    stays = ~(removed[columns.on] & mended[columns.of])
    in_rack = is_spread[columns.of]
    free = np.flatnonzero(~in_rack)
    first_free = len(spread) * racks
    zones = np.where(scope[columns.of[free]], anywhere, nowhere)
    slot = np.where(in_rack, row[columns.of] * racks + number[columns.on], 0)
    slot[free] = first_free + np.arange(len(free))
    homes = np.flatnonzero(stays)
    homes = homes[np.argsort(slot[homes], kind="stable")]
    chooses = columns.width[spread] < racks
    slots_of_spread = np.arange(first_free).reshape(len(spread), racks)
    return _Slots(
        of=np.concatenate((np.repeat(spread, racks), columns.of[free])),
        zone=np.concatenate((np.tile(np.arange(racks), len(spread)), zones)),
        members=(*members, np.flatnonzero(~removed), np.zeros(0, np.int64)),
        home_slot=slot[homes],
        home_on=columns.on[homes],
        choice=slots_of_spread[chooses],
        wanted=columns.width[spread][chooses],
    )


class _Market:
    """Prices and what they prove."""

    def __init__(self, columns: Columns, slots: _Slots, kept: Flags, reached: Balance) -> None:
        self._slots, self._kept = slots, kept
        self._brokers = columns.brokers
        size = columns.size.astype(np.float64)
        grid = np.unique(np.quantile(size, np.linspace(0, 1, _SIZES)))
        self._grid: Floats = np.append(grid, grid[-1] + 1) if len(grid) == 1 else grid
        self._size: Floats = size[slots.of]
        self._below = np.clip(
            np.searchsorted(self._grid, self._size, side="right") - 1, 0, len(self._grid) - 2
        )
        step = np.diff(self._grid)[self._below]
        self._above_share: Floats = (self._size - self._grid[self._below]) / step
        self._at = slots.zone * len(self._grid) + self._below
        self._home_size: Floats = self._size[slots.home_slot]
        self._first_home = np.flatnonzero(np.diff(slots.home_slot, prepend=-1))
        self._homes = np.diff(np.append(self._first_home, len(slots.home_slot)))
        self._unit = max(1.0, float(size.mean()))
        count, held = reached.replicas, reached.bytes
        self._low: Floats = np.array([[count.min * self._unit], [held.min]], dtype=np.float64)
        self._high: Floats = np.array([[count.max * self._unit], [held.max]], dtype=np.float64)

    def search(self, moved: int, rounds: int) -> float:
        """The most that was proven within so many rounds. Prices are per replica of mean size and
        per byte: a row each."""
        prices = best_prices = np.zeros((2, self._brokers))
        trend, scale = np.zeros_like(prices), np.zeros_like(prices)
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
                prices, trend = best_prices, np.zeros_like(prices)
                continue
            scale = 0.9 * scale + 0.1 * slope**2
            step = slope / np.sqrt(scale + 1e-3 * scale.max())
            trend = _MEMORY * trend + boldness * (moved - proven) / (slope * step).sum() * step
            prices = prices + trend
        return float(best)

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
        load = np.stack((count * self._unit, held))
        earned = np.where(prices > 0, prices * self._high, prices * self._low)
        total = float(value[chosen].sum() - earned[:, self._kept].sum())
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
        value = flat[self._at] * (1 - share) + flat[self._at + 1] * share + self._size
        filler = np.zeros(len(value), dtype=np.int64)
        is_home = np.zeros(len(value), dtype=np.bool_)
        if len(slots.home_slot):
            asked = per_replica[slots.home_on] + per_byte[slots.home_on] * self._home_size
            least = np.minimum.reduceat(asked, self._first_home)
            winners = np.flatnonzero(asked == np.repeat(least, self._homes))
            winners = winners[np.flatnonzero(np.diff(slots.home_slot[winners], prepend=-1))]
            slot = slots.home_slot[winners]
            better = least <= value[slot]
            stays = slot[better]
            value[stays] = least[better]
            filler[stays] = slots.home_on[winners[better]]
            is_home[stays] = True
        return value, filler, is_home

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
        slots = self._slots
        chosen = np.ones(len(value), dtype=np.bool_)
        if len(slots.choice):
            place = value[slots.choice].argsort(axis=1, kind="stable").argsort(axis=1)
            chosen[slots.choice] = place < slots.wanted[:, None]
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
