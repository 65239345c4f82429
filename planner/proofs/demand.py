"""Demand on a bound: a balance reached, and the other rules that a plan to it obeys."""

from dataclasses import dataclass, replace

import numpy as np

from planner.columns import Columns, Flags, Numbers
from planner.search.shares import Reached
from planner.search.topic_counts import TopicCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Conditions of every plan that counts: no replica left on `removed` brokers, racks as
    possible, the others within `reached`."""

    columns: Columns
    """Before."""
    rack: tuple[Numbers, int]
    """The number of each broker's rack (those that only removed brokers have come last), and how
    many there are."""
    removed: Flags
    reached: Reached
    scope: Flags
    """Partitions that may move at all."""
    leaves: Flags
    """Those that are to leave removed brokers: not what is outside the scope, nor what the plan
    leaves there."""
    mended: Flags
    """Those of them that racks are asked of: not what the plan leaves crowded."""
    most_in: int | None = None
    """Bytes per second that no broker receives more of afterwards."""
    topics: TopicCounts | None = None
    """Counts before, given where every topic is even afterwards."""

    def each_as_one(self) -> "Demand":
        """Each replica of size 1, so that bytes are numbers of replicas; `reached` does not say
        how many bytes that is."""
        ones = np.ones_like(self.columns.size)
        return replace(self, columns=replace(self.columns, size=ones))
