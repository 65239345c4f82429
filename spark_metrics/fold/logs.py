"""The figures of partitions that their commits need, as flat columns. Pure.

Arrow takes a field out of a list of structs without touching it.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.arrow_tables import lists_of
from spark_metrics.schema import LOGS, ROW


def logs_of(partitions: pa.Table) -> pa.Table:
    """``schema.LOGS`` of the answer of ``newest_partitions``, numbered in its order."""
    ends, points, starts = (
        partitions[name].combine_chunks() for name in ("ends", "points", "starts")
    )
    columns = {
        ROW: pa.array(np.arange(partitions.num_rows), pa.int32()),
        "end_times": _listed(ends, "read_ms"),
        "end_offsets": _listed(ends, "high_watermark"),
        "point_times": _listed(points, "ms"),
        "point_offsets": _listed(points, "offset"),
        **{
            it: partitions[it].combine_chunks()
            for it in ("log_points", "log_start_offset", "retention_ms")
        },
        "start_per_ms": _pace(starts),
    }
    return pa.table(columns, schema=pa.schema(LOGS))


def _listed(structs: pa.ListArray, field: str) -> pa.ListArray:
    """The list of one field of each list of structs."""
    values = structs.flatten().field(field)
    return lists_of(values, pc.fill_null(pc.list_value_length(structs), 0).to_numpy())


def _pace(starts: pa.StructArray) -> Any:
    """How many records a millisecond a log's start moves; null where it cannot be said."""
    (a, b) = (pc.struct_field(starts, [name]) for name in ("a", "b"))
    moved, span_ms = (
        pc.subtract(pc.struct_field(b, [name]), pc.struct_field(a, [name]))
        for name in ("offset", "ms")
    )
    span_ms = pc.if_else(pc.equal(span_ms, 0), pa.scalar(None, pa.int64()), span_ms)
    return pc.divide(moved.cast(pa.float64(), safe=False), span_ms.cast(pa.float64()))
