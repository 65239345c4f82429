"""Why a balance cannot be better, whatever the plan: proofs in one sentence each."""

from collections import Counter
from collections.abc import Collection

import numpy as np

from control.model.units import bytes_text
from control.planner.bounds import fair_shares
from control.planner.placement import Placement
from control.planner.topology import Topology


def proofs(placement: Placement) -> tuple[str, ...]:
    """What no assignment within the request can reach."""
    return (*_rack_proofs(placement), *_size_proofs(placement))


def unknown_sizes(topology: Topology) -> tuple[str, ...]:
    """What a plan without sizes cannot do."""
    if not topology.partitions or any(p.size_bytes for p in topology.partitions):
        return ()
    return (
        "no partition has any bytes as far as is known: only numbers are evened (a cluster tells "
        "sizes to those who may Describe it)",
    )


def stopped_brokers(topology: Topology, removed: Collection[int]) -> tuple[str, ...]:
    """Who cannot take part because it does not run."""
    stopped = [b.id for b in topology.brokers if not b.is_running and b.id not in removed]
    if not stopped:
        return ()
    held = Counter(id_ for partition in topology.partitions for id_ in partition.replicas)
    return tuple(
        f"broker {id_} does not run: it gets nothing, and its {_replicas(held[id_])}; start it, or "
        "remove it to have them elsewhere"
        for id_ in stopped
    )


def _replicas(number: int) -> str:
    return "1 replica stays" if number == 1 else f"{number} replicas stay"


def _rack_proofs(placement: Placement) -> list[str]:
    """Racks with fewer brokers than others must still hold their share of every partition."""
    if placement.racks == 1:
        return []
    count, _ = fair_shares(placement)
    target = np.flatnonzero(placement.is_target)
    mean = float(count[target].mean())
    names = {
        placement.rack[b]: placement.topology.brokers[b].rack for b in range(placement.brokers)
    }
    found = []
    for rack in range(placement.racks):
        here = [int(b) for b in target if placement.rack[b] == rack]
        if here and np.ceil(count[here[0]]) > np.ceil(mean):
            most = int(np.ceil(count[here[0]]))
            found.append(
                f"rack {names[rack]} has {len(here)} of {len(target)} brokers for a replica of "
                f"every partition: no plan gives them fewer than {most} each (mean {mean:.0f})"
            )
    return found


def _size_proofs(placement: Placement) -> list[str]:
    """A partition larger than a broker's share."""
    if not placement.size:
        return []
    _, held = fair_shares(placement)
    share = float(held[placement.is_target].max(initial=0.0))
    largest = placement.partition_at[-1]
    size = placement.size[largest]
    if share <= 0 or size <= share:
        return []
    key = placement.topology.partitions[largest].key
    return [
        f"one replica of {key} has {bytes_text(size)}, more than a broker's share of "
        f"{bytes_text(share)}: "
        f"no plan brings the largest broker below it"
    ]
