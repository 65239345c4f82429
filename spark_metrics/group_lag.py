"""Groups' commits: lag, what of it is lost, its time, speed, and a verdict in Burrow's words.

A commit is read by the group's coordinator, an end offset by the partition's leader. Lag is
only true for an end offset read at or after the commit was: a reading waits for it. Everything
is an expression over the columns of one row; what a window needs is kept in a few *anchors*
instead of a list of readings, so the state of a commit has a fixed size. All columns are flat:
Spark copies a struct field by field, each into an object of its own. A partition that a member
owns without a commit is a row too: its committed offset is null, and so is its lag.

    committed_offset, lag, read_ms, …   the newest paired reading
    wait_a_…, wait_b_…                  readings that wait, the older one first
    speed_a_…, speed_b_…                the bases of speed, 7.5 to 15 s old
    trend_a_…, trend_b_…                30 to 60 s old
    still_since_ms                      since when it stands there, with records waiting or beyond
                                        the end
    moved_ms, pace_ms                   when it moved last, and how long it takes between moves
    rewind_from, rewind_ms              from where and when it went back
    first_ms                            the first paired reading
    alive_ms                            when its group last committed anything, as far as known
"""

from typing import Final

from pyspark.sql import DataFrame

from spark_metrics.schema import READING_OF

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
BEYOND_MS: Final = 3_000
"""A commit stands beyond the log's end for so long before that is said: a leader that has just
been elected may still be learning its high watermark."""
DEAD_BAND_RECORDS_PER_S: Final = 1.0
"""Lag that changes slower than this is steady."""


def _each(sql: str, *fields: str) -> str:
    """The same SQL for each of these fields, named in it by ``@``."""
    return ", ".join(sql.replace("@", field) for field in fields)


def _halving(begin: str, end: str, most: int, **searches: tuple[str, str, str]) -> str:
    """SQL of selects from ``begin`` to ``end``: how many items of an array fit, which come first.

    Each search is named, and is SQL of an item (by its place ``@``), an operator and a value; its
    answer is the column of that name, at most ``most``, a power of 2 less 1. Halving in few steps
    is little code, and all of it is used from the first rows on: code that a later row is the
    first to use makes Java throw away what it has compiled.
    """
    selects, source, step = [], begin, (most + 1) // 2
    while step:
        is_first = source == begin
        kept = "*" if is_first else f"* EXCEPT ({', '.join(searches)})"
        found = ", ".join(
            f"{count} + IF({item.replace('@', f'{count} + {step - 1}')} {test} {value}, {step}, 0)"
            f" AS {name}"
            for name, (item, test, value) in searches.items()
            for count in ("0" if is_first else name,)
        )
        into = end if step == 1 else f"{end}_{step}"
        selects.append(f"{into} AS (SELECT {kept}, {found} FROM {source})")  # noqa: S608
        source, step = into, step // 2
    return ",\n".join(selects)


_ENDS_AFTER: Final = {
    f"ends_{name}": ("get(end_times, @)", ">=", read_ms)
    for name, read_ms in {
        "n": "IF(brings, newest_ms, NULL)",
        "b": "wait_b_ms",
        "a": "wait_a_ms",
    }.items()
}
"""How many of the ends, newest first, were read at or after each reading."""
_SHOWN: Final = """CASE shows WHEN 1 THEN newest_@ WHEN 2 THEN wait_b_@ WHEN 3 THEN wait_a_@
    ELSE {kept} END"""
_WAITING: Final = """CASE {kept} WHEN 1 THEN newest_@ WHEN 2 THEN wait_b_@ WHEN 3 THEN wait_a_@
    END"""
