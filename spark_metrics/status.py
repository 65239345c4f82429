"""Groups' commits: lag, what of it is lost, its time, speed, and a verdict in Burrow's words.

A commit is read by the group's coordinator, an end offset by the partition's leader. Lag is
only true for an end offset read at or after the commit was: a reading waits for it. Everything
is an expression over the columns of one row; what a window needs is kept in a few *anchors*
instead of a list of readings, so the state of a commit has a fixed size.

    newest            the newest reading, paired or not     waits_a, waits_b   readings that wait
    committed_offset, lag, read_ms, …   the newest paired reading
    speed_a, speed_b  the bases of speed, 7.5 to 15 s old   trend_a, trend_b   30 to 60 s old
    still_offset, still_since_ms        since when it stands there with records waiting
    moved_ms, pace_ms                   when it moved last, and how long it takes between moves
    rewind_from, rewind_ms              from where and when it went back
    zero_ms, first_ms                   when lag was 0 last; the first paired reading
"""

from typing import Final

from pyspark.sql import DataFrame

from spark_metrics.schema import POINTS_MAX, READINGS_MAX
from spark_metrics.transform import AGAIN, matches, struct_of

SPEED_WINDOW_MS: Final = 15_000
"""Long enough to hold three of the default auto-commits (5 s)."""
TREND_WINDOW_MS: Final = 60_000
STILL_MS: Final = 10_000
"""A group stands still when it has not committed further for so long, with records waiting."""
PATIENCE_MS: Final = 15_000
"""Standing still for less may just be the time between two commits (three auto-commits)."""
OWNED_PATIENCE_MS: Final = 60_000
"""A member that owns the partition is given so long before it counts as stopped."""
ALIVE_PATIENCE_MS: Final = 300_000
"""… and so long while its group commits other partitions: it may work through them in turn."""
PACES: Final = 3
"""Every patience is at least so many times what the group usually takes between two moves."""
REPEAT_MS: Final = 1_000
"""A commit so long after the offset last moved is the same one again: the group is alive."""
DEAD_BAND_RECORDS_PER_S: Final = 1.0
"""Lag that changes slower than this is steady."""
LOG_POINTS_MAX: Final = 8
_ID: Final = ("cluster", "group_id", "topic", "partition")

_FULL: Final = struct_of(
    "r", *("source", "round_ms", "read_ms", "committed_offset", "commit_ms", "member_id")
)
_NEWEST: Final = f"""
SELECT cluster, group_id, topic, partition, IF(read_ms IS NULL, NULL, {_FULL}) AS f,
  IF(again_read_ms IS NULL, NULL, {struct_of("r", **AGAIN)}) AS u
FROM {{rows}} AS r
"""  # noqa: S608 (nothing here comes from outside)

_JOINED: Final = f"""
SELECT /*+ SHUFFLE_HASH(n) */ coalesce(n.cluster, o.cluster) AS cluster,
  coalesce(n.group_id, o.group_id) AS group_id, coalesce(n.topic, o.topic) AS topic,
  coalesce(n.partition, o.partition) AS partition, n.f AS f, n.u AS u,
  o.* EXCEPT (cluster, group_id, topic, partition)
FROM {{state}} AS o FULL OUTER JOIN {{newest}} AS n ON {matches("n", "o", _ID)}
"""  # noqa: S608
_MET: Final = """
WITH again AS (
  SELECT *, f IS NOT NULL AND coalesce(f.read_ms >= newest.read_ms, true) AS is_full,
    coalesce(u.read_ms > greatest(f.read_ms, newest.read_ms)
      AND greatest(f.read_ms, full_ms) >= u.since_ms, false) AS is_same
  FROM {joined}),
told AS (
  SELECT * EXCEPT (f, u, is_full, is_same, newest, source, round_ms, full_ms, member_id),
    IF(is_full, f.source, source) AS source,
    greatest(u.round_ms, IF(is_full, f.round_ms, round_ms)) AS round_ms,
    IF(is_full, f.read_ms, full_ms) AS full_ms,
    IF(is_full, f.member_id, member_id) AS member_id,
    IF(is_same OR is_full AND coalesce(f.read_ms > newest.read_ms, true),
      named_struct('read_ms', IF(is_same, u.read_ms, f.read_ms), 'committed_offset',
        IF(is_full, f.committed_offset, newest.committed_offset), 'commit_ms',
        IF(is_full, f.commit_ms, newest.commit_ms)), NULL) AS brought, newest
  FROM again)
SELECT /*+ SHUFFLE_HASH(k) */ t.* EXCEPT (newest), coalesce(brought, newest) AS newest
FROM told AS t LEFT JOIN {known} AS k ON t.cluster = k.cluster AND t.source = k.broker
WHERE t.full_ms IS NOT NULL
  AND t.round_ms >= greatest(coalesce(k.complete_ms, 0L), coalesce(k.silent_ms, 0L))
"""


