"""Prices at which a search begins: everybody gives the smallest replicas that it has.

Of what a broker holds it must lose some number, or some bytes, or may give what others lack. The
smallest replicas cost least, so what goes is all below a size, its threshold. Brokers that lack
replicas pay for each, so much that all thresholds together fill them. Whoever must give more than
that pays asks the difference: a price per replica where numbers make it give, per byte where bytes
do. Where racks leave every way open, no prices prove more.

Worked example: one broker has ten replicas of sizes 1 to 10 and must lose 6 bytes; nobody lacks
any. It gives those of sizes 1 to 3 and asks 1 a byte: whichever it loses, 6 bytes move. If another
lacks five replicas it gives those up to 5, and none that is larger: the other pays 5 for each.
"""

from typing import Final

import numpy as np

from planner.columns import Columns, Flags, Floats, Numbers
from planner.search.shares import Reached

_BISECTIONS: Final = 50


def first_prices(columns: Columns, limits: Reached, removed: Flags, unit: float) -> Floats:
    """Per replica of `unit` bytes, and per byte: a row each, one element a broker."""
    count, prices = columns.count(), np.zeros((2, columns.brokers))
    sizes = _by_broker(columns)
    by_count, by_bytes = _must_give(columns, limits, sizes)
    lacks = np.where(removed, 0, np.maximum(limits.count_min - count, 0))
    kept = np.flatnonzero(~removed).tolist()
    paid = _paid(
        [sizes[b] for b in kept],
        np.maximum(by_count, by_bytes)[kept],
        int(lacks.sum() - count[removed].sum()),
    )
    for broker in kept:
        gives = int(max(by_count[broker], by_bytes[broker]))
        threshold = float(sizes[broker][gives - 1]) if gives else 0.0
        if threshold > paid and by_bytes[broker] >= by_count[broker]:
            prices[1, broker] = 1 - paid / threshold
        elif threshold > paid:
            prices[0, broker] = (threshold - paid) / unit
    prices[0] -= np.where(lacks > 0, paid / unit, 0.0)
    return prices


def _by_broker(columns: Columns) -> list[Numbers]:
    """The sizes of each broker's replicas, ascending."""
    held = columns.size[columns.of]
    order = np.lexsort((held, columns.on))
    return np.split(held[order], np.cumsum(columns.count())[:-1])


def _must_give(columns: Columns, limits: Reached, sizes: list[Numbers]) -> tuple[Numbers, Numbers]:
    """Number of its smallest replicas that each broker gives: by numbers, and by bytes."""
    by_count = np.maximum(columns.count() - limits.count_max, 0)
    by_bytes = np.zeros(columns.brokers, dtype=np.int64)
    for broker, excess in enumerate((columns.held() - limits.bytes_max).tolist()):
        if excess > 0:
            by_bytes[broker] = 1 + np.searchsorted(np.cumsum(sizes[broker]), excess)
    return by_count, by_bytes


def _paid(sizes: list[Numbers], must: Numbers, lacking: int) -> float:
    """For each replica that is lacked: the least at which as many are given."""

    def given(price: float) -> int:
        offered = [int(np.searchsorted(of_one, price)) for of_one in sizes]
        return int(np.maximum(offered, must).sum())

    low, high = 0.0, float(max((of_one[-1] for of_one in sizes if len(of_one)), default=0))
    if given(low) >= lacking:
        return low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if given(middle) < lacking else (low, middle)
    return high