_PAIRED: Final = f"""
WITH met AS (
  SELECT /*+ SHUFFLE_HASH(l) */ b.* EXCEPT (log_row), l.* EXCEPT (row)
  FROM {{rows}} AS b LEFT JOIN {{logs}} AS l ON b.log_row = l.row),
{_halving("met", "ended", 7, **_ENDS_AFTER)},
chosen AS (
  SELECT * EXCEPT (ends_n, ends_b, ends_a),
    CASE WHEN ends_n > 0 THEN ends_n WHEN ends_b > 0 THEN ends_b ELSE ends_a END - 1 AS place,
    CASE WHEN ends_n > 0 THEN 1 WHEN ends_b > 0 THEN 2 WHEN ends_a > 0 THEN 3 ELSE 0 END AS pairs
  FROM ended),
placed AS (
  SELECT *, IF(pairs = 0 AND lag IS NULL, 1, pairs) AS shows,
    CASE WHEN pairs = 1 THEN 0 WHEN pairs = 3 AND wait_b_ms IS NOT NULL THEN 2
      WHEN pairs = 0 AND wait_a_ms IS NOT NULL THEN 3 WHEN brings THEN 1 ELSE 0 END AS first_is,
    CASE WHEN pairs = 1 OR pairs = 2 THEN 0
      WHEN pairs = 3 THEN IF(wait_b_ms IS NOT NULL AND brings, 1, 0)
      WHEN wait_a_ms IS NULL THEN 0 WHEN brings THEN 1 ELSE 2 END AS second_is
  FROM chosen)
SELECT * EXCEPT ({_each("newest_@, wait_a_@, wait_b_@", *READING_OF)}, brings, pairs, shows, place,
    first_is, second_is, end_times, end_offsets, committed_offset, end_offset, commit_ms, read_ms,
    end_read_ms, lag),
  committed_offset AS old_offset, lag AS old_lag, pairs > 0 AS is_fresh,
  {_each(f"{_WAITING.format(kept='first_is')} AS wait_a_@", *READING_OF)},
  {_each(f"{_WAITING.format(kept='second_is')} AS wait_b_@", *READING_OF)},
  {_SHOWN.format(kept="read_ms").replace("@", "ms")} AS read_ms,
  {_SHOWN.format(kept="committed_offset").replace("@", "offset")} AS committed_offset,
  {_SHOWN.format(kept="commit_ms").replace("@", "commit_ms")} AS commit_ms,
  IF(pairs > 0, get(end_offsets, place), end_offset) AS end_offset,
  IF(pairs > 0, get(end_times, place), end_read_ms) AS end_read_ms
FROM placed
"""  # noqa: S608
"""Which reading is paired (1: the newest, 2 and 3: those that waited), and which ones wait on."""


_LATER_POINTS: Final = ("get(point_offsets, @)", ">", "IF(lag > 0, committed_offset, NULL)")
"""How many points of the log's end, newest first, are beyond the commit."""
_EARLIER_LOG: Final = (
    *("get(log_points, 2 * (@))", "<="),
    "IF(lag > 0 AND place IS NULL, committed_offset, NULL)",
)
"""How many of ``log_points`` (offset, timestamp by turns, oldest first) are at or before it."""


def _between(newer: tuple[str, str], older: tuple[str, str]) -> str:
    """SQL: when the log ended at the committed offset, on the line between two (time, offset)."""
    return f"""{older[0]} + CAST((committed_offset - {older[1]}) *
      (({newer[0]} - {older[0]}) / CAST({newer[1]} - {older[1]} AS DOUBLE)) AS BIGINT)"""


_IN_POINTS: Final = _between(
    ("get(point_times, place - 1)", "get(point_offsets, place - 1)"),
    ("get(point_times, place)", "get(point_offsets, place)"),
)
_IN_LOG: Final = _between(
    ("get(log_points, log_place + 3)", "get(log_points, log_place + 2)"),
    ("get(log_points, log_place + 1)", "get(log_points, log_place)"),
)
_AGED: Final = f"""
WITH lagging AS (
  SELECT *, CASE WHEN NOT is_fresh THEN old_lag
    WHEN committed_offset IS NOT NULL THEN greatest(end_offset - committed_offset, 0L) END AS lag
  FROM {{paired}}),
{_halving("lagging", "sought", 31, later=_LATER_POINTS)},
placed AS (
  SELECT * EXCEPT (later), IF(lag > 0 AND later < size(point_offsets), later, NULL) AS place
  FROM sought),
{_halving("placed", "logged", 15, earlier=_EARLIER_LOG)},
found AS (
  SELECT * EXCEPT (earlier), IF(earlier > 0, 2 * (earlier - 1), NULL) AS log_place FROM logged)
SELECT * EXCEPT (point_times, point_offsets, log_points, place, log_place),
  CASE WHEN lag = 0 THEN end_read_ms WHEN place > 0 THEN {_IN_POINTS}
    WHEN log_place IS NOT NULL THEN {_IN_LOG} END AS at_ms
FROM found
"""  # noqa: S608
"""When the log ended where the commit stands."""


