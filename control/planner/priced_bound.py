"""The proven minimum by prices: a linear relaxation that sees racks, numbers and bytes together.

Every broker asks a price for each replica that it holds, and one for each byte; whoever is to hold
more pays instead. At such prices each partition for itself chooses the cheapest places, a move
costing its bytes. A plan within the reached balance cannot do better than all these choices
together, less what the brokers earn at most within that balance:

    moved ≥ Σ cheapest places(p) - Σ most that b can earn

That holds for any prices (Lagrangian relaxation), so they need no proof, only to be good
(control.planner.market finds them). The best give what the linear program of the whole problem
gives.

Worked example: brokers 1 and 2 of one rack hold 100 and 0 bytes, and none may hold more than 60.
At a price of 1 a byte on broker 1, staying costs a partition as much as going: 100 bytes pay 100,
of which broker 1 earns at most 60. So 40 must move.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np

from control.planner.columns import Floats, sampled
from control.planner.demand import Demand
from control.planner.market import Market
from control.planner.shares import Reached
from control.planner.slots import slots_of

_ROUNDS_MAX: Final = 400
_WORK_MAX: Final = 12_000_000
"""Replicas looked at in all rounds together: about a second."""
_SAMPLE: Final = 10_000
"""Replicas on which prices are found first, where there are many more."""
_ROUNDS_MIN: Final = 8
"""Those of a sample are good already: the largest clusters do with few of their own."""
_ROUNDS_QUICK: Final = 120
"""Enough for what informs: plans are made to move few bytes, not few replicas."""
_ROUNDING: Final = 1e-9


def priced_bytes(demand: Demand, moved: int) -> int:
    """Bytes that every plan must move. `moved`: what a plan moves, which ends the search."""
    cost = demand.columns.size.astype(np.float64)
    proven = _Search(demand, cost, float(moved)).proven()
    return max(0, int(proven - _ROUNDING * cost.sum()))


def priced_replicas(demand: Demand, moved: int) -> int:
    """Replicas that every plan must move: each costs the same."""
    size = demand.columns.size
    unit = max(1.0, float(size.mean())) if len(size) else 1.0
    cost = np.full(len(size), unit)
    proven = _Search(demand, cost, moved * unit, is_quick=True).proven()
    return max(0, ceil((proven - _ROUNDING * float(cost.sum())) / unit))


@dataclass(frozen=True, slots=True)
class _Search:
    """The least that moves cost in all. `cost`: of moving a replica of each partition; `is_quick`:
    half as long, for half a percent less."""

    demand: Demand
    cost: Floats
    moved: float
    is_quick: bool = False

    def proven(self) -> float:
        """By the best prices that are found."""
        columns = self.demand.columns
        if not len(self.cost):
            return 0.0
        most = _ROUNDS_QUICK if self.is_quick else _ROUNDS_MAX
        rounds = min(most, max(_ROUNDS_MIN, _WORK_MAX // len(columns.of)))
        every, known = len(columns.of) // _SAMPLE, [np.zeros((2, columns.brokers))]
        if every > 1:
            known.append(self._of_sample(every, known[0]))
        best, slots = 0.0, slots_of(self.demand, columns, np.arange(len(self.cost)))
        for limits in self._looser_first():
            market = Market(columns, self.cost, slots, self.demand, limits)
            starts = known if self.is_quick else [*known, self._by_excess(limits)]
            if every > 1:
                starts = [max(starts, key=lambda prices: market.proven(prices)[0])]
            proven, prices = self._best(market, starts, rounds)
            best, known = max(best, proven), [prices]
        return best

    def _of_sample(self, every: int, nothing: Floats) -> Floats:
        """Prices that are good for each so manieth partition."""
        whole, looser = self.demand.columns, self._looser_first()[0]
        few, chosen = sampled(whole, every)
        slots = slots_of(self.demand, few, chosen)
        market = Market(few, self.cost[chosen], slots, self.demand, looser)
        market.stand_for(whole, few, every)
        return self._best(market, [nothing, self._by_excess(looser)], _ROUNDS_MAX)[1]

    def _best(self, market: Market, starts: Sequence[Floats], rounds: int) -> tuple[float, Floats]:
        """From whichever start leads to most. (what is proven, at which prices)"""
        found: list[tuple[float, Floats]] = []
        for start in starts:
            found.append(market.search(self.moved, rounds, start))
            found.append(market.rounded(found[-1][1]))
        return max(found, key=lambda one: one[0])

    def _by_excess(self, limits: Reached) -> Floats:
        """Whoever must lose something asks what a move costs: so the quick bound has it, and where
        a few brokers must lose much, no other prices are better."""
        columns = self.demand.columns
        excess = (columns.held() > limits.bytes_max) & ~self.demand.removed
        return np.stack((np.zeros(columns.brokers), excess.astype(np.float64)))

    def _looser_first(self) -> list[Reached]:
        """Prices that are good where all have the same limits prove no less where some have closer
        ones, and are found sooner: the search for those begins there."""
        reached, kept = self.demand.reached, ~self.demand.removed
        looser = reached.by_extremes(kept)
        is_same = bool(
            (reached.count_max[kept] == looser.count_max[kept]).all()
            and (reached.bytes_max[kept] == looser.bytes_max[kept]).all()
        )
        return [looser] if is_same else [looser, reached]