def _end_of(reading: str) -> str:
    """SQL: place of the earliest end read at or after the reading (``ends`` is newest first)."""
    tries = " ".join(
        f"WHEN get(ends, {place}).read_ms >= {reading}.read_ms THEN {place}"
        for place in reversed(range(READINGS_MAX))
    )
    return f"CASE WHEN {reading} IS NULL THEN NULL {tries} END"


_PAIRED: Final = f"""
WITH logs AS (
  SELECT cluster, topic, partition, ends, points, log_points,
    log_start_offset, retention_ms, starts
  FROM {{partitions}}),
met AS (
  SELECT /*+ SHUFFLE_HASH(l) */ c.*, l.ends, l.points, l.log_points, l.log_start_offset,
    l.retention_ms, l.starts
  FROM {{met}} AS c LEFT JOIN logs AS l ON {matches("c", "l")}),
ended AS (
  SELECT *, {_end_of("brought")} AS end_n, {_end_of("waits_b")} AS end_b,
    {_end_of("waits_a")} AS end_a
  FROM met),
chosen AS (
  SELECT * EXCEPT (ends, end_n, end_b, end_a, waits_a, waits_b, brought),
    get(ends, coalesce(end_n, end_b, end_a)) AS e,
    CASE WHEN end_n IS NOT NULL THEN brought WHEN end_b IS NOT NULL THEN waits_b
      WHEN end_a IS NOT NULL THEN waits_a END AS r,
    CASE WHEN end_n IS NOT NULL THEN NULL WHEN end_b IS NOT NULL THEN brought
      WHEN end_a IS NOT NULL THEN coalesce(waits_b, brought)
      ELSE coalesce(waits_a, brought) END AS waits_a,
    CASE WHEN end_n IS NOT NULL OR end_b IS NOT NULL THEN NULL
      WHEN end_a IS NOT NULL THEN IF(waits_b IS NULL, NULL, brought)
      ELSE IF(waits_a IS NULL, NULL, coalesce(brought, waits_b)) END AS waits_b
  FROM ended)
SELECT * EXCEPT (e, r, committed_offset, end_offset, commit_ms, read_ms, end_read_ms, lag),
  r IS NOT NULL AND coalesce(r.read_ms > read_ms OR lag IS NULL, true) AS is_fresh,
  committed_offset AS old_offset, lag AS old_lag, read_ms AS old_ms,
  IF(r IS NULL, IF(lag IS NULL, newest.committed_offset, committed_offset), r.committed_offset)
    AS committed_offset,
  IF(r IS NULL, IF(lag IS NULL, newest.commit_ms, commit_ms), r.commit_ms) AS commit_ms,
  IF(r IS NULL, IF(lag IS NULL, newest.read_ms, read_ms), r.read_ms) AS read_ms,
  IF(r IS NULL, end_offset, e.high_watermark) AS end_offset,
  IF(r IS NULL, end_read_ms, e.read_ms) AS end_read_ms,
  IF(r IS NULL, lag, greatest(e.high_watermark - r.committed_offset, 0L)) AS lag
FROM chosen
"""  # noqa: S608

_NOW: Final = "named_struct('ms', read_ms, 'committed_offset', committed_offset, 'lag', lag)"


def _rolled(name: str, window_ms: int) -> str:
    """SQL of both anchors after this reading; a group that went back begins anew."""
    is_due = f"is_fresh AND read_ms - {name}_b.ms >= {window_ms // 2}"
    return f"""IF(lag IS NULL, NULL, IF({name}_a IS NULL OR is_back, {_NOW},
      IF({is_due}, {name}_b, {name}_a))) AS {name}_a,
    IF(lag IS NULL, NULL, IF({name}_b IS NULL OR is_back, {_NOW},
      IF({is_due}, {_NOW}, {name}_b))) AS {name}_b,
    IF({name}_a IS NULL OR is_back, NULL,
      IF(read_ms - {name}_a.ms <= {window_ms} OR read_ms <= {name}_b.ms, {name}_a, {name}_b))
      AS {name}_base"""


