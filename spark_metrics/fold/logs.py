"""The figures of partitions that their commits need, as flat columns. Pure.

Arrow takes a field out of a list of structs without touching it.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.arrow_tables import lists_of, one_array
from spark_metrics.figures.column import column
from spark_metrics.figures.lists import Lists
from spark_metrics.figures.retention import Kept, kept
from spark_metrics.schema import LOGS, ROW, START


def logs_of(partitions: pa.Table) -> pa.Table:
    """``schema.LOGS`` of the answer of ``newest_partitions``, numbered in its order."""
    ends, points = (one_array(partitions[name]) for name in ("ends", "points"))
    columns = {
        ROW: pa.array(np.arange(partitions.num_rows), pa.int32()),
        "end_times": _listed(ends, "read_ms"),
        "end_offsets": _listed(ends, "high_watermark"),
        "point_times": _listed(points, "ms"),
        "point_offsets": _listed(points, "offset"),
        "point_errors": _listed(points, "error_ms"),
        **{f"kept_{name}": it.values for name, it in _kept(partitions)._asdict().items()},
        **{
            it: one_array(partitions[it])
            for it in (
                "log_points",
                "segment_offsets",
                "log_start_offset",
                "retention_ms",
                "readable_offset",
            )
        },
    }
    return pa.table(columns, schema=pa.schema(LOGS))


def _listed(structs: pa.ListArray, field: str) -> pa.ListArray:
    """The list of one field of each list of structs."""
    values = structs.flatten().field(field)
    return lists_of(values, pc.fill_null(pc.list_value_length(structs), 0).to_numpy())


def _kept(partitions: pa.Table) -> Kept:
    """Retention of logs whose start has moved, or whose source tells what size keeps."""
    starts, count = Lists.of(partitions["log_starts"]), partitions.num_rows
    retention_bytes = column(partitions["retention_bytes"])
    rows = np.flatnonzero((starts.counts > 1) | (retention_bytes >= 0).is_sure.numpy())
    if not len(rows):
        return Kept(*(column(pa.nulls(count, pa.int64())) for _ in Kept._fields))
    some = partitions.take(pa.array(rows))
    starts = Lists.of(some["log_starts"])
    retention = kept(
        *(starts.field(name) for name in START),
        start=column(some["log_start_offset"]),
        end=column(some["high_watermark"]),
        size_bytes=column(some["size_bytes"]),
        retention_bytes=column(some["retention_bytes"]),
    )
    return Kept(*(it.spread(rows, count) for it in retention))
