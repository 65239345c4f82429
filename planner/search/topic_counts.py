"""How many replicas of each topic each broker holds, and how many it should.

A topic's replicas are shared out as all replicas are (search.bounds): by racks first,
each as much as its brokers are worth but no more than one replica of each partition where
partitions are spread, then evenly. A broker should hold that share, rounded down or up.

Worked example: 10 partitions of 3 replicas on three racks of 4, 4 and 2 brokers. Each rack holds
one replica of each: 10 on 4 brokers are 2 or 3 each, 10 on 2 brokers are 5 each.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from planner.columns import Columns, Flags, Floats, Numbers
from planner.roles import Roles

_BISECTIONS: Final = 50
_ROUNDING: Final = 1e-6


@dataclass(slots=True, kw_only=True)
class TopicCounts:
    """Replicas by topic (row) and broker (column), and between what they should be."""

    of: Numbers
    """The topic of each partition."""
    count: Numbers
    low: Numbers
    high: Numbers
    target: Flags
    """Brokers that may receive replicas."""
    _members: list[list[int]] = field(default_factory=list)

    def may_move(self, partition: int, source: int, target: int, for_: int | None = None) -> bool:
        """Whether the topic gets no less even by that, when `for_` comes back in exchange."""
        topic = self.of[partition]
        if for_ is not None and self.of[for_] == topic:
            return True
        here, there = self.count[topic, source], self.count[topic, target]
        if here > self.low[topic, source] and there < self.high[topic, target]:
            return True
        return bool(here > there + 1)

    def members(self, topic: int) -> list[int]:
        """Its partitions."""
        if not self._members:
            order = np.argsort(self.of, kind="stable")
            edges = np.searchsorted(self.of[order], np.arange(1, len(self.count)))
            self._members = [members.tolist() for members in np.split(order, edges)]
        return self._members[topic]

    def uneven(self) -> int:
        """Replicas that must move before every topic is even over the balanced brokers."""
        return int(np.maximum(*self._off()).sum())

    def distance(self) -> int:
        """Replicas that brokers have too many or too few of, of each topic for itself."""
        return int(np.add(*self._off()).sum())

    def _off(self) -> tuple[Numbers, Numbers]:
        """(replicas too many, too few) by topic."""
        over = np.maximum(self.count - self.high, 0)[:, self.target].sum(axis=1)
        under = np.maximum(self.low - self.count, 0)[:, self.target].sum(axis=1)
        return over, under


def topic_counts(columns: Columns, of: Numbers, roles: Roles) -> TopicCounts:
    """Counts of a placement, and their bounds over the brokers that may receive replicas. What
    lies on others is not shared out, save that of removed brokers, which has to come."""
    topics = int(of.max(initial=-1)) + 1
    flat = np.bincount(
        of[columns.of] * columns.brokers + columns.on, minlength=topics * columns.brokers
    )
    count = flat.reshape(topics, columns.brokers)
    share = _shares(columns, of, count, roles)
    low, high = np.floor(share + _ROUNDING), np.ceil(share - _ROUNDING)
    return TopicCounts(
        of=of,
        count=count,
        low=low.astype(np.int64),
        high=high.astype(np.int64),
        target=roles.target,
    )


def _shares(columns: Columns, of: Numbers, count: Numbers, roles: Roles) -> Floats:
    topics, racks = len(count), roles.racks
    staying = roles.target | roles.removed
    total = count[:, staying].sum(axis=1).astype(np.float64)
    per_rack = np.bincount(roles.rack[roles.target], minlength=racks)[:racks].astype(np.float64)
    forced = columns.width // racks if racks == roles.known_racks else np.zeros_like(columns.width)
    least = np.bincount(of, weights=forced, minlength=topics).astype(np.float64)
    ceiling = -(-columns.width // roles.known_racks)
    most = np.bincount(of, weights=ceiling, minlength=topics).astype(np.float64)
    level = _levels(total, per_rack, least, most)
    quota = np.clip(level[:, None] * per_rack[None, :], least[:, None], most[:, None])
    each = np.divide(quota, per_rack, out=np.zeros_like(quota), where=per_rack > 0)
    padded = np.concatenate((each, np.zeros((topics, 1))), axis=1)
    shares: Floats = padded[:, np.minimum(roles.rack, racks)] * roles.target
    return shares


def _levels(total: Floats, per_rack: Floats, least: Floats, most: Floats) -> Floats:
    """Per topic the replicas of a broker on a rack that is neither full nor forced."""
    has = per_rack[None, :] > 0
    low, high = np.zeros(len(total)), total / max(1.0, float(per_rack[per_rack > 0].min(initial=1)))
    for _ in range(_BISECTIONS):
        level = (low + high) / 2
        filled = np.clip(level[:, None] * per_rack[None, :], least[:, None], most[:, None])
        is_short = np.where(has, filled, 0.0).sum(axis=1) < total
        low, high = np.where(is_short, level, low), np.where(is_short, high, level)
    return (low + high) / 2