def _turns(name: str, window_ms: int) -> str:
    """SQL of whether anchors begin anew with this reading, and whether the newer becomes older."""
    return f"""is_fresh AND lag IS NOT NULL AND ({name}_a_ms IS NULL OR is_back)
      AS {name}_begins,
    is_fresh AND coalesce(read_ms - {name}_b_ms >= {window_ms // 2}, false) AS {name}_rolls"""


def _rolled(name: str, window_ms: int, *fields: str) -> str:
    """SQL of both anchors after this reading, and of the base that figures are taken from.

    A group that went back begins anew. An anchor is its reading's time and such fields.
    """
    begins, rolls = f"{name}_begins", f"{name}_rolls"
    rest = f"read_ms - {name}_a_ms <= {window_ms} OR read_ms <= {name}_b_ms"
    now = {"ms": "read_ms", "offset": "committed_offset", "lag": "lag"}
    return ", ".join(
        f"""CASE WHEN lag IS NULL THEN NULL WHEN {begins} THEN {now[it]}
      WHEN {rolls} THEN {name}_b_{it}
      ELSE {name}_a_{it} END AS {name}_a_{it},
    IF({begins} OR {rolls}, {now[it]}, {name}_b_{it}) AS {name}_b_{it},
    CASE WHEN {name}_a_ms IS NULL OR is_back THEN NULL WHEN {rest} THEN {name}_a_{it}
      ELSE {name}_b_{it} END AS {name}_{it}"""
        for it in ("ms", *fields)
    )


_ANCHORS: Final = _each("speed_a_@, speed_b_@", "ms", "offset", "lag")
_TRENDS: Final = _each("trend_a_@, trend_b_@", "ms", "lag")
_MOVED: Final = f"""
WITH judged AS (
  SELECT *, is_fresh AND coalesce(committed_offset < old_offset AND old_lag IS NOT NULL, false)
      AS is_back,
    is_fresh AND coalesce(committed_offset > old_offset AND old_lag IS NOT NULL, false) AS is_on
  FROM {{aged}}),
turned AS (
  SELECT *, {_turns("speed", SPEED_WINDOW_MS)}, {_turns("trend", TREND_WINDOW_MS)} FROM judged)
SELECT * EXCEPT ({_ANCHORS}, {_TRENDS}, still_since_ms, moved_ms, pace_ms, rewind_from, rewind_ms,
    first_ms, old_offset, old_lag, is_back, is_on, speed_begins, speed_rolls, trend_begins,
    trend_rolls),
  IF(lag IS NULL, NULL, coalesce(first_ms, read_ms)) AS first_ms,
  {_rolled("speed", SPEED_WINDOW_MS, "offset", "lag")},
  {_rolled("trend", TREND_WINDOW_MS, "lag")},
  IF(lag > 0 OR committed_offset > end_offset,
    IF(old_offset = committed_offset, coalesce(still_since_ms, read_ms), read_ms), NULL)
    AS still_since_ms,
  IF(is_on, read_ms, moved_ms) AS moved_ms,
  IF(is_on AND still_since_ms IS NOT NULL,
    greatest(read_ms - coalesce(moved_ms, still_since_ms), CAST(pace_ms * 0.9D AS BIGINT)),
    pace_ms) AS pace_ms,
  IF(is_back, greatest(rewind_from, old_offset),
    IF(committed_offset >= rewind_from, NULL, rewind_from)) AS rewind_from,
  IF(is_back, read_ms, rewind_ms) AS rewind_ms
FROM turned
"""  # noqa: S608


