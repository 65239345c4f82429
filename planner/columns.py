"""A topology in columns: what the planner computes with. Brokers are numbered as listed."""

from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.topology import Topology

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_LOWER: Final = 2**26


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
    bytes_in: Numbers
    """Bytes per second that clients write to each partition's leader."""
    bytes_out: Numbers
    """Bytes per second that clients read from it."""

    def count(self) -> Numbers:
        """Replicas per broker."""
        return np.bincount(self.on, minlength=self.brokers)

    def leaders(self) -> Numbers:
        """Preferred leaders per broker."""
        return np.bincount(self.on[self.first], minlength=self.brokers)

    def held(self) -> Numbers:
        """Bytes per broker, exact."""
        return self._summed(self.size)

    @property
    def has_traffic(self) -> bool:
        """Whether rates are known."""
        return bool(self.bytes_in.any() or self.bytes_out.any())

    def traffic_in(self) -> Numbers:
        """Bytes per second that each broker receives: leader and followers alike."""
        return self._summed(self.bytes_in)

    def leader_out(self) -> Numbers:
        """Bytes per second that a partition's leader sends: to clients, and to each follower."""
        return self.bytes_out + self.bytes_in * (self.width - 1)

    def traffic_out(self) -> Numbers:
        """Bytes per second that each broker sends as a leader."""
        sent = np.bincount(self.on[self.first], weights=self.leader_out(), minlength=self.brokers)
        return sent.astype(np.int64)

    def _summed(self, of_partition: Numbers) -> Numbers:
        """Exact up to TOTAL_MAX: floats hold the sums of the upper bits, and those of the lower."""
        lower = of_partition & (_LOWER - 1)
        upper, rest = (
            np.bincount(self.on, weights=part[self.of], minlength=self.brokers).astype(np.int64)
            for part in (of_partition // _LOWER, lower)
        )
        return np.asarray(upper * _LOWER + rest)


def columns_of(topology: Topology) -> Columns:
    """The topology's columns."""
    number_of = {id_: b for b, id_ in enumerate(topology.broker_ids)}
    partitions = topology.partitions
    width = np.fromiter((len(p.replicas) for p in partitions), np.int64, len(partitions))
    flat = chain.from_iterable(p.replicas for p in partitions)
    number = len(partitions)
    return Columns(
        brokers=len(number_of),
        size=np.fromiter((p.size_bytes for p in partitions), np.int64, number),
        bytes_in=np.fromiter((p.in_bytes_per_s for p in partitions), np.int64, number),
        bytes_out=np.fromiter((p.out_bytes_per_s for p in partitions), np.int64, number),
        width=width,
        first=np.concatenate((np.zeros(1, np.int64), np.cumsum(width)[:-1]))
        if len(partitions)
        else np.zeros(0, np.int64),
        of=np.repeat(np.arange(len(partitions)), width),
        on=np.fromiter((number_of[id_] for id_ in flat), np.int64, int(width.sum())),
    )


def rack_numbers(topology: Topology, removed: Flags) -> tuple[Numbers, int]:
    """(rack number per broker, number of racks of brokers that stay), for proofs. Without a rack on
    every broker that stays there is one rack, since any broker may be on any; one that only removed
    brokers have is numbered last."""
    kept = [b for b, gone in zip(topology.brokers, removed, strict=True) if not gone]
    if any(broker.rack is None for broker in kept):
        return np.zeros(len(removed), dtype=np.int64), 1
    names = sorted({broker.rack or "" for broker in kept})
    number = {name: i for i, name in enumerate(names)}
    racks = [number.get(broker.rack or "", len(names)) for broker in topology.brokers]
    return np.array(racks, dtype=np.int64), len(names)


def capacities(topology: Topology) -> Floats | None:
    """Bytes that each broker may hold, infinite where unknown; None where all are."""
    if all(broker.capacity_bytes is None for broker in topology.brokers):
        return None
    return np.array(
        [np.inf if b.capacity_bytes is None else float(b.capacity_bytes) for b in topology.brokers]
    )


def topic_numbers(topology: Topology) -> Numbers:
    """The number of each partition's topic; topics are numbered by name."""
    names = sorted({partition.topic for partition in topology.partitions})
    number = {name: t for t, name in enumerate(names)}
    partitions = topology.partitions
    return np.fromiter((number[p.topic] for p in partitions), np.int64, len(partitions))


def sampled(columns: Columns, every: int) -> tuple[Columns, Numbers]:
    """(each so manieth partition in order of size, which these are)."""
    chosen = np.sort(np.argsort(columns.size, kind="stable")[every // 2 :: every])
    row = np.full(len(columns.size), -1)
    row[chosen] = np.arange(len(chosen))
    kept = row[columns.of] >= 0
    width = columns.width[chosen]
    few = replace(
        columns,
        size=columns.size[chosen],
        width=width,
        first=np.cumsum(width) - width,
        of=row[columns.of[kept]],
        on=columns.on[kept],
        bytes_in=columns.bytes_in[chosen],
        bytes_out=columns.bytes_out[chosen],
    )
    return few, chosen
