"""The newest of what was known and what a batch brings: one row per partition.

    rows of samples, gathered (one per partition) -> met with the state -> replicas merged
        -> who tells of leader and log -> rated -> told

Formulas in words: docs/reference/definitions.md. Arrays of readings and of points are newest first
throughout. What is told in full stays once per partition: the *view* (who leads and follows) and
the *log* (sizes, offsets), each with the broker that told it; of a replica, some numbers. Rows
meet the state in a hash join of one side each; in one JVM both lie in one partition, so nothing is
shuffled and the plan can be executed again for the next batch.
"""

from typing import Final

from pyspark.sql import DataFrame

from spark_metrics.schema import LOG, POINTS_KEPT, POINTS_MAX, READING, READINGS_MAX, VIEW

RATE_WINDOW_MS: Final = 3_000
"""Rates are taken over so much time, or between two readings where these are rarer."""
MISSING_MS: Final = 5_000
"""How much later than a partition's newest row a replica's broker must have finished a round
without it, before the partition counts as deleted; later still where who told that row has not had
the time to tell it again (``memory.KnownBroker.patience_ms``)."""
START_WINDOW_MS: Final = 60_000
"""How fast the log start moves is taken over at least half of this."""
_NEVER_BACK_MS: Final = 1 << 61
"""Above it: a broker that is unregistered, whose rounds prove nothing."""
KEY: Final = ("cluster", "topic", "partition")
AGAIN: Final = {name: f"r.again_{name}" for name in ("read_ms", "since_ms", "round_ms")}


def struct_of(source: str, *names: str, **further: str) -> str:
    """SQL of a struct: fields taken over from ``source``, and further ones by expression."""
    fields = {**{name: f"{source}.{name}" for name in names}, **further}
    return "named_struct(" + ", ".join(f"'{name}', {it}" for name, it in fields.items()) + ")"


def matches(left: str, right: str, names: tuple[str, ...] = KEY) -> str:
    """SQL: equal in all these columns."""
    return " AND ".join(f"{left}.{name} = {right}.{name}" for name in names)


_JOINED: Final = f"""
SELECT /*+ SHUFFLE_HASH(n) */ coalesce(n.cluster, o.cluster) AS cluster,
  coalesce(n.topic, o.topic) AS topic, coalesce(n.partition, o.partition) AS partition,
  n.rows, n.view, n.log, o.* EXCEPT (cluster, topic, partition)
FROM {{state}} AS o FULL OUTER JOIN {{rows}} AS n ON {matches("n", "o")}
"""  # noqa: S608 (nothing here comes from outside)
_KNOWN: Final = """
SELECT cluster, map_from_entries(collect_list(struct(broker, complete_ms))) AS complete,
  map_from_entries(collect_list(struct(broker, fenced_ms))) AS fenced,
  map_from_entries(collect_list(struct(broker, lost_ms))) AS lost, max(told_ms) AS told_ms,
  map_from_entries(collect_list(struct(broker, patience_ms))) AS patience
FROM {known} GROUP BY cluster
"""


def _of(broker: str) -> str:
    """SQL of the member that is this broker's; null where there is none."""
    return f"get(members, CAST(array_position(members.broker, {broker}) AS INT) - 1)"


_PAIRS: Final = """IF(m.broker = r.broker, arrays_zip(m, r),
    transform(sort_array(array_union(coalesce(m.broker, array()), coalesce(r.broker, array()))),
      b -> named_struct('m', get(filter(m, x -> x.broker = b), 0),
        'r', get(filter(r, x -> x.broker = b), 0))))"""
"""Every replica that is known: as it was, and its row of this wave. Both are sorted by broker, so
they usually lie side by side."""
_IS_FULL: Final = "coalesce(p.r.full_ms >= coalesce(p.m.read_ms, 0L), false)"
_JUDGED: Final = f"""transform({_PAIRS}, p -> named_struct('m', p.m, 'r', p.r,
    'is_full', {_IS_FULL},
    'is_new', {_IS_FULL} AND coalesce(p.r.full_ms > p.m.read_ms, true),
    'is_same', p.r.again_ms IS NOT NULL AND coalesce(
      IF({_IS_FULL}, p.r.full_ms, p.m.full_ms) >= p.r.since_ms
      AND p.r.again_ms > IF({_IS_FULL}, p.r.full_ms, p.m.read_ms), false)))"""


