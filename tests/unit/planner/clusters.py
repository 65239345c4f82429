"""Small clusters, and seeded larger ones of any shape."""

from collections.abc import Mapping, Sequence

import numpy as np

from planner.goals import PlanRequest
from planner.optimizer import Alternative, judged_plan
from planner.proposal import Proposal
from planner.topology import Topology, TopologyBroker, TopologyPartition


def cluster(
    racks: Mapping[int, str | None], placements: Sequence[tuple[int, ...]], *, size: int = 100
) -> Topology:
    """One topic ``t``, its partitions placed as given, all of one size."""
    return Topology(
        brokers=tuple(TopologyBroker(id=id_, rack=rack) for id_, rack in racks.items()),
        partitions=tuple(
            TopologyPartition(topic="t", partition=p, replicas=replicas, size_bytes=size)
            for p, replicas in enumerate(placements)
        ),
    )


def single(brokers: int, sizes: Sequence[int], on: Sequence[int]) -> Topology:
    """Brokers 1, 2, …; one topic ``t`` of one replica each: its size, and the broker it is on."""
    return Topology(
        brokers=tuple(TopologyBroker(id=id_) for id_ in range(1, brokers + 1)),
        partitions=tuple(
            TopologyPartition(topic="t", partition=p, replicas=(broker,), size_bytes=size)
            for p, (size, broker) in enumerate(zip(sizes, on, strict=True))
        ),
    )


def seeded(
    seed: int,
    *,
    brokers: int = 12,
    racks: int | tuple[int, ...] = 3,
    partitions: int = 600,
    factor: int = 3,
    joined: int = 0,
    disorder: float = 0.1,
    has_traffic: bool = False,
) -> Topology:
    """Log-normal sizes; every partition on racks in turn, save for a share placed anywhere.
    `racks` 0: none are configured; a tuple: so many brokers in each; `joined` brokers, the last,
    are empty."""
    dice = np.random.default_rng(seed)
    if isinstance(racks, tuple):
        rack_of, racks = [r for r, size in enumerate(racks) for _ in range(size)], len(racks)
        brokers = len(rack_of)
    else:
        rack_of = [b % racks if racks else 0 for b in range(brokers)]
    old = brokers - joined
    per_topic = max(3, partitions // 25)
    sizes = dice.lognormal(np.log(2e8), 1.2, partitions).astype(np.int64).tolist()
    rates = dice.lognormal(np.log(5e4), 1.0, (2, partitions)).astype(np.int64).tolist()
    placed = []
    for _ in range(partitions):
        if racks and dice.random() > disorder:
            homes = dice.permutation(racks)
            here = [[b for b in range(old) if rack_of[b] == rack] for rack in range(racks)]
            rows = [dice.permutation(brokers_here) for brokers_here in here]
            chosen = [rows[homes[i % racks]][i // racks] for i in range(factor)]
        else:
            chosen = dice.choice(old, factor, replace=False).tolist()
        placed.append(tuple(101 + int(b) for b in chosen))
    return Topology(
        brokers=tuple(
            TopologyBroker(id=101 + b, rack=f"r{rack_of[b]}" if racks else None)
            for b in range(brokers)
        ),
        partitions=tuple(
            TopologyPartition(
                topic=f"t{p // per_topic}",
                partition=p % per_topic,
                replicas=placed[p],
                size_bytes=sizes[p],
                in_bytes_per_s=rates[0][p] if has_traffic else 0,
                out_bytes_per_s=3 * rates[1][p] if has_traffic else 0,
            )
            for p in range(partitions)
        ),
    )


def judged_as(topology: Topology, request: PlanRequest, proposal: Proposal) -> Alternative:
    """Figures, violations and bound of a proposal that somebody else made."""
    (alternative,) = judged_plan(topology, request, proposal).alternatives
    return alternative
