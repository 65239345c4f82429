"""The SQL of history, pure: a question of so many points becomes one query over ``history``.

Times are cut into buckets that begin at multiples of their length, so that a chart which slides
by a second does not reshuffle its points; lengths come from ``STEPS_MS``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spark_metrics.tables import COMMIT_HISTORY, PARTITION_HISTORY, RATE_HISTORY

_S: Final = 1_000
STEPS_MS: Final = tuple(
    seconds * _S
    for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)
)
RATES: Final = ("in_records_per_s", "in_bytes_per_s", "out_bytes_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRange:
    """From when to when (both ends included), and how many points at most."""

    since_ms: int
    until_ms: int
    points_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """SQL over the view ``history`` with its values, and the schema of its answer."""

    sql: str
    values: Sequence[object]
    schema: Any


def bucket_ms(span: HistoryRange, least_ms: int) -> int:
    """The shortest step that needs at most ``points_max`` points and is at least ``least_ms``.

    600 points over ten minutes: 1 s; over two hours: 15 s (12 s would do, 15 s is a step).
    """
    wanted = max(least_ms, -(-(span.until_ms - span.since_ms) // max(1, span.points_max)))
    return next((step for step in STEPS_MS if step >= wanted), max(wanted, STEPS_MS[-1]))


def partition_points(keys: Mapping[str, object], span: HistoryRange, interval_ms: int) -> Query:
    """Each partition's points: means of the rates, the newest of everything else."""
    last = ("leader", "isr_count", "replicas_count", "high_watermark", "size_bytes", "segments")
    group = ("cluster", "topic", "partition")
    return _points(keys, span, _Shape(PARTITION_HISTORY, group, last, RATES))


def commit_points(keys: Mapping[str, object], span: HistoryRange, interval_ms: int) -> Query:
    """Each committed partition's points of a group."""
    group = ("cluster", "group_id", "topic", "partition")
    mean = ("consumed_records_per_s",)
    return _points(keys, span, _Shape(COMMIT_HISTORY, group, ("committed_offset", "lag"), mean))


def rate_sums(keys: Mapping[str, object], span: HistoryRange, interval_ms: int) -> Query:
    """Sums over partitions by time.

    A partition counts once per bucket, with the mean of its rates; buckets are two sampling
    intervals long at least, so that every partition is in each. The newest bucket is left out
    until all sources must have reported it.
    """
    bucket = bucket_ms(span, 2 * interval_ms)
    whole = replace(span, since_ms=span.since_ms // bucket * bucket)
    where, values = _where(keys, whole)
    means = ", ".join(f"avg({name}) AS {name}" for name in RATES)
    sums = ", ".join(f"sum({name}) AS {name}" for name in RATES)
    sql = f"""
        WITH each AS (
            SELECT topic, partition, at_ms // {bucket} AS bucket, {means},
                arg_max(size_bytes, at_ms) AS size_bytes
            FROM history WHERE {where} GROUP BY topic, partition, bucket),
        newest AS (SELECT max(at_ms) AS at_ms FROM history)
        SELECT (bucket + 1) * {bucket} AS at_ms, {sums}, sum(size_bytes)::BIGINT AS size_bytes,
            count(*) AS partitions
        FROM each
        WHERE (bucket + 1) * {bucket} <= (SELECT at_ms FROM newest) - {interval_ms} // 2
        GROUP BY bucket ORDER BY bucket"""  # noqa: S608 (names are ours, values are bound)
    return Query(sql=sql, values=values, schema=RATE_HISTORY)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A table of points: its schema, key, columns of which the newest counts, and means."""

    schema: Any
    group: Sequence[str]
    last: Sequence[str]
    mean: Sequence[str]


def _points(keys: Mapping[str, object], span: HistoryRange, shape: _Shape) -> Query:
    bucket = bucket_ms(span, 1)
    where, values = _where(keys, span)
    chosen = {
        **{name: name for name in shape.group},
        "at_ms": "max(h.at_ms)",
        **{name: f"arg_max({name}, h.at_ms)" for name in shape.last},
        **{name: f"avg({name})" for name in shape.mean},
    }
    columns = ", ".join(f"{chosen[item.name]} AS {item.name}" for item in shape.schema)
    group = ", ".join(shape.group)
    sql = f"""
        SELECT {columns} FROM history AS h WHERE {where}
        GROUP BY {group}, h.at_ms // {bucket} ORDER BY {group}, max(h.at_ms)"""  # noqa: S608
    return Query(sql=sql, values=values, schema=shape.schema)


def _where(keys: Mapping[str, object], span: HistoryRange) -> tuple[str, list[object]]:
    known = {name: value for name, value in keys.items() if value is not None}
    tests = [f"{name} = ?" for name in known]
    return " AND ".join([*tests, "at_ms BETWEEN ? AND ?"]), [
        *known.values(),
        span.since_ms,
        span.until_ms,
    ]
