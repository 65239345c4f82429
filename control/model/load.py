"""Load of each broker, and its evenness.

Distribution is counted from the *assignment* (every replica a broker should hold), not from the
ISR, and its mean is over *all registered brokers*: an empty broker that has just joined is what
makes the others too full.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from control.model.columns import (
    BROKER_BITS,
    BoolColumn,
    FloatColumn,
    IntColumn,
    codes,
    exploded,
    floats,
    ints,
    look_up,
    partition_keys,
)
from control.model.snapshot import ClusterSnapshot
from spark_metrics.window.totals import stands_for_all

MEASURES: Final = ("replicas", "leaders", "size_bytes", "in_bytes_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Every assigned replica as one element of each column (all of one length)."""

    row: IntColumn
    """Row of its partition in ``ClusterSnapshot.partitions``."""
    broker: IntColumn
    is_leader: BoolColumn
    size_bytes: FloatColumn
    """NaN where neither its broker nor its leader told."""
    is_estimated: BoolColumn
    """True where its own broker did not report it, so that its leader's size stands in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLoads:
    """One element per registered broker (in order of ids) in each column."""

    brokers: IntColumn
    replicas: FloatColumn
    leaders: FloatColumn
    size_bytes: FloatColumn
    """NaN where the size of one of its replicas is unknown."""
    known_bytes: FloatColumn
    """Of its replicas whose size is known; NaN where none is."""
    is_estimated: BoolColumn
    in_bytes_per_s: FloatColumn
    out_bytes_per_s: FloatColumn

    def measure(self, name: str) -> FloatColumn:
        column: FloatColumn = getattr(self, name)
        return column

    def skew_percent(self, name: str) -> FloatColumn:
        return skew_percent(self.measure(name))


def skew_percent(values: FloatColumn) -> FloatColumn:
    """``(n - mean) / mean * 100`` for each; NaN where unknown, 0 where nothing is there at all.

    Worked example: three brokers with 60, 60 and 0 replicas have a mean of 40; the skews are
    +50 %, +50 % and -100 %.
    """
    known = values[~np.isnan(values)]
    mean = float(known.mean()) if known.size else 0.0
    if mean == 0.0:
        return np.where(np.isnan(values), np.nan, 0.0)
    skews: FloatColumn = (values - mean) / mean * 100.0
    return skews


def placement(snapshot: ClusterSnapshot) -> Placement:
    """Explode the assignment and look up the size of every replica."""
    row, broker = exploded(snapshot.partitions["replicas"])
    leader = ints(snapshot.partitions["leader"])
    own = _reported_sizes(snapshot, row, broker)
    of_leader = floats(snapshot.partitions["size_bytes"])[row]
    return Placement(
        row=row,
        broker=broker,
        is_leader=leader[row] == broker,
        size_bytes=np.where(np.isnan(own), of_leader, own),
        is_estimated=np.isnan(own) & ~np.isnan(of_leader),
    )


def broker_loads(snapshot: ClusterSnapshot, placed: Placement | None = None) -> BrokerLoads:
    """Sum the placement up by broker. Replicas on unregistered brokers are left out."""
    brokers = np.array(snapshot.broker_ids, dtype=np.int64)
    placed = placed or placement(snapshot)
    index, on_registered = _positions(brokers, placed.broker)
    led = on_registered & placed.is_leader
    rates = {
        name: floats(snapshot.partitions[name])[placed.row]
        for name in ("in_bytes_per_s", "out_bytes_per_s")
    }
    width = len(brokers)
    estimated = on_registered & placed.is_estimated
    known_bytes, has_every_size = _sum(index, placed.size_bytes, on_registered, width)
    return BrokerLoads(
        brokers=brokers,
        replicas=_count(index[on_registered], width),
        leaders=_count(index[led], width),
        size_bytes=np.where(has_every_size, known_bytes, np.nan),
        known_bytes=known_bytes,
        is_estimated=_count(index[estimated], width) > 0,
        in_bytes_per_s=_rates(index, rates["in_bytes_per_s"], led, width),
        out_bytes_per_s=_rates(index, rates["out_bytes_per_s"], led, width),
    )


def sum_of_rates(rates: FloatColumn) -> float | None:
    """The sum over all partitions; None where too few of them are known to stand for all."""
    known = rates[~np.isnan(rates)]
    return float(known.sum()) if stands_for_all(known.size, rates.size) else None


def without_rates(loads: BrokerLoads, brokers: Collection[int]) -> BrokerLoads:
    """The loads without the traffic of these brokers, which is not known."""
    is_unknown = np.isin(loads.brokers, sorted(brokers))
    return replace(
        loads,
        in_bytes_per_s=np.where(is_unknown, np.nan, loads.in_bytes_per_s),
        out_bytes_per_s=np.where(is_unknown, np.nan, loads.out_bytes_per_s),
    )


def _positions(brokers: IntColumn, wanted: IntColumn) -> tuple[IntColumn, BoolColumn]:
    """Index of each wanted id in the sorted ``brokers``, and whether it is there at all."""
    if not brokers.size:
        return np.zeros_like(wanted), np.zeros(len(wanted), dtype=np.bool_)
    index = np.minimum(np.searchsorted(brokers, wanted), len(brokers) - 1)
    return index, brokers[index] == wanted


def _count(index: IntColumn, width: int) -> FloatColumn:
    return np.bincount(index, minlength=width).astype(np.float64)


def _rates(index: IntColumn, rates: FloatColumn, mask: BoolColumn, width: int) -> FloatColumn:
    """Sums of rates by index; NaN where too few of them are known to stand for all."""
    known = mask & ~np.isnan(rates)
    total = np.bincount(index[known], weights=rates[known], minlength=width)
    told, parts = _count(index[known], width), _count(index[mask], width)
    return np.where(stands_for_all(told, parts), total, np.nan)


def _sum(
    index: IntColumn, values: FloatColumn, mask: BoolColumn, width: int
) -> tuple[FloatColumn, BoolColumn]:
    """Sum by index over what is known (NaN where there is something and none of it is), and whether
    all of it is."""
    known = mask & ~np.isnan(values)
    total = np.bincount(index[known], weights=values[known], minlength=width)
    told, parts = _count(index[known], width), _count(index[mask], width)
    return np.where((parts > 0) & (told == 0), np.nan, total), told == parts


def _reported_sizes(snapshot: ClusterSnapshot, row: IntColumn, broker: IntColumn) -> FloatColumn:
    """The size that each replica's own broker reported, NaN where it did not."""
    reported = snapshot.replicas
    wanted, present = partition_keys(snapshot.partitions, reported)
    wanted_broker, present_broker = codes(pa.chunked_array([broker]), reported["broker"])
    place = look_up(
        (wanted[row] << BROKER_BITS) + wanted_broker, (present << BROKER_BITS) + present_broker
    )
    sizes = np.append(floats(reported["size_bytes"]), np.nan)
    return sizes[place]