def _member(is_full: str, is_new: str, is_same: str) -> str:
    """SQL of a replica after its row: told in full, by a new reading; read again unchanged."""

    def pushed(two: str, one: str, none: str) -> str:
        return f"IF({is_new} AND {is_same}, {two}, IF({is_new} OR {is_same}, {one}, {none}))"

    return struct_of(
        "p",
        broker="coalesce(p.m.broker, p.r.broker)",
        full_ms=f"IF({is_full}, p.r.full_ms, p.m.full_ms)",
        round_ms=f"""greatest(IF({is_full}, p.r.round_ms, p.m.round_ms), p.r.again_round_ms,
      IF({is_full} AND NOT {is_new}, p.m.round_ms, NULL))""",
        log_end_offset=f"IF({is_full}, p.r.log_end_offset, p.m.log_end_offset)",
        size_bytes=f"IF({is_full}, p.r.size_bytes, p.m.size_bytes)",
        segments=f"IF({is_full}, p.r.segments, p.m.segments)",
        read_ms=f"IF({is_same}, p.r.again_ms, IF({is_full}, p.r.full_ms, p.m.read_ms))",
        before_ms=pushed("p.r.full_ms", "p.m.read_ms", "p.m.before_ms"),
        before_end=pushed("p.r.log_end_offset", "p.m.log_end_offset", "p.m.before_end"),
        oldest_ms=pushed("p.m.read_ms", "p.m.before_ms", "p.m.oldest_ms"),
        oldest_end=pushed("p.m.log_end_offset", "p.m.before_end", "p.m.oldest_end"),
        is_full=is_full,
        is_same=is_same,
        is_fresh=f"{is_new} OR {is_same}",
    )


_MEMBERS: Final = f"""filter(transform({_JUDGED}, p -> IF(p.is_new AND NOT p.is_same,
    {_member("true", "true", "false")}, {_member("p.is_full", "p.is_new", "p.is_same")})),
    x -> x.round_ms >= coalesce(element_at(complete, x.broker), 0L) AND x.full_ms IS NOT NULL)"""
"""The usual case stands by itself: its conditions fold away."""
_MERGED: Final = f"""
WITH met AS (
  SELECT /*+ SHUFFLE_HASH(k) */ j.* EXCEPT (members, rows), j.members AS m, j.rows AS r,
    k.complete, k.fenced, k.lost, k.told_ms, k.patience
  FROM {{joined}} AS j LEFT JOIN {{brokers}} AS k ON j.cluster = k.cluster),
merged AS (SELECT * EXCEPT (m, r), {_MEMBERS} AS members FROM met)
SELECT *, {_of("view_broker")} AS viewer, {_of("view.broker")} AS new_viewer,
  {_of("log_broker")} AS logger, {_of("log.broker")} AS new_logger
FROM merged
"""  # noqa: S608


def _takes(new: str, old: str, order: str, old_order: str) -> str:
    """SQL: what is told anew replaces what the same broker told, and what nobody stands for."""
    return f"""coalesce({new}.is_full, false) AND ({old} IS NULL OR {old}.is_full
      OR coalesce({order} >= {old_order}, true))"""


def _order(first: str, second: str, read_ms: str) -> str:
    return f"named_struct('first', {first}, 'second', {second}, 'ms', {read_ms})"


_TAKES_VIEW: Final = _takes(
    *("new_viewer", "viewer"),
    _order("view.leader_epoch", "view.leader = view.broker", "view.read_ms"),
    _order("leader_epoch", "told_leader = view_broker", "view_ms"),
)
_TAKES_LOG: Final = "log.broker >= 0 AND " + _takes(
    *("new_logger", "logger"),
    _order("log.leads", "log.leader_epoch", "log.read_ms"),
    _order("log_leads", "log_epoch", "read_ms"),
)
"""Who tells of an orphan knows metadata, not its log: what the last leader said stays."""
_OF_VIEW: Final = tuple(name for name in VIEW if name not in ("leader", "min_isr"))
_OF_LOG: Final = (
    *(name for name in LOG if name not in ("leader_epoch", "log_points", *READING)),
    *("high_watermark", "log_end_offset", "size_bytes"),
)


