"""Prices at which a search begins: where all ways are open they are the best already."""

from dataclasses import replace

import numpy as np

from planner.columns import columns_of, rack_numbers
from planner.proofs.broker_prices import Market
from planner.proofs.demand import Demand
from planner.proofs.first_prices import first_prices
from planner.proofs.lower_bound import lower_bound_bytes
from planner.proofs.slots import slots_of
from planner.search.shares import Reached
from planner.topology import Topology
from tests.unit.planner.clusters import seeded, single


def asked(topology: Topology, fewest: int, most: int, most_bytes: int) -> Demand:
    """Of everybody, nobody removed."""
    brokers, everything = len(topology.brokers), np.ones(len(topology.partitions), dtype=np.bool_)
    nobody = np.zeros(brokers, dtype=np.bool_)
    return Demand(
        columns=columns_of(topology),
        rack=rack_numbers(topology, nobody),
        removed=nobody,
        reached=Reached(
            count_min=np.full(brokers, fewest),
            count_max=np.full(brokers, most),
            bytes_max=np.full(brokers, most_bytes),
        ),
        scope=everything,
        leaves=everything,
        mended=everything,
    )


def proven(demand: Demand) -> float:
    """By the first prices."""
    columns = demand.columns
    slots = slots_of(demand, columns, np.arange(len(columns.size)))
    market = Market(columns, columns.size.astype(np.float64), slots, demand)
    return market.proven(first_prices(columns, demand.reached, demand.removed, market.unit))[0]


def test_the_worked_example() -> None:
    before = single(2, range(1, 11), on=[1] * 10)
    demand = asked(before, 0, 10, 55 - 6)
    prices = first_prices(demand.columns, demand.reached, demand.removed, 1.0)
    assert prices.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    assert 5.9 < proven(demand) < 6.01
    lacking = asked(before, 5, 10, 55 - 6)
    prices = first_prices(lacking.columns, lacking.reached, lacking.removed, 1.0)
    assert np.allclose(prices, [[0.0, -5.0], [0.0, 0.0]], atol=1e-6)
    assert 14.9 < proven(lacking) < 15.01


def test_on_one_rack_they_prove_as_much_as_each_broker_must_lose() -> None:
    for seed in range(3):
        before = seeded(seed, brokers=9, racks=0, factor=1, partitions=900, joined=2)
        held = columns_of(before).held()
        demand = asked(before, 0, 120, int(held.mean() * 1.25))
        least = lower_bound_bytes(demand)
        assert 0.999 * least < proven(demand) <= least + 1
        full = replace(demand, reached=replace(demand.reached, count_min=np.full(9, 95)))
        assert proven(full) >= proven(demand)
