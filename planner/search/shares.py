"""Shares that racks leave to each broker, of replicas or of bytes.

A rack holds of each partition at most as many replicas as it must where they lie as evenly as they
can, and never more than it has brokers; where there are as many replicas as racks, each holds one
at least. Brokers of a small rack so may have to carry more than the mean, whatever the plan.

Worked example: racks a (2 brokers), b (2), c (1), 100 partitions of 3 replicas. Every rack must
hold one replica of each: 100 per rack, so 50 per broker in a and b, and 100 on the one in c.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from planner.columns import Flags, Floats, Numbers
from planner.figures import Balance
from planner.search.placement import most_per_rack

_BISECTIONS: Final = 60
SHARE_DIGITS: Final = 6
"""Shares that agree so far are the same."""


def rack_shares(
    total: float,
    width: Numbers,
    weight: Floats,
    kept: Numbers,
    receiving: Numbers,
    *,
    known: int | None = None,
) -> Floats:
    """Share of each broker of each rack in `total`. Per partition `width` replicas of `weight`
    each; per rack its `kept` brokers, and those `receiving` a share. Racks after the first `known`
    are unknown: they need not hold one of each partition."""
    racks = len(kept)
    known = racks if known is None else known
    least, most = np.zeros(racks), np.zeros(racks)
    for wide in np.unique(width).tolist():
        weighs = float(weight[width == wide].sum())
        limit = most_per_rack(wide, tuple(kept[:known].tolist())) if wide > known else 1
        room = np.minimum(kept, limit)
        others = room.sum() - room
        least += weighs * np.maximum(wide - others, int(wide >= racks and racks == known))
        most += weighs * room
    brokers = receiving.astype(np.float64)
    quota = _fill(total, brokers, least, most)
    return np.divide(quota, brokers, out=np.zeros(racks), where=brokers > 0)


def _fill(total: float, brokers: Floats, least: Floats, most: Floats) -> Floats:
    """Per rack level × brokers, clamped to [least, most] where it has brokers, adding up to
    `total` as far as the clamps allow."""
    has = brokers > 0
    low, high = 0.0, total / max(1.0, float(brokers[has].min(initial=1.0)))
    for _ in range(_BISECTIONS):
        level = (low + high) / 2
        filled = np.where(has, np.clip(level * brokers, least, most), 0.0)
        low, high = (level, high) if filled.sum() < total else (low, level)
    level = (low + high) / 2
    return np.where(has, np.clip(level * brokers, least, most), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A balance, one element a broker: as many replicas as anybody of the same share has, at least
    and at most, and as many bytes at most."""

    count_min: Numbers
    count_max: Numbers
    bytes_max: Numbers

    @classmethod
    def by_share(cls, count: Numbers, held: Numbers, kept: Flags, share: Floats) -> Self:
        """The `kept` brokers by their share. Racks force shares, so a plan is as even as the
        brokers of each share are."""
        _, group = np.unique(
            np.where(kept, np.round(share, SHARE_DIGITS), -1.0), return_inverse=True
        )
        fewest, most, fullest = np.zeros((3, len(count)), dtype=np.int64)
        for number in np.unique(group[kept]).tolist():
            of_it = kept & (group == number)
            fewest[of_it], most[of_it] = count[of_it].min(), count[of_it].max()
            fullest[of_it] = held[of_it].max()
        return cls(count_min=fewest, count_max=most, bytes_max=fullest)

    @classmethod
    def by_all(cls, balance: Balance, brokers: int) -> Self:
        """The extremes of the whole cluster for everybody."""
        return cls(
            count_min=np.full(brokers, balance.replicas.min),
            count_max=np.full(brokers, balance.replicas.max),
            bytes_max=np.full(brokers, balance.bytes.max),
        )
