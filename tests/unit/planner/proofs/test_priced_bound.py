"""The bound by prices: true for every placement, and near to what plans move where racks bind."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.columns import columns_of, rack_numbers
from planner.figures import balance_of
from planner.goals import PlanRequest
from planner.optimizer import plan
from planner.proofs.broker_prices import Market
from planner.proofs.demand import Demand
from planner.proofs.lower_bound import lower_bound_bytes, lower_bound_replicas
from planner.proofs.priced_bound import priced_bytes, priced_replicas
from planner.proofs.slots import slots_of
from planner.proposal import proposal_of
from planner.search.shares import Reached
from planner.topology import Topology
from tests.unit.planner.clusters import cluster, seeded, single


def demand(before: Topology, after: Topology) -> Demand:
    """Whatever is as even as the other placement."""
    everybody = np.ones(len(before.partitions), dtype=np.bool_)
    nobody = np.zeros(len(before.brokers), dtype=np.bool_)
    return Demand(
        columns=columns_of(before),
        rack=rack_numbers(before, nobody),
        removed=nobody,
        reached=Reached.by_all(balance_of(after), len(before.brokers)),
        scope=everybody,
        leaves=everybody,
        mended=everybody,
    )


def test_the_worked_example() -> None:
    before = cluster({1: "a", 2: "a"}, [(1,)] * 10, size=10)
    after = cluster({1: "a", 2: "a"}, [(1,)] * 6 + [(2,)] * 4, size=10)
    asked = demand(before, after)
    assert lower_bound_bytes(asked) == 40
    assert priced_bytes(asked, 40) in (39, 40)
    assert lower_bound_replicas(asked) == priced_replicas(asked, 4) == 4


def test_the_largest_replicas_are_the_fewest_that_a_full_broker_may_lose() -> None:
    sizes = [40, 30, 10, 10, 10, 10]
    asked = demand(single(2, sizes, on=[1] * 6), single(2, sizes, on=[2, 1, 1, 1, 1, 2]))
    anyhow = replace(asked.reached, count_min=np.zeros(2, np.int64), count_max=np.full(2, 6))
    asked = replace(asked, reached=anyhow)
    assert lower_bound_bytes(asked) == 50
    assert lower_bound_replicas(asked) == 2  # 40 are too few


def test_two_that_come_to_a_rack_go_to_two_brokers_of_it() -> None:
    """Only one of them may go to the broker that has room; where the other goes, one must leave."""
    racks = {1: "a", 2: "a", 3: "a", 4: "a", 5: "b", 6: "b", 7: "b"}
    before = cluster(racks, [(1, 2, 3, 4), *[(1, 2, 5, 6)] * 3], size=10)
    after = cluster(racks, [(1, 2, 5, 7), (1, 2, 7, 6), *[(1, 2, 5, 6)] * 2], size=10)
    asked = demand(before, after)
    as_now = np.array([40, 40, 40, 40, 30, 30, 40])
    asked = replace(asked, reached=replace(asked.reached, bytes_max=as_now))
    assert priced_bytes(asked, 30) in (29, 30)


@given(st.data(), st.integers(1, 5), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_no_placement_moves_less(data: st.DataObject, factor: int, seed: int) -> None:
    before = seeded(seed, brokers=6, racks=3, partitions=12, factor=factor, disorder=0.3)
    targets = {}
    for partition in before.partitions:  # one broker of each rack, then the others
        racks = data.draw(st.permutations(range(3)))
        sides = data.draw(st.lists(st.integers(0, 1), min_size=3, max_size=3))
        both = [
            *zip(racks, sides, strict=True),
            *((r, 1 - s) for r, s in zip(racks, sides, strict=True)),
        ]
        targets[partition.key] = tuple(101 + rack + 3 * side for rack, side in both[:factor])
    made = proposal_of("any", before, targets)
    asked = demand(before, before.with_replicas(targets))
    assert lower_bound_bytes(asked) <= made.moved_bytes
    assert priced_bytes(asked, made.moved_bytes) <= made.moved_bytes
    assert lower_bound_replicas(asked) <= made.moved_replicas
    assert priced_replicas(asked, made.moved_replicas) <= made.moved_replicas


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_no_prices_prove_more_than_any_placement_moves(factor: int, racks: int, seed: int) -> None:
    """Also where a broker leaves, and some partitions stay on it or on too few racks."""
    dice = np.random.default_rng(seed)
    before = seeded(seed, brokers=7, racks=racks, partitions=15, factor=factor, disorder=0.5)
    columns = columns_of(before)
    removed = np.arange(7) == (dice.integers(7) if seed % 2 else -1)
    rack, kept_racks = rack_numbers(before, removed)
    mended = dice.random(15) < 0.7
    after = np.zeros((15, 7), dtype=np.bool_)
    for p, partition in enumerate(before.partitions):
        order = dice.permutation(np.flatnonzero(~removed))
        turn = np.array([(rack[order[:i]] == rack[b]).sum() for i, b in enumerate(order)])
        homes = [b - 101 for b in partition.replicas]
        if not mended[p]:  # some stay, others go anywhere
            stay = [b for b in homes if dice.random() < 0.5]
            order = np.array([*stay, *(b for b in order if b not in stay)])
            turn = np.zeros(len(order))
        after[p, order[np.argsort(turn, kind="stable")][:factor]] = True
    size, count, held = columns.size, after.sum(axis=0), columns.size @ after
    moved = int((size[:, None] * after).sum()) - int(
        (size[columns.of] * after[columns.of, columns.on]).sum()
    )
    asked = Demand(
        columns=columns,
        rack=(rack, kept_racks),
        removed=removed,
        reached=Reached(count_min=count, count_max=count, bytes_max=held),
        scope=np.ones(15, dtype=np.bool_),
        leaves=mended,
        mended=mended,
    )
    market = Market(
        columns, size.astype(np.float64), slots_of(asked, columns, np.arange(15)), asked
    )
    for wild in (0.1, 1.0, 10.0):
        prices = dice.normal(scale=wild, size=(2, 7))
        assert market.proven(prices)[0] <= moved + 1e-6 * size.sum()
    assert priced_bytes(asked, moved) <= moved


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("racks", "factor"),
    [
        ((6, 4, 3, 2), 3),
        pytest.param((5, 5, 2), 3, marks=pytest.mark.thorough),
        ((6, 2), 2),
        pytest.param((4, 3, 2), 2, marks=pytest.mark.thorough),
    ],
)
def test_plans_are_near_it_where_racks_are_unequal(
    racks: tuple[int, ...], factor: int, seed: int
) -> None:
    before = seeded(seed, racks=racks, factor=factor, partitions=1500)
    first, *others = plan(before, PlanRequest()).alternatives
    assert first.proposal.moved_bytes <= 1.05 * (first.lower_bound_bytes or 0)
    for alternative in (first, *others):
        bound = alternative.lower_bound_bytes
        assert alternative.violations == ()
        assert bound is not None
        assert bound <= alternative.proposal.moved_bytes <= 1.06 * bound


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_plans_are_near_it_where_racks_hold_several_replicas(seed: int) -> None:
    before = seeded(seed, racks=3, brokers=15, factor=5, partitions=800)
    (first,) = plan(before, PlanRequest(alternatives=1)).alternatives
    bound = first.lower_bound_bytes
    assert bound is not None
    assert bound <= first.proposal.moved_bytes <= 1.05 * bound


@pytest.mark.parametrize(("racks", "factor", "forced"), [((6, 3, 3, 2), 5, 2), ((4, 3, 2), 4, 2)])
def test_unequal_racks_that_hold_several_replicas_are_evened_as_far_as_they_can(
    racks: tuple[int, ...], factor: int, forced: int
) -> None:
    """The smallest rack holds every partition at least once: no plan brings its brokers lower."""
    before = seeded(2, racks=racks, factor=factor, partitions=500)
    for alternative in plan(before, PlanRequest()).alternatives:
        bound = alternative.lower_bound_bytes
        assert alternative.violations == ()
        assert bound is not None
        assert bound <= alternative.proposal.moved_bytes <= 1.06 * bound
        assert alternative.balance.replicas.max <= 1.09 * 500 / forced + 1


def test_plan_and_bound_meet_where_many_replicas_must_change_racks() -> None:
    """Three quarters of each rack's share of partitions lie on each of four unequal racks: the
    smallest rack's brokers hold twice what they should, and few of their replicas may go to any
    one other rack."""
    before = seeded(1, racks=(20, 14, 9, 6), factor=3, partitions=5000)
    (first,) = plan(before, PlanRequest(alternatives=1)).alternatives
    assert first.lower_bound_bytes is not None
    assert first.proposal.moved_bytes <= 1.05 * first.lower_bound_bytes
    # The rack of 20 holds a replica of every partition, the other 29 brokers share the rest.
    assert first.balance.replicas.max <= 1.03 * 2 * 5000 / 29 + 1
    assert first.violations == ()
