"""A topology in columns: what the planner computes with. Brokers are numbered as listed."""

from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from control.planner.topology import Topology

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """One element a partition (`size`, `width`, `first`) or a replica (`of`, `on`), in order."""

    brokers: int
    size: Numbers
    width: Numbers
    """Replicas of each partition."""
    first: Numbers
    """Where a partition's replicas begin in `of` and `on`: its preferred leader."""
    of: Numbers
    """The partition of each replica."""
    on: Numbers
    """The broker number of each replica."""

    def count(self) -> Numbers:
        """Replicas per broker."""
        return np.bincount(self.on, minlength=self.brokers)

    def leaders(self) -> Numbers:
        """Preferred leaders per broker."""
        return np.bincount(self.on[self.first], minlength=self.brokers)

    def held(self) -> Numbers:
        """Bytes per broker, exact."""
        held = np.zeros(self.brokers, dtype=np.int64)
        order = np.argsort(self.on, kind="stable")
        brokers, starts = np.unique(self.on[order], return_index=True)
        if len(brokers):
            held[brokers] = np.add.reduceat(self.size[self.of[order]], starts)
        return held


def columns_of(topology: Topology) -> Columns:
    """The topology's columns."""
    number_of = {id_: b for b, id_ in enumerate(topology.broker_ids)}
    partitions = topology.partitions
    width = np.fromiter((len(p.replicas) for p in partitions), np.int64, len(partitions))
    flat = chain.from_iterable(p.replicas for p in partitions)
    return Columns(
        brokers=len(number_of),
        size=np.fromiter((p.size_bytes for p in partitions), np.int64, len(partitions)),
        width=width,
        first=np.concatenate((np.zeros(1, np.int64), np.cumsum(width)[:-1]))
        if len(partitions)
        else np.zeros(0, np.int64),
        of=np.repeat(np.arange(len(partitions)), width),
        on=np.fromiter((number_of[id_] for id_ in flat), np.int64, int(width.sum())),
    )


def rack_numbers(topology: Topology, removed: Flags) -> tuple[Numbers, int]:
    """(rack number per broker, number of racks of brokers that stay). Without a rack on every
    broker that stays there is one rack; one that only removed brokers have is numbered last."""
    kept = [b for b, gone in zip(topology.brokers, removed, strict=True) if not gone]
    if any(broker.rack is None for broker in kept):
        return np.zeros(len(removed), dtype=np.int64), 1
    names = sorted({broker.rack or "" for broker in kept})
    number = {name: i for i, name in enumerate(names)}
    racks = [number.get(broker.rack or "", len(names)) for broker in topology.brokers]
    return np.array(racks, dtype=np.int64), len(names)
