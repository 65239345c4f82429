"""The SQL of history, pure, over a view ``history`` of the files that ``spans`` has chosen.

Times are cut into buckets that begin at multiples of their length, so that a chart which slides
by a second does not reshuffle its points; lengths come from ``STEPS_MS``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from spark_metrics.window.history_points import Shape

_S: Final = 1_000
_STEPS_S: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800),
    *(3_600, 7_200, 10_800, 21_600, 43_200, 86_400),
)
STEPS_MS: Final = tuple(seconds * _S for seconds in _STEPS_S)
MOMENT: Final = "moment_ms"
"""Column of answers about several moments: which one a row is of."""
_WEIGHT: Final = "coalesce(readings, 1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRange:
    """A span of time (both ends included), and how many points it has at most."""

    since_ms: int
    until_ms: int
    points_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """SQL over the view ``history`` with its values, and the schema of its answer."""

    sql: str
    values: Sequence[object]
    schema: Any


def bucket_ms(span: HistoryRange, least_ms: int = 1) -> int:
    """The shortest step that needs at most ``points_max`` points and is at least ``least_ms``.

    600 points over ten minutes: 1 s; over two hours: 15 s (12 s would do, 15 s is a step).
    """
    wanted = max(least_ms, -(-(span.until_ms - span.since_ms) // max(1, span.points_max)))
    return next((step for step in STEPS_MS if step >= wanted), max(wanted, STEPS_MS[-1]))


def merged(shape: Shape, bucket: int, where: str = "TRUE", schema: Any = None) -> str:
    """SQL of one point per key and bucket, by key and time (the rule: ``window.history_points``).

    ``schema``: of the columns that are wanted; all of the shape's by default.

    Three readings of 2, 4 and 9 records/s, the first two merged before (mean 3, readings 2), make
    a mean of (3 · 2 + 9 · 1) / 3 = 5, a least of 2 and a greatest of 9.
    """
    columns = {
        **{name: name for name in shape.key},
        "at_ms": "max(h.at_ms)",
        **{name: f"arg_max_null({name}, h.at_ms)" for name in shape.last},
        **{name: _mean(name) for name in shape.mean},
        **{f"{name}_known": _known(name) for name in shape.mean},
        **{
            f"{name}_{end}": f"{end}(coalesce({name}_{end}, {name}))"
            for name in shape.extremes
            for end in ("min", "max")
        },
        "readings": f"sum({_WEIGHT})::BIGINT",
    }
    figures = ", ".join(f"{columns[item.name]} AS {item.name}" for item in schema or shape.schema)
    key = "".join(f"{name}, " for name in shape.key)
    return f"""
        SELECT {figures} FROM history AS h WHERE {where}
        GROUP BY {key}h.at_ms // {bucket} ORDER BY {key}max(h.at_ms)"""  # noqa: S608 (names are ours)


def _weight(name: str) -> str:
    """SQL: how many readings of a point tell this figure."""
    return f"CASE WHEN {name} IS NULL THEN 0 ELSE coalesce({name}_known, {_WEIGHT}) END"


def _mean(name: str) -> str:
    return f"sum({name} * {_weight(name)}) / nullif(sum({_weight(name)}), 0)"


def _known(name: str) -> str:
    return f"nullif(sum({_weight(name)}), sum({_WEIGHT}))::BIGINT"


def points(
    shape: Shape,
    keys: Mapping[str, object],
    span: HistoryRange,
    bucket: int,
    columns: Sequence[str] | None = None,
) -> Query:
    """The points of these keys; a key that is None may be any.

    ``columns``: figures that are wanted beside key, time and extremes; each costs its reading.
    """
    where, values = _where(keys, span)
    schema = shape.schema if columns is None else shape.schema_of(columns)
    return Query(sql=merged(shape, bucket, where, schema), values=values, schema=schema)


def newest(shape: Shape, keys: Mapping[str, object], spans: Sequence[HistoryRange]) -> Query:
    """The newest point of each key in each range, as it is stored, by the end of its range.

    When that was is found by keys and times alone; whole rows are looked at only where they count.
    """
    whole = HistoryRange(
        since_ms=min(it.since_ms for it in spans),
        until_ms=max(it.until_ms for it in spans),
        points_max=1,
    )
    where, values = _where(keys, whole)
    key = "".join(f"{name}, " for name in shape.key)
    columns = ", ".join(f"h.{name}" for name in shape.schema.names)
    sql = f"""
        WITH moments AS (SELECT unnest(?::BIGINT[]) AS since_ms, unnest(?::BIGINT[]) AS moment_ms),
        newest AS (
            SELECT {key}moment_ms, max(at_ms) AS at_ms
            FROM (SELECT {key}at_ms FROM history WHERE {where}) AS told
            JOIN moments ON at_ms BETWEEN since_ms AND moment_ms GROUP BY ALL
        )
        SELECT moment_ms, {columns}
        FROM (SELECT * FROM history WHERE {where}) AS h JOIN newest USING ({key}at_ms)
        QUALIFY row_number() OVER (PARTITION BY {key}moment_ms) = 1
        ORDER BY moment_ms"""  # noqa: S608 (names are ours)
    return Query(
        sql=sql,
        values=[[it.since_ms for it in spans], [it.until_ms for it in spans], *values, *values],
        schema=pa.schema([pa.field(MOMENT, pa.int64()), *shape.schema]),
    )


def last_told(cluster: str, span: HistoryRange) -> Query:
    """The time of a cluster's newest point in the range; null: there is none."""
    where, values = _where({"cluster": cluster}, span)
    sql = f"SELECT max(at_ms) AS at_ms FROM history WHERE {where}"  # noqa: S608 (names are ours)
    return Query(sql=sql, values=values, schema=pa.schema({"at_ms": pa.int64()}))


def _where(keys: Mapping[str, object], span: HistoryRange) -> tuple[str, list[object]]:
    where, values = _equal(keys)
    between = "at_ms BETWEEN ? AND ?"
    whole = f"{where} AND {between}" if where else between
    return whole, [*values, span.since_ms, span.until_ms]


def _equal(keys: Mapping[str, object]) -> tuple[str, list[object]]:
    named = {name: value for name, value in keys.items() if value is not None}
    return " AND ".join(f"{name} = ?" for name in named), list(named.values())
