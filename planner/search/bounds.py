"""Between what every balanced broker should stay: around its share (search.shares)."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.columns import Flags, Floats, Numbers
from planner.goals import Tolerance, whole_bounds
from planner.search.placement import Placement
from planner.search.shares import SHARE_DIGITS, rack_shares

_ANY: Final = 2**62
"""Replicas: more than any broker has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """One element a broker; `unit` is the bytes of a mean replica."""

    count_min: Floats
    count_max: Floats
    bytes_max: Floats
    bytes_loosest: Floats
    """What they may hold while another has to hold as much."""
    alike: Numbers
    """Who has the same share: the number of each broker's group."""
    unit: float

    def beside(self, placement: Placement) -> "Bounds":
        """Where a broker could not be brought within its numbers or bytes, these bounds for the
        others: being evener moves bytes that change nothing for the fullest and the emptiest. Who
        has the same share may hold as many bytes, whatever these are."""
        target, count = placement.is_target, placement.count
        held = np.where(target, placement.bytes, 0.0)
        lacking, crowded = target & (count < self.count_min), target & (count > self.count_max)
        fewest, most = count[lacking].min(initial=_ANY), count[crowded].max(initial=0)
        bytes_max = self.bytes_max
        if (held > bytes_max).any():
            loose = np.minimum(self.bytes_loosest, held.max(initial=0.0))
            fullest = np.zeros(int(self.alike.max(initial=0)) + 1)
            np.maximum.at(fullest, self.alike[target], held[target])
            forced = np.where(fullest[self.alike] > bytes_max, fullest[self.alike], 0.0)
            bytes_max = np.maximum(bytes_max, np.maximum(loose, forced))
            if placement.capacity is not None:
                disks = np.maximum(placement.capacity, self.bytes_max)
                bytes_max = np.minimum(bytes_max, disks)
        return replace(
            self,
            count_min=np.minimum(self.count_min, fewest),
            count_max=np.where(target, np.maximum(self.count_max, most), self.count_max),
            bytes_max=bytes_max,
        )

    def no_worse(self, placement: Placement) -> "Bounds":
        """Bounds that also allow what the fullest and the emptiest have already."""
        target = placement.is_target
        count, held = placement.count[target], placement.bytes[target]
        return replace(
            self,
            count_min=np.minimum(self.count_min, count.min(initial=count.max(initial=0))),
            count_max=np.maximum(self.count_max, count.max(initial=0)),
            bytes_max=np.maximum(self.bytes_max, held.max(initial=0)),
        )

    def is_settled(self, placement: Placement) -> bool:
        """Whether every balanced broker is within."""
        inside = (
            (placement.count <= self.count_max)
            & (placement.count >= self.count_min)
            & (placement.bytes <= self.bytes_max)
        )
        return bool(inside[placement.is_target].all())


def bounds_of(placement: Placement, tolerance: Tolerance) -> Bounds:
    """Bounds around what each broker that may receive replicas should have."""
    brokers = placement.brokers
    count_mean, bytes_mean = fair_shares(placement)
    unit = max(1.0, float(placement.bytes.sum()) / max(1, int(placement.count.sum())))
    count_min, count_max = np.zeros(brokers), np.full(brokers, np.inf)
    bytes_max = np.full(brokers, np.inf)
    loosest = bytes_mean * (1 + tolerance.beside)
    if tolerance.replicas is not None:
        count_min, count_max = _beside_others(
            _not_worse(placement, whole_bounds(count_mean, tolerance.replicas), count_mean),
            count_mean / (1 + tolerance.beside),
            count_mean * (1 + tolerance.beside),
            placement.is_target,
        )
    if tolerance.bytes is not None:
        bytes_max = bytes_mean * (1 + tolerance.bytes)
        bytes_max = np.maximum(bytes_max, np.minimum(loosest, bytes_max.max(initial=0.0)))
    if placement.capacity is not None:
        bytes_max = np.minimum(bytes_max, placement.capacity)
        loosest = np.minimum(loosest, placement.capacity)
    return Bounds(
        count_min=count_min,
        count_max=count_max,
        bytes_max=bytes_max,
        bytes_loosest=loosest,
        alike=np.unique(np.round(count_mean, SHARE_DIGITS), return_inverse=True)[1],
        unit=unit,
    )


def _not_worse(
    placement: Placement, bounds: tuple[Floats, Floats], mean: Floats
) -> tuple[Floats, Floats]:
    """A tolerance allows nobody more, or fewer, than somebody had before, where as many brokers
    hold as many replicas."""
    count_min, count_max = bounds
    target = placement.is_target
    is_other = placement.request.replication_factor is not None or placement.is_removed.any()
    if is_other or not target.any():
        return bounds
    before = placement.columns.count()[target]
    return (
        np.maximum(count_min, np.minimum(np.floor(mean), before.min())),
        np.minimum(count_max, np.maximum(np.ceil(mean), before.max())),
    )


def _beside_others(
    bounds: tuple[Floats, Floats], least: Floats, most: Floats, target: Flags
) -> tuple[Floats, Floats]:
    """Where some are forced to hold more, or fewer, than others: looser for those others, down to
    `least` and up to `most`."""
    count_min, count_max = bounds
    fewest, forced = count_min[target].min(initial=_ANY), count_max[target].max(initial=0.0)
    least, most = np.maximum(np.ceil(least), fewest), np.minimum(np.floor(most), forced)
    return np.minimum(count_min, least), np.where(target, np.maximum(count_max, most), count_max)


def relief_bounds(placement: Placement, relieved: list[int]) -> Bounds:
    """Only the relieved brokers must shrink, to the mean; nobody else grows above it."""
    _, bytes_mean = fair_shares(placement)
    bytes_max = np.maximum(bytes_mean, placement.bytes)
    bytes_max[relieved] = bytes_mean[relieved]
    unit = max(1.0, float(placement.bytes.sum()) / max(1, int(placement.count.sum())))
    return Bounds(
        count_min=np.zeros(placement.brokers),
        count_max=np.full(placement.brokers, np.inf),
        bytes_max=bytes_max,
        bytes_loosest=bytes_max,
        alike=np.arange(placement.brokers),
        unit=unit,
    )


def fair_shares(placement: Placement) -> tuple[Floats, Floats]:
    """(replicas, bytes) that each target broker should have; 0 for the others. Moves among brokers
    that stay, or are removed, leave them as they are."""
    staying = placement.is_target | placement.is_removed
    totals = int(placement.count[staying].sum()), int(placement.bytes[staying].sum())
    if totals not in placement.shares:
        size = placement.columns.size.astype(np.float64)
        placement.shares[totals] = (
            _share_out(placement, float(totals[0]), weights=None),
            _share_out(placement, float(totals[1]), weights=size),
        )
    return placement.shares[totals]


def _share_out(placement: Placement, total: float, weights: Floats | None) -> Floats:
    target = placement.is_target
    racks = placement.racks
    rack = np.minimum(np.array(placement.rack), racks)
    if racks == 1 or not target.any():
        even = total / max(1, int(target.sum()))
        return np.where(target, even, 0.0)
    width = np.array([len(replicas) for replicas in placement.replicas], dtype=np.int64)
    weight = np.ones(len(width)) if weights is None else weights
    kept = np.array(placement.rack_brokers)
    receiving = np.bincount(rack[target], minlength=racks + 1)[:racks]
    known = placement.known_racks
    share = rack_shares(total, width, weight, kept, receiving, known=known)
    return np.where(target, np.append(share, 0.0)[rack], 0.0)
