"""Sums: whole ones cannot wrap around, and parts of one are never taken for it. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

LONG_MAX: Final = (1 << 63) - 1
_LONG_MIN: Final = -(1 << 63)
_WIDE: Final = pa.decimal128(38, 0)
UNKNOWN_SHARE_MAX: Final = 0.01


def stands_for_all(told: Any, parts: Any) -> Any:
    """Whether the sum of so many known rates is taken for that of all ``parts`` (numbers, or NumPy
    arrays of them). After a restart of a broker it would be a dip that never was."""
    return parts - told <= parts * UNKNOWN_SHARE_MAX


def has_lag(commits: pa.Table) -> Any:
    """Judge for each row of ``tables.COMMITS`` whether there is a lag, known or not (Arrow array):
    nothing committed has none, nor has a commit beyond the end of its log."""
    is_within = pc.less_equal(commits["committed_offset"], commits["end_offset"])
    return pc.and_(pc.is_valid(commits["committed_offset"]), pc.fill_null(is_within, True))


def aggregated(rows: pa.Table, key: Sequence[str], wanted: Sequence[Any]) -> pa.Table:
    """``rows.group_by(key).aggregate(wanted)``; a whole sum beyond 64 bits is the nearest number
    that they hold, where Arrow would wrap around."""
    summed = [name for name, how in wanted if how == "sum" and _may_wrap(rows[name])]
    if not summed:
        return rows.group_by(key).aggregate(wanted)
    for name in summed:
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, rows[name].cast(_WIDE))
    sums = rows.group_by(key).aggregate(wanted)
    for name in (f"{name}_sum" for name in summed):
        place = sums.column_names.index(name)
        sums = sums.set_column(place, name, _within(sums[name]))
    return sums


def _may_wrap(column: Any) -> bool:
    if not pa.types.is_int64(column.type):
        return False
    ends = pc.min_max(column).as_py().values()
    return any(abs(end or 0) * len(column) > LONG_MAX for end in ends)


def _within(sums: Any) -> pa.Array:
    whole = (None if it is None else int(it) for it in sums.to_pylist())
    return pa.array(
        [None if it is None else max(_LONG_MIN, min(it, LONG_MAX)) for it in whole], pa.int64()
    )
