"""The newest of what was known and what a batch brings: one row per partition.

    rows of samples (one per replica) -> met with the state (one per replica)
                    -> grouped (one per partition, replicas as an array) -> rated -> told

Formulas in words: docs/definitions.md. Arrays of readings and of points are newest first
throughout. Rows meet the state in hash joins of one side each; in one JVM both lie in one
partition, so nothing is shuffled and the plan can be executed again for the next batch.
"""

from typing import Final

from pyspark.sql import DataFrame

from spark_metrics.schema import (
    FOLLOWER_READINGS_MAX,
    MEMBER_FIELDS,
    POINTS_MAX,
    READINGS_MAX,
    ROWS,
)

RATE_WINDOW_MS: Final = 3_000
"""Rates are taken over so much time, or between two readings where these are rarer."""
MISSING_MS: Final = 5_000
"""How much later than a partition's newest row a replica's broker must have finished a round
without it, before the partition counts as deleted."""
START_WINDOW_MS: Final = 60_000
"""How fast the log start moves is taken over at least half of this."""
_NEVER_BACK_MS: Final = 1 << 61
"""Above it: a broker that is unregistered, whose rounds prove nothing."""
KEY: Final = ("cluster", "topic", "partition")
AGAIN: Final = {name: f"r.again_{name}" for name in ("read_ms", "since_ms", "round_ms")}
_LISTED: Final = ("replicas", "isr", "adding_replicas", "removing_replicas")


def struct_of(source: str, *names: str, **further: str) -> str:
    """SQL of a struct: fields taken over from ``source``, and further ones by expression."""
    fields = {**{name: f"{source}.{name}" for name in names}, **further}
    return "named_struct(" + ", ".join(f"'{name}', {it}" for name, it in fields.items()) + ")"


def matches(left: str, right: str, names: tuple[str, ...] = KEY) -> str:
    """SQL: equal in all these columns."""
    return " AND ".join(f"{left}.{name} = {right}.{name}" for name in names)


def _reading(row: str, read_ms: str) -> str:
    """A follower's readings are only compared with the leader's end: the rest is not kept."""
    leads = f"{row}.leader = {row}.broker"
    own = {
        name: f"IF({leads}, {row}.{name}, NULL)" for name in ("size_bytes", "bytes_in", "bytes_out")
    }
    return struct_of(
        row,
        read_ms=read_ms,
        broker_epoch=f"{row}.broker_epoch",
        is_leader=leads,
        high_watermark=f"IF({leads}, {row}.high_watermark, NULL)",
        log_end_offset=f"{row}.log_end_offset",
        **own,
    )


_FULL: Final = struct_of(
    "r",
    *(name for name in ROWS["replicas"] if name in MEMBER_FIELDS and name not in _LISTED),
    broker="r.source",
    full_ms="r.read_ms",
    **{name: f"coalesce(r.{name}, array())" for name in _LISTED},
)
_NEWEST: Final = f"""
SELECT cluster, topic, partition, source AS broker, IF(read_ms IS NULL, NULL, {_FULL}) AS f,
  IF(again_read_ms IS NULL, NULL, {struct_of("r", **AGAIN)}) AS u
FROM {{rows}} AS r
"""  # noqa: S608 (nothing here comes from outside)

_KEPT: Final = tuple(name for name in MEMBER_FIELDS if name not in ("read_ms", "round_ms"))
_MERGED: Final = f"""slice(IF(size(brought) = 0, coalesce(m.readings, array()),
    IF(m IS NULL, brought, IF(brought[size(brought) - 1].read_ms > m.readings[0].read_ms,
      concat(brought, m.readings),
      sort_array(array_distinct(concat(brought, m.readings)), false)))), 1,
    IF(base.leader = base.broker, {READINGS_MAX}, {FOLLOWER_READINGS_MAX}))"""
