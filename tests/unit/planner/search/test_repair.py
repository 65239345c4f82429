"""Partitions that could be on more racks, or more evenly, are found in columns as one by one."""

from itertools import pairwise

import numpy as np
import pytest

from planner.columns import columns_of
from planner.goals import PlanRequest
from planner.search.bounds import fair_shares
from planner.search.placement import Placement
from planner.search.repair import is_crowded
from tests.unit.planner.clusters import cluster, seeded, single


@pytest.mark.parametrize(("racks", "factor"), [((4, 3, 2, 1), 3), ((4, 3), 4), ((3, 3, 1), 2)])
def test_every_crowded_partition_is_found(racks: tuple[int, ...], factor: int) -> None:
    before = seeded(5, racks=racks, factor=factor, partitions=200, disorder=0.5)
    rack_of = {broker.id: broker.rack for broker in before.brokers}
    crowded = []
    for partition in before.partitions:
        used = [rack_of[id_] for id_ in partition.replicas]
        of_each = {r: sum(1 for b in rack_of.values() if b == r) for r in rack_of.values()}
        most = min(
            n for n in range(1, factor + 1) if sum(min(n, m) for m in of_each.values()) >= factor
        )
        is_short = len(set(used)) < min(factor, len(racks))
        crowded.append(is_short or max(map(used.count, used)) > most)
    assert any(crowded)
    assert is_crowded(Placement(before, PlanRequest())).tolist() == crowded


def test_bytes_of_a_broker_are_exact_beyond_what_a_float_holds() -> None:
    sizes = [2**53, 2**53 - 1, 2**53 - 3, 1, 2**26, 2**26 - 1]
    on = [1, 1, 1, 1, 2, 2]
    assert columns_of(single(3, sizes, on)).held().tolist() == [3 * 2**53 - 3, 2**27 - 1, 0]


def test_fair_shares_follow_a_new_replication_factor() -> None:
    placement = Placement(cluster({1: None, 2: None, 3: None}, [(1,), (2,)]), PlanRequest())
    steps = [fair_shares(placement)[0].sum()]
    for partition, target in ((0, 2), (1, 2)):
        other = placement.copied()
        other.add(partition, target)
        assert np.isclose(fair_shares(placement)[0].sum(), steps[-1])
        placement = other
        steps.append(fair_shares(placement)[0].sum())
    assert [b - a for a, b in pairwise(steps)] == [1.0, 1.0]
