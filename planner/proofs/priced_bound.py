"""The proven minimum by prices: a linear relaxation that sees racks, numbers and bytes together.

Every broker asks a price for each replica that it holds, and one for each byte; whoever is to hold
more pays instead. At such prices each partition for itself chooses the cheapest places, a move
costing its bytes. A plan within the reached balance cannot do better than all these choices
together, less what the brokers earn at most within that balance:

    moved ≥ Σ cheapest places(p) - Σ most that b can earn

That holds for any prices (Lagrangian relaxation), so they need no proof, only to be good
(proofs.broker_prices finds them). The best give what the linear program of the whole problem
gives.

Worked example: brokers 1 and 2 of one rack hold 100 and 0 bytes, and none may hold more than 60.
At a price of 1 a byte on broker 1, staying costs a partition as much as going: 100 bytes pay 100,
of which broker 1 earns at most 60. So 40 must move.
"""

from dataclasses import dataclass, replace
from math import ceil
from typing import Final

import numpy as np

from planner.columns import Floats, sampled
from planner.proofs.broker_prices import Market
from planner.proofs.concave_maximum import Footing
from planner.proofs.demand import Demand
from planner.proofs.first_prices import first_prices
from planner.proofs.slots import slots_of

_ROUNDS_MAX: Final = 900
_ROUNDS_QUICK: Final = 60
"""Enough for what informs: plans are made to move few bytes, not few replicas."""
_ROUNDS_AGAIN: Final = 60
"""Those of a sample are good already."""
_ROUNDS_MIN: Final = 8
_WORK_MAX: Final = 30_000_000
"""Places looked at in all rounds together: about three seconds."""
_PAIRS_PER_PLACE: Final = 40
"""So many pairs of brokers take as long as a place."""
_SAMPLE: Final = 10_000
"""Replicas on which prices are found first, where there are many more."""
_STEP_AGAIN: Final = 0.05
_LIKE: Final = 1.02
"""A sample that tells more than so much of what all tell is not like them: prices begin anew."""
_CLOSE: Final = 0.999
"""Of what a plan moves: so much proven is enough."""
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
    not as long, and from prices of nothing."""

    demand: Demand
    cost: Floats
    moved: float
    is_quick: bool = False

    def proven(self) -> float:
        """By the best prices that are found."""
        columns = self.demand.columns
        if not len(self.cost):
            return 0.0
        slots = slots_of(self.demand, columns, np.arange(len(self.cost)))
        market = Market(columns, self.cost, slots, self.demand)
        every = round(len(columns.of) / _SAMPLE)
        if every <= 1:
            return self._climbed(market, self._start(market), _ROUNDS_MAX)[0]
        told, footing = self._of_sample(every)
        all_tell = market.proven(footing.point.reshape(2, -1))[0]
        if min(told, self.moved) > _LIKE * all_tell:
            return self._climbed(market, self._start(market), _ROUNDS_MAX)[0]
        return self._climbed(market, replace(footing, step=_STEP_AGAIN), _ROUNDS_AGAIN)[0]

    def _of_sample(self, every: int) -> tuple[float, Footing]:
        """(what each so manieth partition tells of all, prices that are good for them). Where few
        places are open a sample may not fit into them at all, and tells too much."""
        whole = self.demand.columns
        few, chosen = sampled(whole, every)
        slots = slots_of(self.demand, few, chosen)
        market = Market(few, self.cost[chosen], slots, self.demand)
        market.stand_for(whole, few, every)
        return self._climbed(market, self._start(market), _ROUNDS_MAX)

    def _start(self, market: Market) -> Footing:
        demand = self.demand
        if self.is_quick:
            return market.footing(np.zeros((2, demand.columns.brokers)))
        return market.footing(
            first_prices(demand.columns, demand.reached, demand.removed, market.unit)
        )

    def _climbed(self, market: Market, start: Footing, rounds: int) -> tuple[float, Footing]:
        pairs = self.demand.columns.brokers**2
        fits = _WORK_MAX // (market.places + pairs // _PAIRS_PER_PLACE)
        most = _ROUNDS_QUICK if self.is_quick else rounds
        rounds = min(most, max(_ROUNDS_MIN, fits))
        return market.climbed(start, rounds=rounds, enough=_CLOSE * self.moved)