def _chosen(takes: str, row: str, *names: str) -> str:
    return ", ".join(f"IF({takes}, {row}.{name}, {name}) AS {name}" for name in names)


_TOLD_READING: Final = struct_of("log", *READING)
_SAME_READING: Final = struct_of(
    "same",
    read_ms="logger.read_ms",
    broker_epoch="IF(takes_log, log.broker_epoch, get(ends, 0).broker_epoch)",
    high_watermark="IF(takes_log, log.high_watermark, high_watermark)",
    log_end_offset="IF(takes_log, log.log_end_offset, log_end_offset)",
    size_bytes="IF(takes_log, log.size_bytes, size_bytes)",
    bytes_in="IF(takes_log, log.bytes_in, get(ends, 0).bytes_in)",
    bytes_out="IF(takes_log, log.bytes_out, get(ends, 0).bytes_out)",
)
_BROUGHT: Final = f"""concat(
    IF(logger.is_same AND log_leads, array({_SAME_READING}), array()),
    IF(log.leads AND log.broker = log_broker, array({_TOLD_READING}), array()))"""
_ENDS: Final = f"""slice(IF(size(brought) = 0, ends, IF(size(ends) = 0, brought,
    IF(brought[size(brought) - 1].read_ms > ends[0].read_ms, concat(brought, ends),
      sort_array(array_distinct(concat(brought, ends)), false)))), 1, {READINGS_MAX})"""
_CHOSEN: Final = f"""
WITH judged AS (
  SELECT *, {_TAKES_VIEW} AS takes_view, {_TAKES_LOG} AS takes_log FROM {{merged}}),
logged AS (
  SELECT * EXCEPT (logger, log_broker, log_leads, log_epoch, ends),
    IF(takes_log, new_logger, logger) AS logger, IF(takes_log, log.broker, log_broker)
      AS log_broker, IF(takes_log, log.leads, log_leads) AS log_leads,
    IF(takes_log, log.leader_epoch, log_epoch) AS log_epoch,
    IF(ends IS NULL OR takes_log AND NOT log.broker <=> log_broker, array(), ends) AS ends
  FROM judged),
told AS (
  SELECT * EXCEPT (viewer, view_broker, view_ms, told_leader, min_isr, {", ".join(_OF_VIEW)},
      {", ".join(_OF_LOG)}, read_ms, isr_shrinks, isr_expands, log_points, points, starts),
    isr AS old_isr, isr_shrinks AS old_shrinks, isr_expands AS old_expands,
    log_points AS old_log_points, points AS old_points, starts AS old_starts,
    IF(takes_view, view.broker, view_broker) AS view_broker,
    coalesce(IF(takes_view, new_viewer, viewer).read_ms, view_ms) AS view_ms,
    IF(takes_view, view.leader, coalesce(told_leader, leader)) AS told_leader,
    {_chosen("takes_view", "view", *_OF_VIEW)},
    coalesce(IF(takes_view, view.min_isr, NULL), min_isr) AS min_isr,
    {_chosen("takes_log", "log", *_OF_LOG)},
    coalesce(logger.read_ms, read_ms) AS read_ms,
    coalesce(logger.is_fresh, false) AS is_fresh, {_BROUGHT} AS brought
  FROM logged)
SELECT * EXCEPT (brought, ends, view, new_viewer, new_logger, logger), {_ENDS} AS ends FROM told
"""  # noqa: S608

_IS_DELETED: Final = f"""size(replicas) > size(members) AND exists(replicas, b ->
    NOT array_contains(members.broker, b)
    AND element_at(complete, b) BETWEEN view_ms
      + greatest({MISSING_MS}L, coalesce(element_at(patience, view_broker), 0L))
      AND {_NEVER_BACK_MS}L)"""