_PATIENCE: Final = f"greatest({{least}}, {PACES} * coalesce(pace_ms, 0L))"
_SPEEDS: Final = f"""
SELECT * EXCEPT (speed_ms, speed_offset, speed_lag, trend_ms, trend_lag),
  IF(lag IS NULL OR log_start_offset IS NULL, NULL,
    greatest(0L, least(log_start_offset, end_offset) - committed_offset))
    AS lost_records,
  IF(committed_offset >= speed_offset,
    (committed_offset - speed_offset) / nullif(read_ms - speed_ms, 0) * 1000.0D, NULL)
    AS consumed_records_per_s,
  (lag - speed_lag) / nullif(read_ms - speed_ms, 0) * 1000.0D AS lag_records_per_s,
  (lag - trend_lag) / nullif(read_ms - trend_ms, 0) * 1000.0D AS trend_per_s,
  read_ms - trend_ms AS trend_span_ms,
  IF(lag > 0, read_ms - still_since_ms, 0L) AS standing_ms,
  {_PATIENCE.format(least=PATIENCE_MS)} AS patience_ms,
  {_PATIENCE.format(least=OWNED_PATIENCE_MS)} AS owned_patience_ms,
  {_PATIENCE.format(least=ALIVE_PATIENCE_MS)} AS alive_patience_ms
FROM {{moved}}
"""  # noqa: S608

_STATUS: Final = f"""CASE
    WHEN committed_offset IS NULL THEN IF(end_offset <= log_start_offset, 'OK', NULL)
    WHEN lag IS NULL THEN NULL
    WHEN committed_offset > end_offset THEN CASE
      WHEN read_ms - still_since_ms >= {BEYOND_MS} THEN 'BEYOND'
      WHEN moved_ms = read_ms THEN 'OK' END
    WHEN lag = 0 THEN 'OK'
    WHEN read_ms = first_ms THEN NULL
    WHEN rewind_from IS NOT NULL AND read_ms - rewind_ms <= {TREND_WINDOW_MS} THEN 'REWIND'
    WHEN standing_ms >= patience_ms AND NOT is_owned THEN 'STOP'
    WHEN standing_ms >= patience_ms AND commit_ms > still_since_ms + {REPEAT_MS} THEN 'STALL'
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
    alive_patience_ms, start_per_ms, log_start_offset, retention_ms, is_owned, alive_ms),
  IF(at_ms IS NULL, NULL, greatest(0L, end_read_ms - at_ms)) AS time_lag_ms,
  CASE WHEN lag = 0 THEN 0L WHEN lag_records_per_s < -{DEAD_BAND_RECORDS_PER_S}
    THEN CAST(lag / -lag_records_per_s * 1000.0D AS BIGINT) END AS time_to_clear_ms,
  {_RISK} AS retention_risk_ms, {_STATUS} AS status, read_ms - first_ms AS history_ms,
  IF(standing_ms >= {STILL_MS}, still_since_ms, NULL) AS stuck_since_ms
FROM {{speeds}}
"""  # noqa: S608


def newest_commits(rows: DataFrame, *, logs: DataFrame, is_single: bool) -> DataFrame:
    """One row per group and committed partition: figures, the state, and ``is_fresh``.

    Neither names nor what is ``schema.CARRIED`` are among them, but the ``row`` of ``rows``
    (``names.named`` puts them together). ``rows``: ``schema.MET_COMMITS``. ``logs``:
    ``schema.LOGS`` of the answer of ``transform.newest_partitions`` for the same batch
    (``logs.logs_of``). ``is_single``: as there. Whose coordinator has left them out, or fell
    silent, are among them (``coordinators.told_still``).
    """
    session = rows.sparkSession
    paired = session.sql(_PAIRED, rows=rows, logs=logs)
    aged = _cut(session.sql(_AGED, paired=paired), is_single=is_single)
    moved = session.sql(_MOVED, aged=aged)
    speeds = session.sql(_SPEEDS, moved=moved)
    return session.sql(_TOLD, speeds=speeds)


def _cut(frame: DataFrame, *, is_single: bool) -> DataFrame:
    """The same rows, made by code of its own up to here.

    Each cut copies every row; one method for all would be so large that Java takes minutes to
    compile it.
    """
    return frame.coalesce(1) if is_single else frame
