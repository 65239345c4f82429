"""How fast a commit moves and its lag grows, from anchors: readings of half a window ago. Pure.

Two anchors stand for a list of readings: the older one is the base of the figures, the newer one
becomes it once it is half a window old.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from spark_metrics.figures.column import Column, first_of, greatest, least, where

SPEED_WINDOW_MS: Final = 15_000
"""Long enough to hold three of the default auto-commits (5 s)."""
TREND_WINDOW_MS: Final = 60_000
DEAD_BAND_RECORDS_PER_S: Final = 1.0
"""Lag that changes slower than this is steady."""

GROWTH_WINDOW_MS: Final = 900_000
"""Long enough for traffic in bursts some minutes apart."""
GROWTH_SPAN_MS: Final = 300_000
"""A group is watched for so long before its moves tell how its lag grows."""

Anchor = Mapping[str, Column]
"""A reading's ``ms``, and some of its ``offset`` and ``lag``."""


class Anchors(NamedTuple):
    """The anchors after a reading."""

    older: Anchor
    newer: Anchor
    base: Anchor
    """What figures of this reading are taken from; unknown for the first one."""


def roll(
    older: Anchor,
    newer: Anchor,
    now: Anchor,
    *,
    window_ms: int,
    is_fresh: Column,
    is_back: Column,
    lag: Column,
) -> Anchors:
    """``now``: the reading; ``is_fresh``: it is a new one. A group that went back begins anew."""
    is_first = older["ms"].is_unknown | is_back
    begins = is_fresh & lag.is_known & is_first
    rolls = is_fresh & (now["ms"] - newer["ms"] >= window_ms // 2).is_sure
    is_near = (now["ms"] - older["ms"] <= window_ms) | (now["ms"] <= newer["ms"])
    return Anchors(
        older={
            it: first_of((begins, now[it]), (rolls, newer[it]), otherwise=older[it]).where(
                lag.is_known
            )
            for it in older
        },
        newer={it: where(begins | rolls, now[it], newer[it]) for it in newer},
        base={it: where(is_near, older[it], newer[it]).where(~is_first) for it in older},
    )


def per_s(now: Column, base: Column, *, now_ms: Column, base_ms: Column) -> Column:
    """Change per second between two readings."""
    return (now - base) / (now_ms - base_ms) * 1_000.0


def consumed(now: Column, base: Column, *, now_ms: Column, base_ms: Column) -> Column:
    """Records per second by which the committed offset moves on."""
    return per_s(now, base, now_ms=now_ms, base_ms=base_ms).where(now >= base)


def time_to_clear(lag: Column, lag_per_s: Column) -> Column:
    """Milliseconds until the lag is gone; unknown at a speed at which it never is."""
    shrinks = lag_per_s < -DEAD_BAND_RECORDS_PER_S
    return first_of((lag.equals(0), 0), (shrinks, (lag / -lag_per_s * 1_000.0).whole()))


class Growth(NamedTuple):
    """How lag changes from move to move: what rises only until the next commit does not count."""

    lag: Column
    """When the commit last moved."""
    per_s: Column
    """The mean of some minutes; unknown until it has moved twice."""


def grown(
    before: Growth,
    *,
    lag: Column,
    read_ms: Column,
    moved_ms: Column,
    first_ms: Column,
    is_on: Column,
    is_back: Column,
) -> Growth:
    """Growth after a reading; ``moved_ms``: of the move before. A group that went back begins
    anew."""
    per_s_now = per_s(lag, before.lag, now_ms=read_ms, base_ms=moved_ms)
    window_ms = least(greatest(read_ms - first_ms, 1), GROWTH_WINDOW_MS)
    weight = least((read_ms - moved_ms) / window_ms, 1.0)
    mean = (before.per_s + (per_s_now - before.per_s) * weight).or_else(per_s_now)
    return Growth(
        lag=where(is_on | is_back, lag, before.lag),
        per_s=where(is_on, mean, before.per_s).where(~is_back),
    )
