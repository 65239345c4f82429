"""Unrest of a placement: how far it is from what its goal asks, in numbers, the most urgent first.

A plan is worth running only where it lowers them. Whoever applies it and plans again starts from
where it ended, so the search goes on from there until it lowers them no more: then the next plan is
empty, and no two plans undo each other for ever.

Where one broker cannot be brought within its bounds, others may be as far outside
(`Bounds.beside`), so numbers and bytes count by the extremes.

Worked example: six brokers hold 14, 12, 10, 10, 10 and 10 replicas, and the first keeps all of its
own. If the second gave one away, the most would still be 14 and the fewest 10: the plan is empty.
"""

from typing import Final

import numpy as np

from planner.goals import Goal, Tolerance
from planner.search.bounds import Bounds
from planner.search.leaders import leader_bounds
from planner.search.placement import Placement, columns_now, most_per_rack
from planner.search.topic_leaders import uneven_topic_leaders
from planner.search.topic_spread import counts_for
from planner.search.traffic import overload

Unrest = tuple[float, ...]
"""All 0 where nothing is left to do. Less of the first number is worth more of the others."""

_DIGITS: Final = 6


def unrest_of(placement: Placement, tolerance: Tolerance, bounds: Bounds) -> Unrest:
    """Replicas that must go or come, bytes beyond disks, racks, topics, numbers and bytes, traffic,
    leaders, as far as the tolerance asks for them."""
    if placement.request.goal is Goal.LEADERS:
        return (_leaders(placement, tolerance),)
    data, (arriving, leaving) = _data(placement, bounds), _traffic(placement, tolerance)
    calm = arriving + leaving if tolerance.puts_traffic_first else 0.0
    figures = (
        _wrong_replicas(placement),
        _beyond_disks(placement),
        _crowded(placement),
        _uneven_topics(placement, tolerance),
        calm,
        *data,
        arriving,
        _uneven_topic_leaders(placement, tolerance),
        _leaders(placement, tolerance),
        leaving,
    )
    return tuple(round(float(figure), _DIGITS) for figure in figures)


def _wrong_replicas(placement: Placement) -> int:
    """Replicas on removed brokers, too many or too few, of partitions that may move."""
    staying = sum(len(placement.by_size[b]) for b in np.flatnonzero(placement.is_removed))
    factor = placement.request.replication_factor
    if factor is None:
        return staying
    movable = np.flatnonzero(placement.is_movable).tolist()
    return staying + sum(abs(len(placement.replicas[p]) - factor) for p in movable)


def _beyond_disks(placement: Placement) -> float:
    if placement.capacity is None:
        return 0.0
    return float(np.maximum(placement.bytes - placement.capacity, 0.0).sum())


def _crowded(placement: Placement) -> int:
    """Racks that movable partitions lack."""
    known = placement.known_racks
    if known == 1:
        return 0
    on_rack = placement.on_rack[placement.is_movable]
    width = on_rack.sum(axis=1)
    used = (on_rack[:, : placement.racks] > 0).sum(axis=1)
    lacking = int(np.maximum(np.minimum(width, known) - used, 0).sum())
    for wide in np.unique(width[width > known]).tolist():
        limit = most_per_rack(wide, placement.rack_brokers[:known])
        of_it = on_rack[width == wide, : placement.racks]
        lacking += int(np.maximum(of_it - limit, 0).sum())
    return lacking


def _uneven_topics(placement: Placement, tolerance: Tolerance) -> int:
    if not tolerance.spreads_topics:
        return 0
    return counts_for(placement.topology, placement.request, columns_now(placement)).distance()


def _data(placement: Placement, bounds: Bounds) -> tuple[float, float]:
    """(most and fewest replicas and most bytes on a broker outside of its bounds, in replicas; how
    much fuller others are than these allow)."""
    target = placement.is_target
    if not target.any():
        return 0.0, 0.0
    count, held = placement.count[target], placement.bytes[target]
    fewest, most = bounds.count_min[target], bounds.count_max[target]
    bytes_max, alike = bounds.bytes_max[target], bounds.alike[target]
    crowded, lacking, is_full = count > most, count < fewest, held > bytes_max
    extremes = float((count[crowded].max() - most.min()) if crowded.any() else 0.0)
    extremes += float((fewest.max() - count[lacking].min()) if lacking.any() else 0.0)
    if not is_full.any():
        return extremes, 0.0
    extremes += float(held[is_full].max() - bytes_max.min()) / bounds.unit
    loose = np.minimum(bounds.bytes_loosest[target], held.max())
    beyond = np.maximum(held - np.maximum(bytes_max, loose), 0.0)
    fullest = np.zeros(int(alike.max()) + 1)
    np.maximum.at(fullest, alike, beyond)
    return extremes, float(fullest.sum()) / bounds.unit


def _traffic(placement: Placement, tolerance: Tolerance) -> tuple[float, float]:
    if tolerance.traffic is None or not placement.columns.has_traffic:
        return 0.0, 0.0
    return overload(placement, tolerance.traffic)


def _leaders(placement: Placement, tolerance: Tolerance) -> float:
    if tolerance.leaders is None:
        return 0.0
    low, high = leader_bounds(placement, tolerance)
    leaders = placement.leaders[placement.is_target]
    return float((np.maximum(leaders - high, 0) + np.maximum(low - leaders, 0)).sum())


def _uneven_topic_leaders(placement: Placement, tolerance: Tolerance) -> int:
    return uneven_topic_leaders(placement) if tolerance.spreads_topics else 0
