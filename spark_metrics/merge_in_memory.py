"""Few points of history merged in memory, by the rule of ``spark_metrics.points``. Pure.

The same as the SQL of ``queries.merged`` over the same rows, which a test holds; without DuckDB,
whose first answer costs a small process 70 MB.
"""

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.points import Shape
from spark_metrics.queries import HistoryRange

ROWS_MAX: Final = 100_000
"""Of more rows DuckDB, which works in parallel and streams, is the better judge."""
_NEWEST: Final = pc.ScalarAggregateOptions(skip_nulls=False)
_BUCKET: Final = "bucket"
_WEIGHT: Final = "weight"


def merged_few(rows: Any, shape: Shape, span: HistoryRange, bucket: int, schema: Any) -> Any:
    """One point per key and bucket, by key and time, with the columns of ``schema``.

    ``rows`` have ``readings`` and the columns that ``schema`` wants.
    """
    at = rows["at_ms"]
    is_within = pc.and_(pc.greater_equal(at, span.since_ms), pc.less_equal(at, span.until_ms))
    key = [*shape.key]
    order = [(name, "ascending") for name in (*key, "at_ms")]
    rows = rows.filter(is_within).sort_by(order)
    given = {name: rows[name] for name in (*key, "at_ms")}
    given[_BUCKET] = pc.divide(rows["at_ms"], bucket)
    given[_WEIGHT] = pc.fill_null(rows["readings"], 1)
    asked: list[Any] = [("at_ms", "max"), (_WEIGHT, "sum")]
    for name in schema.names:
        if name in shape.last:
            given[name] = rows[name]
            asked.append((name, "last", _NEWEST))
        elif name in shape.mean:
            given |= _weighed(name, rows[name], given[_WEIGHT])
            asked += [(f"{name} amount", "sum"), (f"{name} weight", "sum")]
    for name in shape.extremes:
        for end in ("min", "max"):
            column = f"{name}_{end}"
            if column in schema.names:
                given[column] = pc.coalesce(rows[column], rows[name])
                asked.append((column, end))
    merged = pa.table(given).group_by([*key, _BUCKET], use_threads=False).aggregate(asked)
    told = {item.name: _told(merged, item.name, shape) for item in schema}
    return pa.table(told).cast(schema).sort_by(order)


def _weighed(name: str, values: Any, weight: Any) -> dict[str, Any]:
    """What a mean is made of; an unknown value has no weight."""
    return {
        f"{name} amount": pc.multiply(values, weight),
        f"{name} weight": pc.if_else(pc.is_valid(values), weight, None),
    }


def _told(merged: Any, name: str, shape: Shape) -> Any:
    """A column of the answer."""
    if name in shape.key:
        return merged[name]
    if name in shape.last:
        return merged[f"{name}_last"]
    if name in shape.mean:
        return pc.divide(merged[f"{name} amount_sum"], merged[f"{name} weight_sum"])
    if name == "at_ms":
        return merged["at_ms_max"]
    if name == "readings":
        return merged[f"{_WEIGHT}_sum"]
    return merged[f"{name}_{name.rpartition('_')[2]}"]
