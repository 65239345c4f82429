"""Points of history merged in memory, by the rule of ``spark_metrics.window.history_points``. Pure.

The same as the SQL of ``sql.merged`` over the same rows, which a test holds; without DuckDB,
whose first answer costs a small process 70 MB, and in a third of its time: each key is a number
(``spark_metrics.keys``), rows are put in order by it once, and those of a point lie side by side.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.history.sql import HistoryRange
from spark_metrics.keys import in_order_of, key_codes
from spark_metrics.window.history_points import Shape

ROWS_MAX: Final = 100_000
"""More rows are for DuckDB, which works in parallel and streams."""
_SINCE: Final = "since the first"


def merged_few(rows: Any, shape: Shape, span: HistoryRange, bucket: int, schema: Any) -> Any:
    """``merged_points`` of what is within the range."""
    at = rows["at_ms"]
    is_within = pc.and_(pc.greater_equal(at, span.since_ms), pc.less_equal(at, span.until_ms))
    return merged_points(rows.filter(is_within), shape, bucket, schema)


def merged_points(rows: Any, shape: Shape, bucket: int, schema: Any) -> Any:
    """One point per key and bucket, by key and time, with the columns of ``schema``.

    ``rows`` have ``readings`` and the columns that ``schema`` wants.
    """
    if not rows.num_rows:
        return schema.empty_table()
    wanted = {*schema.names, *shape.key, "at_ms", "readings", *(f"{it}_known" for it in shape.mean)}
    rows = rows.select([name for name in rows.column_names if name in wanted])
    key = [*shape.key]
    points = _Points(in_order(rows, key), key, bucket)
    columns = [_column(points, item.name, shape).cast(item.type) for item in schema]
    return pa.table(columns, schema=schema)


def in_order(rows: Any, key: Sequence[str]) -> Any:
    """The same rows by key and time."""
    at = rows["at_ms"].to_numpy()
    if not len(at):
        return rows
    since = pa.array(at - at.min())
    (codes,) = key_codes([rows.select(key).append_column(_SINCE, since)], [*key, _SINCE])
    return in_order_of(rows.combine_chunks(), codes)


class _Points:
    """Rows in order, and where those of each point begin and end."""

    def __init__(self, rows: Any, key: Sequence[str], bucket: int) -> None:
        self.rows = rows
        (codes,) = key_codes([rows], key)
        buckets = rows["at_ms"].to_numpy() // bucket
        is_first = np.append(True, (codes[1:] != codes[:-1]) | (buckets[1:] != buckets[:-1]))
        self._starts = np.flatnonzero(is_first)
        self._newest = pa.array(np.append(self._starts[1:], rows.num_rows) - 1)
        self.weight = pc.fill_null(rows["readings"], 1).to_numpy()

    def newest(self, name: str) -> Any:
        return self.rows[name].take(self._newest)

    def sums(self, values: Any) -> Any:
        """NumPy array of the sum of each point's rows."""
        return np.add.reduceat(values, self._starts)

    def mean(self, name: str) -> Any:
        """Weighted by the readings that tell it."""
        values, known = _known(self.rows[name])
        each = self._telling(name)
        weight = self.sums(each)
        with np.errstate(invalid="ignore"):
            mean = self.sums(np.where(known, values * each, 0.0)) / weight
        return pa.array(mean, mask=weight == 0)

    def known(self, name: str) -> Any:
        """How many readings tell it; null: all of the point's."""
        telling, readings = self.sums(self._telling(name)), self.sums(self.weight)
        return pa.array(telling, mask=telling == readings)

    def _telling(self, name: str) -> Any:
        """The number of each row's readings that tell this figure."""
        counted = f"{name}_known"
        each = self.weight
        if counted in self.rows.column_names and self.rows[counted].null_count < self.rows.num_rows:
            counts, is_counted = _known(self.rows[counted])
            each = np.where(is_counted, counts, each)
        return each * pc.is_valid(self.rows[name]).to_numpy()

    def extreme(self, name: str, end: str) -> Any:
        """The least or greatest; of a row that was not merged before it is the value itself."""
        column = f"{name}_{end}"
        if column in self.rows.column_names and self.rows[column].null_count < self.rows.num_rows:
            extremes = pc.coalesce(self.rows[column], self.rows[name])
        else:
            extremes = self.rows[name]
        values, known = _known(extremes)
        is_least = end == "min"
        if not known.all():
            kind = np.iinfo(values.dtype) if values.dtype.kind == "i" else np.finfo(values.dtype)
            values = np.where(known, values, kind.max if is_least else kind.min)
        extremes = (np.minimum if is_least else np.maximum).reduceat(values, self._starts)
        return pa.array(extremes, mask=self.sums(known) == 0)


def _known(column: Any) -> tuple[Any, Any]:
    """Numbers, 0 where they are unknown, and which are known."""
    known = pc.is_valid(column).to_numpy()
    return pc.fill_null(column, 0).to_numpy(), known


def _column(points: _Points, name: str, shape: Shape) -> Any:
    """A column of the answer."""
    if name in shape.mean:
        return points.mean(name)
    if name == "readings":
        return pa.array(points.sums(points.weight))
    if name in shape.last or name in shape.key or name == "at_ms":
        return points.newest(name)
    of, _, end = name.rpartition("_")
    if end == "known":
        return points.known(of)
    return points.extreme(of, end)