_JOINED: Final = f"""
WITH state AS (SELECT cluster, topic, partition, explode(members) AS m FROM {{state}}),
old AS (SELECT cluster, topic, partition, m.broker AS broker, m FROM state)
SELECT /*+ SHUFFLE_HASH(o) */ coalesce(n.cluster, o.cluster) AS cluster,
  coalesce(n.topic, o.topic) AS topic, coalesce(n.partition, o.partition) AS partition,
  coalesce(n.broker, o.broker) AS broker, n.f AS f, n.u AS u, o.m AS m
FROM {{newest}} AS n FULL OUTER JOIN old AS o ON {matches("n", "o", (*KEY, "broker"))}
"""  # noqa: S608
_MET: Final = f"""
WITH based AS (
  SELECT *, IF(f IS NOT NULL AND (m IS NULL OR f.read_ms >= m.read_ms),
      {struct_of("f", *MEMBER_FIELDS)}, {struct_of("m", *MEMBER_FIELDS)}) AS base
  FROM {{joined}}),
again AS (
  SELECT *, coalesce(u.read_ms > base.read_ms AND base.full_ms >= u.since_ms, false) AS is_same
  FROM based WHERE base.broker IS NOT NULL),
brought AS (
  SELECT *, concat(IF(is_same, array({_reading("base", "u.read_ms")}), array()),
      IF(f IS NULL, array(), array({_reading("f", "f.read_ms")}))) AS brought
  FROM again),
made AS (
  SELECT cluster, topic, partition, broker, size(brought) > 0
      AND coalesce(brought[0].read_ms > m.readings[0].read_ms, true) AS is_fresh, {
    struct_of(
        "base",
        *_KEPT,
        round_ms="greatest(base.round_ms, u.round_ms, IF(f.read_ms = m.read_ms, m.round_ms, NULL))",
        read_ms="IF(is_same, u.read_ms, base.read_ms)",
        readings=_MERGED,
    )
} AS member
  FROM brought)
SELECT /*+ SHUFFLE_HASH(k) */ e.cluster, e.topic, e.partition, e.is_fresh, e.member
FROM made AS e LEFT JOIN {{known}} AS k ON e.cluster = k.cluster AND e.broker = k.broker
WHERE e.member.round_ms >= coalesce(k.complete_ms, 0L)
"""  # noqa: S608

_VIEW: Final = struct_of(
    "member",
    *("leader_epoch", "leader", "replicas", "isr", "adding_replicas", "removing_replicas"),
    *("min_isr", "read_ms"),
)
_LOG: Final = struct_of(
    "member",
    *("min_isr", "log_start_offset", "high_watermark", "log_end_offset", "size_bytes"),
    *("segments", "segment_bytes", "active_base_offset", "retention_ms", "log_points"),
    *("read_ms", "readings"),
    is_fresh="is_fresh",
)
_GROUPED: Final = f"""
SELECT cluster, topic, partition,
  max_by({_VIEW}, struct(member.leader_epoch, member.leader = member.broker, member.read_ms))
    AS view,
  max_by({_LOG}, struct(member.leader = member.broker, member.leader_epoch, member.read_ms))
    AS log,
  collect_list(member) AS members
FROM {{met}} GROUP BY cluster, topic, partition
"""  # noqa: S608

_IS_DELETED: Final = f"""exists(view.replicas, b -> NOT array_contains(members.broker, b)
    AND element_at(k.complete, b) BETWEEN view.read_ms + {MISSING_MS} AND {_NEVER_BACK_MS}L)"""
_RATED: Final = f"""
WITH brokers AS (
  SELECT cluster, map_from_entries(collect_list(struct(broker, complete_ms)))
    AS complete
  FROM {{known}} GROUP BY cluster),
old AS (
  SELECT cluster, topic, partition, isr, isr_shrinks, isr_expands, points,
    starts, log_points
  FROM {{state}}),
present AS (
  SELECT /*+ SHUFFLE_HASH(k, b, o) */ g.*, o.isr AS old_isr, o.isr_shrinks AS old_shrinks,
    o.isr_expands AS old_expands, o.points AS old_points, o.starts AS old_starts,
    o.log_points AS old_log_points,
    NOT coalesce({_IS_DELETED}, false) AS is_partition,
    coalesce(view.leader < 0 OR b.fenced_ms > view.read_ms, false) AS is_offline,
    filter(log.readings, r -> r.is_leader) AS ends
  FROM {{grouped}} AS g
  LEFT JOIN brokers AS k ON g.cluster = k.cluster AND size(view.replicas) > size(members)
  LEFT JOIN {{known}} AS b ON g.cluster = b.cluster AND view.leader = b.broker
  LEFT JOIN old AS o ON {matches("g", "o")}),
based AS (
  SELECT *, get(ends, 0) AS last, filter(ends, r -> r.broker_epoch = ends[0].broker_epoch
      AND r.read_ms < ends[0].read_ms) AS earlier
  FROM present)
SELECT *, coalesce(try_element_at(
    filter(earlier, r -> r.read_ms >= last.read_ms - {RATE_WINDOW_MS}), -1),
    get(earlier, 0)) AS base
FROM based
"""  # noqa: S608


def _rate(counter: str) -> str:
    """SQL of a counter's rate; null where it is unknown or was begun anew."""
    return f"""IF(last.{counter} >= base.{counter},
      (last.{counter} - base.{counter}) / span_s, NULL)"""


_FOLLOWER_LAG: Final = """get(filter(transform(m.readings, r -> try_element_at(
      filter(ends, e -> e.read_ms >= r.read_ms), -1).log_end_offset - r.log_end_offset),
      records -> records IS NOT NULL), 0)"""
