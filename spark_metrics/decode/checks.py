"""The ranges of everything that a sample may say, judged here and nowhere else. Pure.

A value outside its range is never cut to fit, and never wraps around: the row that says it is bad,
and so is a record whose envelope says it. The limits are those of Kafka's protocol. The difference
of two offsets, none of them below -1, still is a number of 64 bits; sums may leave them
(``window.totals``).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.metrics.columns import LISTS, TEXTS
from broker.metrics_schema import SCHEMA_VERSION
from spark_metrics.arrow_tables import with_column
from spark_metrics.keys import coded
from spark_metrics.window.totals import LONG_MAX

INT_MAX: Final = (1 << 31) - 1
TIME_MAX: Final = (1 << 43) - 1
"""A time in the year 2248."""
INTERVAL_MS_MAX: Final = 86_400_000
PARTS_MAX: Final = 1 << 16
TEXT_BYTES_MAX: Final = 32_767
"""Bytes of a text in Kafka's protocol."""
RECORD_ROWS_MAX: Final = 4_096
"""Sources write 500 at most; packed columns may claim rows without a byte for them."""
RECORD_ITEMS_MAX: Final = 1 << 20
"""Items in all lists of a column of a record."""
AHEAD_MS_MAX: Final = 86_400_000
"""What claims to be read so much later than it was written is bad."""
FOREVER: Final = -1
"""A retention without end. Kafka also takes the greatest number of 64 bits for it."""

UNREADABLE: Final = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError),
    *(RuntimeError, pa.ArrowException),
)
"""What reading bytes that are not as they should be may raise (nested too deeply: RuntimeError)."""

Range = tuple[int, int]
_ID: Final[Range] = (0, INT_MAX)
_OR_NONE: Final[Range] = (-1, INT_MAX)
_LONG: Final[Range] = (0, LONG_MAX)
_TIME: Final[Range] = (0, TIME_MAX)
ENVELOPE: Final[Mapping[str, Range]] = {
    "v": (SCHEMA_VERSION, INT_MAX),
    "broker": _ID,
    "broker_epoch": (-1, LONG_MAX),
    "round_ms": _TIME,
    "interval_ms": (1, INTERVAL_MS_MAX),
    "part": (0, PARTS_MAX - 1),
    "parts": (1, PARTS_MAX),
}
COLUMNS: Final[Mapping[str, Range]] = {
    "partition": _ID,
    "leader": _OR_NONE,
    "leader_epoch": _OR_NONE,
    "min_isr": _ID,
    "segments": _ID,
    **dict.fromkeys(("log_start_offset", "high_watermark", "log_end_offset"), _LONG),
    **dict.fromkeys(("size_bytes", "bytes_in", "bytes_out", "readable_offset"), _LONG),
    "committed_offset": (-1, LONG_MAX),
    "commit_ms": (-1, TIME_MAX),
    "told_lag": _LONG,
    "since_ms": _TIME,
    "read_ms": _TIME,
}
"""The range of each number of a row, where it is known."""
_ITEMS: Final[Mapping[str, Range]] = {
    **dict.fromkeys(LISTS, _ID),
    "segment_bytes": _LONG,
    "segment_offsets": _LONG,
}


def whole(value: Any, of: Range = _LONG) -> int:
    """A whole number of this range.

    Raises:
        ValueError: it is none.
    """
    if type(value) is not int or not of[0] <= value <= of[1]:
        raise ValueError(f"{value!r:.60} is not a number from {of[0]} to {of[1]}")
    return value


def whole_or_none(value: Any, of: Range = _LONG) -> int | None:
    """The same, or nothing."""
    return None if value is None else whole(value, of)


