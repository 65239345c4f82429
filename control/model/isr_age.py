"""Since when the ISR of a partition is short: carried from one version of the store to the next.

The store tells each ISR as it is now. Who watches it version by version knows when one became
short; one that was short at the first look is so for at least as long as it was watched.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from control.model.columns import BoolColumn, IntColumn, ints, look_up, partition_keys

SHORT_ISR: Final = pa.schema(
    {
        # One row per partition that lacks a replica in sync.
        "topic": pa.string(),
        "partition": pa.int32(),
        "since_ms": pa.int64(),
        "is_at_least": pa.bool_(),  # it was short already when it was first looked at
    }
)


def short_isr(
    partitions: pa.Table, is_short: BoolColumn, earlier: pa.Table | None, *, now_ms: int
) -> pa.Table:
    """Those that are short now (schema ``SHORT_ISR``); ``earlier`` are those of the version
    before, None at the first look."""
    short = partitions.select(["topic", "partition"]).filter(pa.array(is_short))
    since = np.full(short.num_rows, now_ms, dtype=np.int64)
    is_at_least = np.full(short.num_rows, earlier is None)
    if earlier is not None and earlier.num_rows and short.num_rows:
        wanted, present = partition_keys(short, earlier)
        place = look_up(wanted, present)
        known = place >= 0
        since[known] = ints(earlier["since_ms"])[place[known]]
        is_at_least[known] = np.asarray(earlier["is_at_least"])[place[known]]
    columns = [short["topic"], short["partition"], pa.array(since), pa.array(is_at_least)]
    return pa.table(columns, schema=SHORT_ISR)


def places_in(short: pa.Table, partitions: pa.Table) -> IntColumn:
    """Each partition's row in ``short``, -1 where its ISR is whole."""
    wanted, present = partition_keys(partitions, short)
    return look_up(wanted, present)
