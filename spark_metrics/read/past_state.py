"""The tables of "now" as of a past time, from the newest points of history before it.

What history does not keep is null: sizes of segments, members, what followers say of themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.arrow_tables import conform, with_column
from spark_metrics.history.sql import MOMENT, HistoryRange, last_told, newest
from spark_metrics.read.file_selection import files_at, ranges_at
from spark_metrics.read.open_store import OpenedStore
from spark_metrics.store.layout import Manifest
from spark_metrics.window.history_points import ALL_BROKERS, BROKER_HISTORY, SHAPES
from spark_metrics.window.tables import NOW_TABLES

GAP_MS_MAX: Final = 3_600_000
"""Where nothing was measured for so long, a moment has no state."""
_TELLING: Final = ("broker_history", "partition_history")
"""Tables of which at least one has points at each moment that anything is known of."""
_IDS: Final = pa.list_(pa.int32())


def newest_points(
    opened: OpenedStore, cluster: str, moments: Sequence[int]
) -> list[tuple[dict[str, pa.Table], int | None] | None]:
    """The newest point of each key of each table, for each moment; None: nothing is kept.

    In a gap it is the state at its beginning; then the second value is when it was told. All
    moments, in order, are one question to each table.
    """
    found = _newest_of_all(opened, cluster, moments)
    return [
        (each, None)
        if any(each[table].num_rows for table in _TELLING)
        else _before_gap(opened, cluster, at_ms)
        for at_ms, each in zip(moments, found, strict=True)
    ]


def _before_gap(
    opened: OpenedStore, cluster: str, at_ms: int
) -> tuple[dict[str, pa.Table], int | None] | None:
    gap_ms = _told_before(opened, cluster, at_ms)
    return None if gap_ms is None else (_newest_of_all(opened, cluster, [gap_ms])[0], gap_ms)


def _newest_of_all(
    opened: OpenedStore, cluster: str, moments: Sequence[int]
) -> list[dict[str, pa.Table]]:
    keys: Mapping[str, object] = {"cluster": cluster}
    tables = {
        table: _newest(opened, table, {} if table == "job_history" else keys, moments)
        for table in SHAPES
    }
    return [{table: rows[place] for table, rows in tables.items()} for place in range(len(moments))]


def _told_before(opened: OpenedStore, cluster: str, at_ms: int) -> int | None:
    """When anything was told of the cluster last, in the hour before this time; None: never."""
    span = HistoryRange(since_ms=at_ms - GAP_MS_MAX, until_ms=at_ms, points_max=1)

    def read(manifest: Manifest) -> pa.Table:
        paths = files_at(manifest.history.get("broker_history", ()), span)
        return opened.run(last_told(cluster, span), paths, BROKER_HISTORY)

    found = opened.again(read)
    return None if found is None else found["at_ms"][0].as_py()


def _newest(
    opened: OpenedStore, table: str, keys: Mapping[str, object], moments: Sequence[int]
) -> list[pa.Table]:
    shape = SHAPES[table]
    schema = pa.schema([pa.field(MOMENT, pa.int64()), *shape.schema])

    def read(manifest: Manifest) -> pa.Table:
        files = manifest.history.get(table, ())
        return pa.concat_tables(
            [schema.empty_table()]
            + [
                opened.run(newest(shape, keys, spans), paths, shape.schema)
                for spans, paths in ranges_at(files, moments, manifest.interval_ms)
            ]
        )

    return _by_moment(opened.table(read, schema), moments)


def _by_moment(rows: pa.Table, moments: Sequence[int]) -> list[pa.Table]:
    times, rows = rows[MOMENT].to_numpy(), rows.drop_columns([MOMENT])
    begins, ends = (np.searchsorted(times, moments, side=side) for side in ("left", "right"))
    return [rows.slice(at, until - at) for at, until in zip(begins, ends, strict=True)]


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
    """Add the time of each point as the time of reading."""
    for name in ("read_ms", *further):
        points = points.append_column(name, points["at_ms"])
    return points


def _partitions(points: pa.Table) -> pa.Table:
    table = _read(points)
    for name in ("replicas", "isr"):
        table = with_column(table, name, _ids(table[name]))
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
        table = with_column(table, name, whole)
    return table.append_column("bad_records", pa.array([0] * table.num_rows, pa.int64()))