_MOVED: Final = f"""
WITH judged AS (
  SELECT *, is_fresh AND coalesce(committed_offset < old_offset AND old_lag IS NOT NULL, false)
      AS is_back,
    is_fresh AND coalesce(committed_offset > old_offset AND old_lag IS NOT NULL, false) AS is_on
  FROM {{paired}})
SELECT * EXCEPT (speed_a, speed_b, trend_a, trend_b, still_offset, still_since_ms, zero_ms,
    moved_ms, pace_ms, rewind_from, rewind_ms, first_ms),
  IF(lag IS NULL, NULL, coalesce(first_ms, read_ms)) AS first_ms,
  {_rolled("speed", SPEED_WINDOW_MS)},
  {_rolled("trend", TREND_WINDOW_MS)},
  IF(lag > 0, committed_offset, NULL) AS still_offset,
  IF(lag > 0, IF(still_offset = committed_offset, still_since_ms, read_ms), NULL)
    AS still_since_ms,
  IF(lag = 0, read_ms, zero_ms) AS zero_ms,
  IF(is_on, read_ms, moved_ms) AS moved_ms,
  IF(is_on AND still_since_ms IS NOT NULL,
    greatest(read_ms - coalesce(moved_ms, still_since_ms), CAST(pace_ms * 0.9D AS BIGINT)),
    pace_ms) AS pace_ms,
  IF(is_back, greatest(rewind_from, old_offset),
    IF(committed_offset >= rewind_from, NULL, rewind_from)) AS rewind_from,
  IF(is_back, read_ms, rewind_ms) AS rewind_ms
FROM judged
"""  # noqa: S608


_PLACE: Final = "CASE {} END".format(
    " ".join(
        f"WHEN committed_offset >= get(points, {place}).offset THEN {place}"
        for place in range(POINTS_MAX)
    )
)
"""SQL: the newest point at or before the committed offset."""
_LOG_PLACE: Final = "CASE {} END".format(
    " ".join(
        f"WHEN committed_offset >= get(log_points, {2 * place})"
        f" AND committed_offset < get(log_points, {2 * place + 2}) THEN {2 * place}"
        for place in reversed(range(LOG_POINTS_MAX - 1))
    )
)
"""SQL: the same in ``log_points`` (offset, timestamp by turns, oldest first)."""


def _between(newer: tuple[str, str], older: tuple[str, str]) -> str:
    """SQL: when the log ended at the committed offset, on the line between two (time, offset)."""
    return f"""{older[0]} + CAST((committed_offset - {older[1]}) *
      (({newer[0]} - {older[0]}) / CAST({newer[1]} - {older[1]} AS DOUBLE)) AS BIGINT)"""


_IN_POINTS: Final = _between(
    ("get(points, place - 1).ms", "get(points, place - 1).offset"),
    ("get(points, place).ms", "get(points, place).offset"),
)
_IN_LOG: Final = _between(
    ("get(log_points, log_place + 3)", "get(log_points, log_place + 2)"),
    ("get(log_points, log_place + 1)", "get(log_points, log_place)"),
)
_PATIENCE: Final = f"greatest({{least}}, {PACES} * coalesce(pace_ms, 0L))"
_SPEEDS: Final = f"""
WITH placed AS (
  SELECT *, IF(lag > 0, {_PLACE}, NULL) AS place FROM {{moved}}),
found AS (
  SELECT *, IF(lag > 0 AND place IS NULL, {_LOG_PLACE}, NULL) AS log_place FROM placed)
SELECT /*+ SHUFFLE_HASH(g) */ m.* EXCEPT (speed_base, trend_base, points, log_points, place,
    log_place), g.alive_ms,
  CASE WHEN lag = 0 THEN end_read_ms WHEN place > 0 THEN {_IN_POINTS}
    WHEN log_place IS NOT NULL THEN {_IN_LOG} END AS at_ms,
  IF(lag IS NULL OR log_start_offset IS NULL, NULL,
    greatest(0L, least(log_start_offset, end_offset) - committed_offset))
    AS lost_records,
  IF(committed_offset >= speed_base.committed_offset,
    (committed_offset - speed_base.committed_offset) / nullif(read_ms - speed_base.ms, 0)
      * 1000.0D, NULL) AS consumed_records_per_s,
  (lag - speed_base.lag) / nullif(read_ms - speed_base.ms, 0) * 1000.0D AS lag_records_per_s,
  (lag - trend_base.lag) / nullif(read_ms - trend_base.ms, 0) * 1000.0D AS trend_per_s,
  read_ms - trend_base.ms AS trend_span_ms,
  IF(lag > 0, read_ms - still_since_ms, 0L) AS standing_ms,
  {_PATIENCE.format(least=PATIENCE_MS)} AS patience_ms,
  {_PATIENCE.format(least=OWNED_PATIENCE_MS)} AS owned_patience_ms,
  {_PATIENCE.format(least=ALIVE_PATIENCE_MS)} AS alive_patience_ms,
  (starts.b.offset - starts.a.offset) / nullif(starts.b.ms - starts.a.ms, 0) AS start_per_ms
FROM found AS m LEFT JOIN {{groups}} AS g
  ON m.cluster = g.cluster AND m.group_id = g.group_id
"""  # noqa: S608

