"""Rows of replicas, gathered by the partition that they are of. Pure.

What a step says of a partition is one row: a few figures of each replica, and in full only what
counts of it. Who leads is told by the row of the newest leader epoch, its leader's own before
those of followers; sizes and offsets by the newest row of a leader. Followers mostly repeat what
their leader says, so two rows of three would otherwise be carried along for nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.arrow_tables import one_array
from spark_metrics.keys import key_codes
from spark_metrics.schema import GATHERED, LOG, VIEW

_ROW: Final = {
    "broker": "source",
    "full_ms": "read_ms",
    "round_ms": "round_ms",
    "log_end_offset": "log_end_offset",
    "size_bytes": "size_bytes",
    "segments": "segments",
    "again_ms": "again_read_ms",
    "since_ms": "again_since_ms",
    "again_round_ms": "again_round_ms",
}
"""What a row of a replica keeps, by the columns of ``schema.ROWS``."""
_TELLER: Final = {"broker": "source", "read_ms": "read_ms"}
_OF_VIEW: Final = {**_TELLER, **{name: name for name in VIEW}}
_OF_LOG: Final = {**_TELLER, "leads": "leads", **{name: name for name in LOG}}
_KEY: Final = ("cluster", "topic", "partition")
_LEADS: Final = 1 << 40
"""A number above any leader epoch, twice over."""


def gather(rows: pa.Table) -> pa.Table:
    """``GATHERED``, one row per partition, of ``ROWS`` of replicas (one per replica)."""
    schema = pa.schema(GATHERED)
    if not rows.num_rows:
        return schema.empty_table()
    rows = rows.combine_chunks()
    (codes,) = key_codes([rows], _KEY)
    is_full = pc.is_valid(rows["read_ms"]).to_numpy()
    leads = is_full & (_numbers(rows["leader"]) == _numbers(rows["source"]))
    epoch = np.where(is_full, 2 * (_numbers(rows["leader_epoch"]) + 2), 0)
    read_ms = _numbers(rows["read_ms"])
    order = np.lexsort((_numbers(rows["source"]), codes))
    ends = np.flatnonzero(np.append(np.diff(codes[order]) != 0, True))
    starts = np.concatenate([[0], ends + 1])
    views = logs = np.lexsort((read_ms, epoch + leads, codes))[ends]
    if not leads[views].all():
        logs = np.lexsort((read_ms, epoch + leads * _LEADS, codes))[ends]
    each = _struct(rows.take(pa.array(order)), _ROW, GATHERED["rows"].value_type)
    of_view = rows.take(pa.array(views))
    of_log = of_view if logs is views else rows.take(pa.array(logs))
    of_log = of_log.append_column("leads", pa.array(leads[logs]))
    columns = {
        **{name: of_view[name].cast(schema.field(name).type) for name in _KEY},
        "rows": pa.ListArray.from_arrays(pa.array(starts, pa.int32()), each),
        "view": _struct(of_view, _OF_VIEW, GATHERED["view"], is_whole=True),
        "log": _struct(of_log, _OF_LOG, GATHERED["log"], is_whole=True),
    }
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _numbers(column: Any) -> Any:
    """The values as a NumPy array; what is unknown is -1."""
    return pc.fill_null(column, -1).to_numpy().astype(np.int64)


def _struct(
    rows: pa.Table, names: Mapping[str, str], kind: Any, *, is_whole: bool = False
) -> pa.StructArray:
    """Columns as fields; ``is_whole``: null where there is no full row."""
    return pa.StructArray.from_arrays(
        [one_array(rows[name]) for name in names.values()],
        fields=list(kind),
        mask=pc.is_null(rows["read_ms"]).combine_chunks() if is_whole else None,
    )
