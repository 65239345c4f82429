"""Giving too many bytes away in many small replicas, where others lack replicas.

Worked example: 1 has 30 bytes too many, one of 30 and four of 8; 2 has four of 5; 3 lacks four.
Gave 1 its 30, then 3 would take three of 5 as well: 45 bytes. It gives its four of 8: 32.
"""

import numpy as np

from control.planner.reach import Reach


def many_small(reach: Reach) -> dict[int, float]:
    """In how many replicas each broker with too many bytes is to give these to who lacks replicas:
    as many of its smallest as it takes, as long as nobody else has to give replicas anyway."""
    placement, bounds, targets = reach.placement, reach.bounds, reach.targets
    missing = float(np.maximum(0.0, bounds.count_min - placement.count)[targets].sum())
    surplus = np.maximum(0.0, placement.count - bounds.count_max)
    lacking = missing - float(surplus[targets].sum())
    further: dict[int, float] = {}
    for source in targets.tolist() if lacking > 0 else ():
        excess = float(placement.bytes[source] - bounds.bytes_max[source])
        spare = int(min(missing, placement.count[source] - bounds.count_min[source]))
        if excess > 0 and spare > 0:
            smallest = np.cumsum([reach.size_of(r) for r in placement.by_size[source][:spare]])
            number = float(smallest.searchsorted(excess)) + 1
            further[source] = max(0.0, number - float(surplus[source]))
    share = min(1.0, lacking / max(1.0, sum(further.values())))
    return {b: float(surplus[b]) + share * number for b, number in further.items()}
