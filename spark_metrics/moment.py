"""The tables of "now" as of a past time, from the newest points of history before it.

What history does not keep is null: sizes of segments, members, what followers say of themselves.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.points import ALL_BROKERS
from spark_metrics.store.files import conform
from spark_metrics.tables import NOW_TABLES

_IDS: Final = pa.list_(pa.int32())


def now_tables_of(newest: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Tables as in ``NOW_TABLES``; ``newest`` has one row per key of each table of history."""
    partitions = _partitions(newest["partition_history"])
    brokers = newest["broker_history"]
    made: dict[str, Any] = {
        "partitions": partitions,
        "replicas": _replicas(partitions),
        "commits": _read(newest["commit_history"], "end_read_ms"),
        "groups": _read(newest["group_history"]),
        "brokers": _read(brokers.filter(pc.not_equal(brokers["broker"], ALL_BROKERS))),
        "health": _health(newest["job_history"]),
    }
    return {name: conform(table, NOW_TABLES[name]) for name, table in made.items()}


def _read(points: pa.Table, *further: str) -> pa.Table:
    """Its time is when it was read."""
    for name in ("read_ms", *further):
        points = points.append_column(name, points["at_ms"])
    return points


def _partitions(points: pa.Table) -> pa.Table:
    table = _read(points)
    for name in ("replicas", "isr"):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, _ids(table[name]))
    nobody = pa.array([[]] * table.num_rows, _IDS)
    for name in ("adding_replicas", "removing_replicas"):
        table = table.append_column(name, nobody)
    return table


def _ids(texts: pa.ChunkedArray) -> pa.Array:
    """``101 102`` as a list of numbers; few assignments are told by many partitions."""
    encoded = texts.combine_chunks().dictionary_encode()
    known = [[int(it) for it in text.split()] for text in encoded.dictionary.to_pylist()]
    return pa.array(known, _IDS).take(encoded.indices)


def _replicas(partitions: pa.Table) -> pa.Table:
    """One row per assigned replica."""
    assigned, in_sync = (partitions[name].combine_chunks() for name in ("replicas", "isr"))
    owner = pc.list_parent_indices(assigned)
    rows = partitions.select(["cluster", "topic", "partition", "leader", "read_ms"]).take(owner)
    rows = rows.append_column("broker", assigned.flatten())
    is_in_sync = np.isin(
        _places(owner, assigned), _places(pc.list_parent_indices(in_sync), in_sync)
    )
    return rows.append_column("is_leader", pc.equal(rows["leader"], rows["broker"])).append_column(
        "is_in_sync", pa.array(is_in_sync)
    )


def _places(owner: pa.Array, brokers: pa.Array) -> Any:
    """One number per partition and broker."""
    return (owner.to_numpy().astype(np.int64) << 32) + brokers.flatten().to_numpy()


def _health(points: pa.Table) -> pa.Table:
    table = points.append_column("written_ms", points["at_ms"])
    for name in ("batch_ms", "records", "delay_ms"):
        whole = pc.cast(pc.round(table[name]), pa.int64())
        table = table.set_column(table.schema.get_field_index(name), name, whole)
    return table.append_column("bad_records", pa.array([0] * table.num_rows, pa.int64()))
