"""What cannot be helped is shared evenly, and nobody moves a byte more for it."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from planner.columns import Floats
from planner.goals import PlanRequest
from planner.optimizer import plan
from planner.search.bounds import Bounds, bounds_of
from planner.search.even import even_out
from planner.search.placement import Placement
from planner.search.share_overflow import level
from planner.topology import Topology, TopologyBroker, TopologyPartition

OLD = (101, 102, 103)


def two_join(partitions: int, other_bytes: int) -> Topology:
    """A topic ``t`` of 1,000 bytes a partition and one three times as wide that stays, on three
    brokers; two are empty."""

    def topic(name: str, factor: int, size: int) -> tuple[TopologyPartition, ...]:
        return tuple(
            TopologyPartition(
                topic=name,
                partition=n,
                replicas=tuple(OLD[(n + step) % len(OLD)] for step in range(factor)),
                size_bytes=size,
            )
            for n in range(partitions)
        )

    return Topology(
        brokers=tuple(TopologyBroker(id=id_) for id_ in (*OLD, 104, 105)),
        partitions=(*topic("t", 2, 1000), *topic("other", 3, other_bytes)),
    )


@pytest.mark.parametrize("other_bytes", [0, 100])
def test_the_worked_example(other_bytes: int) -> None:
    """Nine would be fair, and eleven is what is left to each of the old ones."""
    before = two_join(9, other_bytes)
    first = plan(before, PlanRequest(topics=("t",))).alternatives[0]
    placed = Counter(b for p in before.partitions for b in p.replicas)
    for change in first.proposal.changes:
        placed.subtract(change.before)
        placed.update(change.after)
    assert [placed[id_] for id_ in before.broker_ids] == [11, 11, 11, 6, 6]
    assert first.proposal.moved_bytes == 12 * 1000
    assert first.violations == ()


def test_numbers_come_nearer_to_each_other_and_no_byte_more_moves() -> None:
    """The topic that may move has nearly all the bytes, and too few of the replicas."""
    nearer = 0
    for seed in range(12):
        placement, bounds = evened(seed)
        count, moved = placement.count.copy(), moved_bytes(placement)
        level(placement, bounds)
        placement.check_invariants()
        assert moved_bytes(placement) <= moved
        assert placement.count.max() <= count.max()
        before, after = square(count - bounds.count_max), square(placement.count - bounds.count_max)
        assert after <= before
        nearer += after < before
    assert nearer >= 8


def evened(seed: int) -> tuple[Placement, Bounds]:
    """A case as the greedy leaves it."""
    sizes = np.random.default_rng(seed).lognormal(7, 0.5, 12 + 3 * seed).astype(np.int64).tolist()
    topology = two_join(len(sizes), 1)
    request = PlanRequest(topics=("t",))
    topology = replace(
        topology,
        partitions=tuple(
            replace(p, size_bytes=sizes[p.partition]) if p.topic == "t" else p
            for p in topology.partitions
        ),
    )
    placement = Placement(topology, request)
    bounds = bounds_of(placement, request.tolerances()[0])
    even_out(placement, bounds)
    return placement, bounds


def moved_bytes(placement: Placement) -> int:
    """Of all replicas that are not where they were."""
    homes = placement.home
    return sum(
        placement.size[n] * len(set(now) - set(homes[n]))
        for n, now in enumerate(placement.replicas)
    )


def square(excess: Floats) -> float:
    """What is beyond, the worst counting most."""
    return float((np.maximum(excess, 0) ** 2).sum())