_LOST_MS: Final = "array_max(transform(replicas, b -> coalesce(element_at(lost, b), 0L)))"
"""Since when no broker of the replicas is alive; beyond ``_NEVER_BACK_MS``: one of them is."""
_IS_TOLD: Final = "exists(members, m -> m.broker < 0)"
"""Whether whoever tells of all orphans has told of this one."""
_IS_PARTITION: Final = f"""CASE
    WHEN told_ms > 0 AND (is_offline OR NOT exists(members, m -> m.broker >= 0))
      AND {_LOST_MS} < {_NEVER_BACK_MS}L
      THEN {_IS_TOLD} OR {_LOST_MS} + {MISSING_MS} >= told_ms
    ELSE size(members) > 0 AND NOT coalesce({_IS_DELETED}, false) END"""
"""Of an orphan metadata alone says whether it exists, as soon as it has been told of it."""


def _is_earlier(place: int) -> str:
    """SQL: this reading is of the same run of the broker as the last."""
    return f"""get(ends, {place}).broker_epoch = last.broker_epoch
      AND get(ends, {place}).read_ms < last.read_ms"""


_BASE: Final = (
    "CASE "
    + "\n    ".join(
        f"WHEN {_is_earlier(place)} AND get(ends, {place}).read_ms >= last.read_ms"
        f" - {RATE_WINDOW_MS} THEN get(ends, {place})"
        for place in reversed(range(1, READINGS_MAX))
    )
    + "\n    ".join(
        f" WHEN {_is_earlier(place)} THEN get(ends, {place})" for place in range(1, READINGS_MAX)
    )
    + " END"
)
"""The oldest within the window, or the one before the last."""
_RATED: Final = f"""
WITH judged AS (
  SELECT *, coalesce(told_leader < 0 OR element_at(fenced, told_leader) > view_ms
      OR element_at(complete, told_leader) > {_NEVER_BACK_MS}L, false) AS is_offline
  FROM {{chosen}}),
present AS (
  SELECT * EXCEPT (complete, fenced, lost, told_ms, patience), {_IS_PARTITION} AS is_partition,
    get(ends, 0) AS last
  FROM judged)
SELECT *, {_BASE} AS base FROM present
"""  # noqa: S608


def _rate(counter: str) -> str:
    """SQL of a counter's rate; null where it is unknown or was begun anew."""
    return f"""IF(last.{counter} >= base.{counter},
      (last.{counter} - base.{counter}) / span_s, NULL)"""


def _behind(prefix: str, end: str) -> str:
    """SQL: records that a follower's reading is behind the leader's earliest one after it."""
    later = f"filter(ends, e -> e.read_ms >= m.{prefix}_ms)"
    return f"try_element_at({later}, -1).log_end_offset - m.{end}"


_FOLLOWER_LAG: Final = f"""coalesce({_behind("read", "log_end_offset")},
      {_behind("before", "before_end")}, {_behind("oldest", "oldest_end")})"""
_BEHIND: Final = f"transform(members, m -> IF(m.broker = told_leader, 0L, {_FOLLOWER_LAG}))"
_CELL: Final = "shiftleft(1L, CAST(log2(greatest((last.read_ms - p.ms) / 2, 1)) AS INT))"
_NOW_POINT: Final = "array(named_struct('ms', last.read_ms, 'offset', last.high_watermark))"
_THINNED: Final = f"""slice(filter(concat({_NOW_POINT}, old_points), (p, i) -> i = 0
      OR get(old_points, i) IS NULL OR p.ms DIV {_CELL} != get(old_points, i).ms DIV {_CELL}),
    1, {POINTS_KEPT})"""
_POINTS: Final = f"""IF(is_fresh AND last IS NOT NULL AND coalesce(
    last.read_ms > old_points[0].ms AND last.high_watermark >= old_points[0].offset, true),
  IF(size(old_points) >= {POINTS_MAX}, {_THINNED}, concat({_NOW_POINT},
    coalesce(old_points, array()))),
  IF(last.high_watermark < old_points[0].offset, {_NOW_POINT}, coalesce(old_points, array())))"""