_STATUS: Final = f"""CASE WHEN lag IS NULL THEN NULL WHEN lag = 0 THEN 'OK'
    WHEN rewind_from IS NOT NULL AND read_ms - rewind_ms <= {TREND_WINDOW_MS} THEN 'REWIND'
    WHEN standing_ms >= patience_ms AND commit_ms > still_since_ms + {REPEAT_MS} THEN 'STALL'
    WHEN standing_ms >= patience_ms AND member_id IS NULL THEN 'STOP'
    WHEN standing_ms >= owned_patience_ms
      AND coalesce(alive_ms < read_ms - {OWNED_PATIENCE_MS}, true)
      THEN IF(commit_ms IS NULL, 'STALL', 'STOP')
    WHEN standing_ms >= alive_patience_ms THEN 'STALL'
    WHEN trend_per_s > {DEAD_BAND_RECORDS_PER_S} AND trend_span_ms >= {STILL_MS}
      AND coalesce(lag_records_per_s >= -{DEAD_BAND_RECORDS_PER_S}, true) THEN 'WARN'
    ELSE 'OK' END"""
_RISK: Final = """CASE WHEN lag IS NULL OR lag = 0 THEN NULL WHEN lost_records > 0 THEN 0L
    ELSE least(IF(retention_ms > 0 AND at_ms IS NOT NULL,
        greatest(0L, retention_ms - (end_read_ms - at_ms)), NULL),
      IF(start_per_ms > 0,
        CAST((committed_offset - log_start_offset) / start_per_ms AS BIGINT), NULL)) END"""
_TOLD: Final = f"""
SELECT * EXCEPT (at_ms, trend_per_s, trend_span_ms, standing_ms, patience_ms, owned_patience_ms,
    alive_patience_ms, start_per_ms, starts, alive_ms, old_offset, old_lag, old_ms, is_back,
    is_on, log_start_offset, retention_ms),
  IF(at_ms IS NULL, NULL, greatest(0L, end_read_ms - at_ms)) AS time_lag_ms,
  CASE WHEN lag = 0 THEN 0L WHEN lag_records_per_s < -{DEAD_BAND_RECORDS_PER_S}
    THEN CAST(lag / -lag_records_per_s * 1000.0D AS BIGINT) END AS time_to_clear_ms,
  {_RISK} AS retention_risk_ms, {_STATUS} AS status, read_ms - first_ms AS history_ms,
  IF(standing_ms >= {STILL_MS}, still_since_ms, NULL) AS stuck_since_ms
FROM {{speeds}}
"""  # noqa: S608


def newest_commits(
    rows: DataFrame,
    state: DataFrame,
    *,
    partitions: DataFrame,
    known: DataFrame,
    groups: DataFrame,
    is_single: bool,
) -> DataFrame:
    """One row per group and committed partition: ``COMMITS``, the state, and ``is_fresh``.

    ``rows``: ``schema.ROWS`` of commits. ``state``: the answer before, as
    ``schema.COMMIT_STATE``. ``partitions``: the answer of ``transform.newest_partitions`` for
    the same batch. ``known``: as there, with ``silent_ms``, before which a coordinator is taken
    to have fallen silent. ``groups``: when each group committed anything last (``alive_ms``).
    ``is_single``: as there.
    """
    session = rows.sparkSession
    newest = session.sql(_NEWEST, rows=rows)
    joined = session.sql(_JOINED, newest=newest, state=state)
    joined = joined.coalesce(1) if is_single else joined
    met = session.sql(_MET, joined=joined, known=known)
    paired = session.sql(_PAIRED, met=met, partitions=partitions)
    moved = session.sql(_MOVED, paired=paired)
    speeds = session.sql(_SPEEDS, moved=moved, groups=groups)
    return session.sql(_TOLD, speeds=speeds)
