"""Replicas of partitions: as they were, and their rows of this batch. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from spark_metrics.arrow_tables import lists_of
from spark_metrics.figures.column import Column, column, first_of, greatest, where
from spark_metrics.figures.lists import Lists
from spark_metrics.fold.known_brokers import KnownBrokers
from spark_metrics.schema import MEMBER

_IDS: Final = 1 << 33
"""More than there are ids of brokers, those below 0 included."""
_TOLD: Final = ("log_end_offset", "size_bytes", "segments")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Replicas:
    """One after the other, by partition and broker."""

    partition: Any
    """The row of each replica's partition."""
    columns: Mapping[str, Column]
    """``schema.MEMBER``, and ``is_full``, ``is_same``, ``is_fresh``: as of this batch's row."""
    count: int
    """The number of partitions."""

    @property
    def counts(self) -> Any:
        """How many each partition has."""
        return np.bincount(self.partition, minlength=self.count)

    def of(self, brokers: Column) -> Column:
        """The place of this broker's replica of each partition; unknown where there is none."""
        return self.places(np.arange(self.count), brokers)

    def places(self, partitions: Any, brokers: Column) -> Column:
        """The same for some partitions."""
        return _places(_keys(partitions, brokers), self._keys, brokers.is_known.numpy())

    def any_of(self, condition: Column) -> Column:
        """Whether the condition holds of any replica of each partition."""
        return has_any(self.partition, condition, self.count)

    def lists(self, items: Any) -> Any:
        """A value for each replica as a list for each partition."""
        return lists_of(items, self.counts)

    def members(self) -> Any:
        """The list of each partition's replicas (``schema.MEMBER``), as the state keeps it."""
        kind = pa.struct(MEMBER)
        fields = [self.columns[it.name].values.cast(it.type) for it in kind]
        return self.lists(pa.StructArray.from_arrays(fields, fields=list(kind)))

    @property
    def _keys(self) -> Any:
        return _keys(self.partition, self.columns["broker"])


def has_any(partition: Any, condition: Column, count: int) -> Column:
    """Whether the condition is known to hold of any item of each partition."""
    holds = np.zeros(count, bool)
    holds[partition[condition.is_sure.numpy()]] = True
    return column(holds)


def partition_of(lists: Lists) -> Any:
    """The row of the list that each item is in."""
    return np.repeat(np.arange(len(lists.counts)), lists.counts)


def met_replicas(before: Lists, rows: Lists, known_brokers: KnownBrokers) -> Replicas:
    """Every replica that is known, and was not left out by its broker's newest complete round."""
    keys, held, brought = _beside(before, rows)
    full_ms, again_ms = brought["full_ms"], brought["again_ms"]
    is_full = (full_ms >= held["read_ms"].or_else(0)).is_sure
    is_new = is_full & (held["read_ms"].is_unknown | (full_ms > held["read_ms"]))
    is_same = (
        (where(is_full, full_ms, held["full_ms"]) >= brought["since_ms"])
        & (again_ms > where(is_full, full_ms, held["read_ms"]))
    ).is_sure
    is_fresh = is_new | is_same

    def newest(name: str) -> Column:
        return where(is_full, brought[name], held[name])

    def pushed(two: Column, one: Column, none: Column) -> Column:
        return first_of((is_new & is_same, two), (is_fresh, one), otherwise=none)

    partition, ids = np.divmod(keys + _IDS // 2, _IDS)
    columns = {
        "broker": column((ids - _IDS // 2).astype(np.int32)),
        "full_ms": newest("full_ms"),
        "round_ms": greatest(
            newest("round_ms"),
            brought["again_round_ms"],
            held["round_ms"].where(is_full & ~is_new),
        ),
        **{name: newest(name) for name in _TOLD},
        "read_ms": where(is_same, again_ms, where(is_full, full_ms, held["read_ms"])),
        "before_ms": pushed(full_ms, held["read_ms"], held["before_ms"]),
        "before_end": pushed(brought["log_end_offset"], held["log_end_offset"], held["before_end"]),
        "oldest_ms": pushed(held["read_ms"], held["before_ms"], held["oldest_ms"]),
        "oldest_end": pushed(held["log_end_offset"], held["before_end"], held["oldest_end"]),
        "is_full": is_full,
        "is_same": is_same,
        "is_fresh": is_fresh,
    }
    complete_ms = known_brokers.of("complete_ms", columns["broker"], partition)
    stays = (columns["round_ms"] >= complete_ms.or_else(0)) & columns["full_ms"].is_known
    kept = stays.is_sure.numpy()
    if not kept.all():
        columns = {name: Column(it.values.filter(pa.array(kept))) for name, it in columns.items()}
    return Replicas(partition=partition[kept], columns=columns, count=len(before.counts))


def _beside(before: Lists, rows: Lists) -> tuple[Any, dict[str, Column], dict[str, Column]]:
    """Keys of all replicas, and their fields as they were and as they are told."""
    sides = [(lists.packed(), partition_of(lists)) for lists in (before, rows)]
    each = [_keys(of, Column(items.field("broker"))) for items, of in sides]
    same = len(each[0]) == len(each[1]) and bool((each[0] == each[1]).all())
    keys = each[0] if same else np.union1d(*each)
    fields: list[dict[str, Column]] = []
    for (items, _), has in zip(sides, each, strict=True):
        places = _places(keys, has, np.ones(len(keys), bool))
        columns = {it.name: Column(items.field(it.name)) for it in items.type}
        fields.append(columns if same else {name: it.take(places) for name, it in columns.items()})
    return keys, fields[0], fields[1]


def _keys(partition: Any, brokers: Column) -> Any:
    return np.asarray(partition, np.int64) * _IDS + brokers.or_else(0).numpy()


def _places(wanted: Any, has: Any, is_known: Any) -> Column:
    """Where each wanted key is among these, which are in order."""
    places = np.searchsorted(has, wanted)
    found = np.append(has, -_IDS)[places] == wanted
    return column(pa.array(places, mask=~(found & is_known)))