"""Every reading is a point until there are as many as can be. Then they are thinned: the older
a point, the longer the time that it stands for: in the cell of 2^n milliseconds that is a quarter
to half of its age, only the oldest stays. (``old_points[i]`` is the next older of point i of the
longer array.) A log that was begun anew begins its points anew."""
_LOG_POINTS: Final = """coalesce(IF(takes_log, log.log_points, NULL),
    IF(coalesce(last.high_watermark < try_element_at(old_log_points, -2), false), NULL,
      old_log_points))"""
"""What the source has told last; of a log that was begun anew, nothing."""
_START: Final = "named_struct('ms', read_ms, 'offset', log_start_offset)"
_STARTS: Final = f"""IF(old_starts.b.ms IS NULL OR log_start_offset < old_starts.b.offset,
    named_struct('a', {_START}, 'b', {_START}),
    IF(read_ms - old_starts.b.ms >= {START_WINDOW_MS // 2},
      named_struct('a', old_starts.b, 'b', {_START}), old_starts))"""
_SAID: Final = (
    *("view_broker", "view_ms", "told_leader", *_OF_VIEW, "min_isr"),
    *("log_broker", "log_leads", "log_epoch", *_OF_LOG, "read_ms", "is_fresh", "ends"),
)
_TOLD: Final = f"""
WITH spanned AS (
  SELECT *, (last.read_ms - base.read_ms) / 1000.0D AS span_s FROM {{rated}})
SELECT cluster, topic, partition, is_partition, {", ".join(_SAID)},
  IF(is_offline, -1, told_leader) AS leader,
  IF(is_offline, 0.0D, {_rate("high_watermark")}) AS in_records_per_s,
  IF(is_offline, 0.0D, IF(last.bytes_in IS NULL, {_rate("size_bytes")}, {_rate("bytes_in")}))
    AS in_bytes_per_s,
  IF(is_offline, 0.0D, {_rate("bytes_out")}) AS out_bytes_per_s,
  coalesce(old_shrinks, 0L) + IF(size(array_except(old_isr, isr)) > 0, 1, 0) AS isr_shrinks,
  coalesce(old_expands, 0L) + IF(size(array_except(isr, old_isr)) > 0, 1, 0) AS isr_expands,
  {_POINTS} AS points, {_LOG_POINTS} AS log_points, {_STARTS} AS starts,
  members, transform(members.broker, b -> array_contains(isr, b)) AS in_sync, {_BEHIND} AS behind
FROM spanned
"""  # noqa: S608


def newest_partitions(
    rows: DataFrame, state: DataFrame, known: DataFrame, *, is_single: bool
) -> DataFrame:
    """One row per partition.

    ``rows``: ``schema.GATHERED``. ``state``: the answer before, as ``schema.PARTITION_STATE``.
    ``known``: per broker the begin of its newest complete round, when it was last seen fenced,
    since when it is lost, and when its cluster's orphans were told of last; who tells of orphans
    is a broker of its own there (``slot.known_frame``). ``is_single``: each of them is one
    partition, and so is the answer: nothing needs to be shuffled.

    The answer has the columns of ``PARTITIONS`` (only where ``is_partition``), those of the
    state, ``is_fresh``, and beside ``members`` whether each is ``in_sync`` and how many records
    it is ``behind``. Who leads is told by the row of the newest leader epoch, whoever reported it;
    sizes and offsets by the newest row of a leader.
    """
    session = rows.sparkSession
    joined = session.sql(_JOINED, rows=rows, state=state)
    # A full outer join of single partitions is one, but Spark does not know it.
    joined = joined.coalesce(1) if is_single else joined
    brokers = session.sql(_KNOWN, known=known)
    merged = session.sql(_MERGED, joined=joined, brokers=brokers)
    chosen = session.sql(_CHOSEN, merged=merged)
    rated = session.sql(_RATED, chosen=chosen)
    return session.sql(_TOLD, rated=rated)
