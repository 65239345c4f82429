"""Where the replicas of a new topic go: evenly over racks and brokers. Pure.

Kafka begins at a random broker, whatever each has. Here each replica goes to a broker on a rack
that the partition is not on yet; of these to the one with fewest of the topic's replicas, then to
the one that shares fewest partitions with those chosen (so that many take over from one that
fails), then to the one with fewest replicas of all topics. Who leads fewest of the topic leads.

Worked example: brokers 1 to 3 with 10, 0 and 5 replicas, three partitions on two brokers each:
[2, 3], [1, 2], [3, 1].
"""

from collections.abc import Mapping
from itertools import permutations

import numpy as np

from planner.racks import Racks

Replicas = tuple[int, ...]
"""Broker ids of one partition, the preferred leader first."""


def placed(
    held: Mapping[int, int], racks: Racks, *, partitions: int, factor: int
) -> tuple[Replicas, ...]:
    """The replicas of each partition.

    ``held``: replicas that each broker has already, of those that may receive some.

    :raises ValueError: more replicas than brokers.
    """
    if factor > len(held):
        raise ValueError(f"{factor} replicas need as many brokers, and there are {len(held)}")
    ids = sorted(held)
    names = [racks.of.get(broker) or broker for broker in ids]
    rack = np.array([names.index(name) for name in names])
    of_all = np.array([held[broker] for broker in ids])
    own, leads = np.zeros(len(ids), int), np.zeros(len(ids), int)
    together = np.zeros((len(ids), len(ids)), int)
    found = []
    for _ in range(partitions):
        chosen: list[int] = []
        is_there, is_near = np.zeros(len(ids), bool), np.zeros(len(ids), bool)
        shared = np.zeros(len(ids), int)
        while len(chosen) < factor:
            best = int(np.lexsort((of_all, shared, own, is_near, is_there))[0])
            chosen.append(best)
            is_there[best] = True
            is_near |= rack == rack[best]
            shared += together[best]
        own[chosen] += 1
        for pair in permutations(chosen, 2):
            together[pair] += 1
        leader = min(chosen, key=leads.__getitem__)
        leads[leader] += 1
        followers = (broker for broker in chosen if broker != leader)
        found.append(tuple(ids[number] for number in (leader, *followers)))
    return tuple(found)