def text(value: Any) -> str:
    """A text that Kafka's protocol could carry.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, str) or len(value.encode()) > TEXT_BYTES_MAX:
        raise ValueError(f"{value!r:.60} is no text of Kafka's protocol")
    return value


def flag(value: Any) -> bool:
    """True or false.

    Raises:
        ValueError: it is neither.
    """
    if not isinstance(value, bool):
        raise ValueError(f"{value!r:.60} is neither true nor false")
    return value


def json_object(value: bytes | memoryview) -> dict[str, Any]:
    """One JSON object.

    Raises:
        UNREADABLE: it is none.
    """
    document = json.loads(bytes(value))
    if not isinstance(document, dict):
        raise TypeError("no JSON object")
    return document


def is_out_of_range(kind: str, rows: pa.Table) -> Any:
    """Judge for each row of ``json_columns.raw_schema`` whether a value is out of its range (Arrow
    array)."""
    is_bad: Any = pa.repeat(False, rows.num_rows)
    for name in rows.column_names:
        if name in COLUMNS:
            found = _outside(rows[name].combine_chunks(), COLUMNS[name])
        elif name in _ITEMS:
            found = _has_item_outside(rows[name].combine_chunks(), _ITEMS[name])
        elif name in TEXTS[kind]:
            found = _is_too_long(coded(rows[name]))
        else:
            continue
        is_bad = pc.or_(is_bad, found)
    return is_bad


def complaint(row: Mapping[str, Any]) -> str:
    """Why a row is bad: the first value that is out of its range, quoted."""
    for name, value in row.items():
        items = value if isinstance(value, list) else [value]
        low, high = COLUMNS.get(name) or _ITEMS.get(name) or (None, None)
        if low is not None and high is not None:
            odd = [it for it in items if it is not None and not low <= it <= high]
            if odd:
                return f"{name} {odd[0]} is not from {low} to {high}"
        elif isinstance(value, str) and len(value.encode()) > TEXT_BYTES_MAX:
            return f"{name} is longer than {TEXT_BYTES_MAX} bytes"
    return "it lacks a figure, or claims another time or bucket than its record"


def with_readable(rows: pa.Table) -> pa.Table:
    """The rows without what users may set to anything: a retention of Kafka's "for ever" is
    ``FOREVER``, records' own timestamps that are no times are unknown."""
    if "retention_ms" not in rows.column_names:
        return rows
    retention = rows["retention_ms"]
    is_forever = pc.or_(pc.less(retention, 0), pc.greater(retention, TIME_MAX))
    rows = with_column(rows, "retention_ms", pc.if_else(is_forever, FOREVER, retention))
    points = rows["log_points"].combine_chunks()
    is_odd = pc.or_(
        _has_item_outside(points, _LONG),
        pc.not_equal(pc.fill_null(pc.bit_wise_and(pc.list_value_length(points), 1), 0), 0),
    )
    if not pc.any(is_odd, min_count=0).as_py():
        return rows
    return with_column(rows, "log_points", pc.if_else(is_odd, pa.scalar(None, points.type), points))


def holds_too_much(places: Any, lists: pa.Array) -> bool:
    """Whether a column of places in a dictionary of lists stands for more than a record may hold.

    ``places``: a NumPy array.
    """
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return bool(len(places)) and int(lengths[places].sum()) > RECORD_ITEMS_MAX


def names(values: Sequence[Any]) -> pa.Array:
    """A dictionary of texts."""
    return pa.array([None if it is None else text(it) for it in values], pa.string())


def _outside(numbers: Any, of: Range) -> Any:
    found = pc.or_(pc.less(numbers, of[0]), pc.greater(numbers, of[1]))
    return pc.fill_null(found, False)


def _has_item_outside(lists: Any, of: Range) -> Any:
    """Judge for each list whether it has an unknown item, or one that is not of this range."""
    items, owners = pc.list_flatten(lists), pc.list_parent_indices(lists)
    is_bad = pc.or_(_outside(items, of), pc.is_null(items))
    if not pc.any(is_bad, min_count=0).as_py():
        return pa.repeat(False, len(lists))
    found = np.zeros(len(lists), bool)
    found[owners.filter(is_bad).to_numpy()] = True
    return pa.array(found)


def _is_too_long(texts: Any) -> Any:
    sizes = pc.binary_length(texts.dictionary).take(texts.indices)
    return pc.fill_null(pc.greater(sizes, TEXT_BYTES_MAX), False)