_TOLD_MEMBER: Final = struct_of(
    "m",
    *MEMBER_FIELDS,
    readings="m.readings",
    is_leader="m.broker = view.leader AND NOT is_offline",
    is_in_sync="array_contains(view.isr, m.broker)",
    follower_lag=f"IF(m.broker = view.leader, 0L, {_FOLLOWER_LAG})",
)
_CELL: Final = "shiftleft(1L, CAST(log2(greatest((last.read_ms - p.ms) / 2, 1)) AS INT))"
_POINTS: Final = f"""IF(log.is_fresh AND last IS NOT NULL AND coalesce(
    last.read_ms > old_points[0].ms AND last.high_watermark >= old_points[0].offset, true),
  slice(filter(concat(array(named_struct('ms', last.read_ms, 'offset', last.high_watermark)),
      coalesce(old_points, array())), (p, i) -> i = 0 OR get(old_points, i) IS NULL
      OR p.ms DIV {_CELL} != get(old_points, i).ms DIV {_CELL}), 1, {POINTS_MAX}),
  IF(last.high_watermark < old_points[0].offset,
    array(named_struct('ms', last.read_ms, 'offset', last.high_watermark)),
    coalesce(old_points, array())))"""
"""The older a point, the longer the time that it stands for: in the cell of 2^n milliseconds
that is a quarter to half of its age, only the oldest stays. (``old_points[i]`` is the next older
of point i of the longer array.) A log that was begun anew begins its points anew."""
_LOG_POINTS: Final = """coalesce(log.log_points,
    IF(coalesce(last.high_watermark < try_element_at(old_log_points, -2), false), NULL,
      old_log_points))"""
"""What the source has told last; of a log that was begun anew, nothing."""
_START: Final = "named_struct('ms', log.read_ms, 'offset', log.log_start_offset)"
_STARTS: Final = f"""IF(old_starts IS NULL OR log.log_start_offset < old_starts.b.offset,
    named_struct('a', {_START}, 'b', {_START}),
    IF(log.read_ms - old_starts.b.ms >= {START_WINDOW_MS // 2},
      named_struct('a', old_starts.b, 'b', {_START}), old_starts))"""
_TOLD: Final = f"""
WITH spanned AS (
  SELECT *, (last.read_ms - base.read_ms) / 1000.0D AS span_s FROM {{rated}})
SELECT cluster, topic, partition, is_partition, IF(is_offline, -1, view.leader) AS leader,
  view.leader_epoch AS leader_epoch, view.replicas AS replicas, view.isr AS isr,
  view.adding_replicas AS adding_replicas, view.removing_replicas AS removing_replicas,
  coalesce(view.min_isr, log.min_isr) AS min_isr, log.log_start_offset AS log_start_offset,
  log.high_watermark AS high_watermark, log.log_end_offset AS log_end_offset,
  log.size_bytes AS size_bytes, log.segments AS segments, log.segment_bytes AS segment_bytes,
  log.active_base_offset AS active_base_offset, log.retention_ms AS retention_ms,
  IF(is_offline, 0.0D, {_rate("high_watermark")}) AS in_records_per_s,
  IF(is_offline, 0.0D, IF(last.bytes_in IS NULL, {_rate("size_bytes")}, {_rate("bytes_in")}))
    AS in_bytes_per_s,
  IF(is_offline, 0.0D, {_rate("bytes_out")}) AS out_bytes_per_s,
  coalesce(old_shrinks, 0L) + IF(size(array_except(old_isr, view.isr)) > 0, 1, 0)
    AS isr_shrinks,
  coalesce(old_expands, 0L) + IF(size(array_except(view.isr, old_isr)) > 0, 1, 0)
    AS isr_expands,
  log.read_ms AS read_ms, log.is_fresh AS is_fresh, ends, {_POINTS} AS points,
  {_LOG_POINTS} AS log_points, {_STARTS} AS starts,
  transform(members, m -> {_TOLD_MEMBER}) AS members
FROM spanned
"""  # noqa: S608


def newest_partitions(
    rows: DataFrame, state: DataFrame, known: DataFrame, *, is_single: bool
) -> DataFrame:
    """One row per partition.

    ``rows``: ``schema.ROWS`` of replicas. ``state``: the answer before, as
    ``schema.PARTITION_STATE``. ``known``: per broker the begin of its newest complete round and
    since when it is fenced (``cluster, broker, complete_ms, fenced_ms``). ``is_single``: each of
    them is one partition, and so is the answer: nothing needs to be shuffled.

    The answer has the columns of ``PARTITIONS`` (only where ``is_partition``), those of the
    state, ``is_fresh``, and ``members``, an array with all that ``REPLICAS`` needs. Who leads is
    told by the row of the newest leader epoch, whoever reported it; sizes and offsets by the
    newest row of a leader.
    """
    session = rows.sparkSession
    newest = session.sql(_NEWEST, rows=rows)
    joined = session.sql(_JOINED, newest=newest, state=state)
    # A full outer join of single partitions is one, but Spark does not know it.
    joined = joined.coalesce(1) if is_single else joined
    met = session.sql(_MET, joined=joined, known=known)
    grouped = session.sql(_GROUPED, met=met)
    rated = session.sql(_RATED, grouped=grouped, state=state, known=known)
    return session.sql(_TOLD, rated=rated)
