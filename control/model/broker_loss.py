"""Loss of brokers: the same cluster with its leaders moved on.

Kafka's rule: the new leader is the first replica in assignment order that is alive and in
sync; without one the partition is offline (no unclean election).
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import BoolColumn, IntColumn, exploded, ints
from control.model.snapshot import ClusterSnapshot

_WIDTH: Final = 1 << 32


def without_brokers(snapshot: ClusterSnapshot, dead: Collection[int]) -> ClusterSnapshot:
    """The snapshot as it would be once the controller has fenced the ``dead`` brokers.

    Worked example: replicas 101, 102, 103, all in sync, led by 101. Without 101 the ISR is
    102, 103 and 102 leads. With only 101 in sync the partition has no leader then.
    """
    lost = np.array(sorted(dead), dtype=np.int64)
    partitions = snapshot.partitions
    row, broker = exploded(partitions["isr"])
    kept = ~np.isin(broker, lost)
    leaders = _leaders_after(partitions, lost, row[kept] * _WIDTH + broker[kept])
    fields = {
        "isr": _lists(row[kept], broker[kept], partitions.num_rows),
        "leader": pa.array(leaders),
    }
    is_dead = np.isin(ints(snapshot.brokers["broker"]), lost)
    fenced = pc.or_(pc.fill_null(snapshot.brokers["is_fenced"], False), pa.array(is_dead))
    return replace(
        snapshot,
        partitions=_with(partitions, fields),
        brokers=_with(snapshot.brokers, {"is_fenced": fenced}),
    )


def _leaders_after(partitions: pa.Table, lost: IntColumn, in_sync: IntColumn) -> IntColumn:
    """``in_sync``: the pairs of row and broker that stay in sync, as one number each."""
    leaders = ints(partitions["leader"]).copy()
    row, broker = exploded(partitions["replicas"])
    eligible = np.isin(row * _WIDTH + broker, in_sync)
    first_of, places = np.unique(row[eligible], return_index=True)
    heirs = np.full(partitions.num_rows, -1, dtype=np.int64)
    heirs[first_of] = broker[eligible][places]
    loses: BoolColumn = np.isin(leaders, lost)
    leaders[loses] = heirs[loses]
    return leaders


def _lists(row: IntColumn, element: IntColumn, rows: int) -> pa.Array:
    """Lists of elements by row; rows come in order."""
    ends = np.searchsorted(row, np.arange(rows + 1), side="left")
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(element, pa.int32()))


def _with(table: pa.Table, columns: dict[str, pa.Array]) -> pa.Table:
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        field = table.schema.field(name)
        table = table.set_column(place, field, values.cast(field.type))
    return table
