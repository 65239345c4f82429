"""Records that followers are behind their leader. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from spark_metrics.figures.column import Column, greatest, where
from spark_metrics.figures.lists import Lists
from spark_metrics.figures.pairing import earliest_after


class LogEnd(NamedTuple):
    """When a follower's log was read, and its end then."""

    ms: Column
    offset: Column


def follower_lag(
    readings: Sequence[LogEnd], is_leader: Column, *, times: Lists, ends: Lists
) -> Column:
    """Count the records that each replica is behind; the leader's own are 0.

    The newest reading that one of the leader's follows counts. A follower that seems to be ahead
    (two clocks differ, or it has not cut off yet what a new leader lacks) is behind by 0.
    ``times``, ``ends``: the leader's readings, newest first.
    """
    each = [earliest_after(it.ms, times, ends) - it.offset for it in readings]
    behind = each[0].or_else(*each[1:])
    return where(is_leader, 0, greatest(behind, 0).where(behind.is_known))
