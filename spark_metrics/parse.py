"""Lines -> typed rows. Everything here is DataFrame -> DataFrame.

A line is one record of the metrics topic as the driver hands it on (``spark_metrics.heads``),
seven fields with tabs between them:

    NUMBER CLUSTER BROKER BROKER_EPOCH ROUND_MS BUCKETS/BUCKET BODY

The body is columns (version 2 of the samples) or objects (version 1). Of a record in which some
rows are bad the good rows count. The bad ones become rows of a partition without a name, under
the number of their record, so that the driver learns of them from the same answer.
"""

from typing import Final

from pyspark.sql import DataFrame

from broker.metrics_columns import LISTS, NESTED, NUMBERS, TEXTS
from spark_metrics.schema import MEMBER_FIELDS, body_ddl

AHEAD_MS_MAX: Final = 86_400_000
FIELDS: Final = 7

_LACKS: Final = {
    "replicas": "leader IS NULL OR leader_epoch IS NULL OR leader = source"
    " AND (high_watermark IS NULL OR log_end_offset IS NULL)",
    "commits": "committed_offset IS NULL",
}
"""SQL: a row lacks what it needs. Only a leader must tell offsets: those of a watched cluster's
followers cannot be known."""


def _array(kind: str, name: str) -> str:
    """SQL of one column of all rows of a record, whatever its version; never null."""
    columns = f"body.{kind}_columns"
    if name in TEXTS[kind]:
        told = f"transform({columns}.{name}, i -> get({columns}.{TEXTS[kind][name]}, i))"
    elif kind == "replicas" and name in LISTS:
        told = f"transform({columns}.{name}, i -> get({columns}.lists, i))"
    else:
        told = f"{columns}.{name}"
    # Version 1 knows no unchanged rows.
    found = told if name == "since_ms" else f"coalesce({told}, body.{kind}.{name})"
    return f"coalesce({found}, array())"


def _names(kind: str) -> tuple[str, ...]:
    lists = (*LISTS, *NESTED) if kind == "replicas" else ()
    return (*TEXTS[kind], *NUMBERS[kind], *lists)


def _rows_sql(kind: str) -> str:
    names = _names(kind)
    lacks = _LACKS[kind]
    keys = [name for name in TEXTS[kind] if name != "member_id"]
    is_lost = " OR ".join(f"{name} IS NULL" for name in (*keys, "partition", "read_ms"))
    others = ", ".join(
        f"CAST({name} AS {_TYPES[name]}) AS {name}"
        for name in names
        if name not in (*keys, "partition", "read_ms", "since_ms")
    )
    arrays = [_array(kind, name) for name in names]
    # A body that cannot be read is one row of nothing.
    arrays[0] = f"IF(size({arrays[0]}) = 0, array(CAST(NULL AS STRING)), {arrays[0]})"
    return f"""
WITH parts AS (SELECT split(line, '\\t', {FIELDS}) AS part FROM {{lines}}),
documents AS (
  SELECT CAST(part[0] AS INT) AS number, part[1] AS cluster, CAST(part[2] AS INT) AS source,
    CAST(part[3] AS BIGINT) AS broker_epoch, CAST(part[4] AS BIGINT) AS round_ms,
    CAST(split(part[5], '/')[0] AS INT) AS buckets, CAST(split(part[5], '/')[1] AS INT) AS bucket,
    from_json(part[6], '{" ".join(body_ddl(kind).split())}') AS body
  FROM parts WHERE size(part) = {FIELDS}),
opened AS (
  SELECT number, cluster, source, broker_epoch, round_ms, buckets, bucket,
    IF(body.{kind}_columns IS NULL, 0L, round_ms) AS zero_ms,
    arrays_zip({", ".join(arrays)}) AS rows
  FROM documents),
each AS (
  SELECT number, cluster, source, broker_epoch, round_ms, buckets, bucket, zero_ms,
    it.* FROM opened LATERAL VIEW inline(rows) it AS {", ".join(names)}),
timed AS (
  SELECT * EXCEPT (read_ms, since_ms, zero_ms), read_ms + zero_ms AS read_ms,
    since_ms + zero_ms AS since_ms
  FROM each),
judged AS (
  SELECT *, {is_lost} OR read_ms > round_ms + {AHEAD_MS_MAX}
    OR since_ms IS NULL AND ({lacks}) AS is_bad
  FROM timed)
SELECT cluster, source, broker_epoch, round_ms, number, is_bad,
  {", ".join(f"IF(is_bad, '', {name}) AS {name}" for name in keys)},
  IF(is_bad, -1, CAST(partition AS INT)) AS partition, coalesce(read_ms, 0L) AS read_ms,
  since_ms, {others}
FROM judged
WHERE buckets = 1 OR is_bad OR pmod(crc32(CAST(topic AS BINARY)), buckets) = bucket
"""  # noqa: S608 (nothing here comes from outside)


_TYPES: Final = {
    **MEMBER_FIELDS,
    "group_id": "STRING",
    "member_id": "STRING",
    "committed_offset": "BIGINT",
    "commit_ms": "BIGINT",
}


def sample_rows(lines: DataFrame, kind: str) -> DataFrame:
    """The rows of this kind (``replicas`` or ``commits``) in all lines.

    ``since_ms`` is not null in rows that only say that nothing has changed since.
    """
    return lines.sparkSession.sql(_rows_sql(kind), lines=lines)
