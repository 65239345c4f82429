"""The table of commits: a row per group and partition that it committed or owns."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import FloatColumn, IntColumn, floats, ints
from control.model.finding_rules import Evidence, commit_log_starts, commit_logs
from control.model.status import (
    BEYOND,
    GROUP_SEVERITIES,
    NO_COMMIT,
    RANKS,
    UNJUDGED,
    VELOCITY_DEAD_BAND_RECORDS_PER_S,
    words_of,
)
from control.views.format import plural_text
from control.views.tables import arrow, cells, units
from control.views.tables.cells import NEVER_MS
from control.views.tables.column import Table, column, name_column, worded
from control.views.tables.partitions import STATUSES, partition_path
from control.views.tables.rows import Cell, Tone
from spark_metrics.window.totals import has_lag

LAG_HELP: Final = "Records not read: high watermark less committed offset"
LAG_TIME_HELP: Final = "How old the next unread record is"
VELOCITY_HELP: Final = "How fast lag grows (+) or shrinks (−)"
CLEARS_HELP: Final = "When lag reaches 0 at this pace"
CONSUMES_HELP: Final = "Records per second by which the committed offset moves"
LOSES_HELP: Final = "When retention deletes the next unread record, at this pace; – none waits"
SHARE_GROUP: Final = "share"
Record = Mapping[str, Any]


def _has_lag(record: Record) -> bool:
    """Where nothing is committed, or beyond the log's end, there is no lag to speak of."""
    return record["committed_offset"] is not None and record["status"] != BEYOND


def _if_lagging(cell: Callable[[Record], Cell]) -> Callable[[Record], Cell]:
    return lambda record: cell(record) if _has_lag(record) else cells.NOTHING


def _lag_cell(record: Record) -> Cell:
    cell = cells.lag_cell(record["lag"], has_group=_has_lag(record))
    return cells.at_most(cell) if record["is_bound"] else cell


def _readable_cell(record: Record) -> Cell:
    is_beyond = record["status"] == BEYOND
    return cells.NOTHING if is_beyond else cells.count_cell(record["readable"])


def _committed_cell(record: Record) -> Cell:
    committed = record["committed_offset"]
    is_missing = committed is None
    return Cell(None, "no commit", Tone.MUTED) if is_missing else cells.count_cell(committed)


COMMITS: Final = Table(
    name="lags",
    about="A row per partition that a group committed or owns, the worst first",
    key=lambda record: f"{record['group_id']} {record['topic']}-{record['partition']}",
    path=partition_path,
    searched="name",
    example="lag>10000 broker:102 stuck>5m",
    columns=(
        name_column("topic", "topic", rank=1, filter="topic"),
        column("partition", "partition", units.ID, rank=1, filter="partition"),
        column("status", "status", units.TEXT, rank=1, source="verdict", sort="judged_rank",
               cell=lambda record: cells.group_status_cell(record["status"]),
               filter="status", filter_on=STATUSES),
        column("lag", "lag", units.COUNT,
               f"{LAG_HELP}; – without a commit. Of a share group as its broker tells, or ≤ the "
               "most that it can be",
               rank=1, cell=_lag_cell,
               filter="lag"),
        column("readable", "to read", units.COUNT,
               "Lag less what is deleted and what no consumer gets; without a commit, the whole "
               "log",
               cell=_readable_cell, filter="readable"),
        column("lag_time", "time lag", units.DURATION,
               f"{LAG_TIME_HELP}; ± as far as it may be off", rank=2, source="lag_ms",
               cell=_if_lagging(
                   lambda it: cells.lag_time_cell(it["lag_ms"], it["time_lag_error_ms"])),
               filter="time"),
        column("velocity", "lag trend", units.RECORD_RATE, VELOCITY_HELP, rank=2,
               source="lag_records_per_s",
               cell=_if_lagging(
                   lambda it: cells.velocity_cell(it["lag_records_per_s"], it["lag"])),
               filter="trend"),
        column("clears", "clears in", units.DURATION, CLEARS_HELP, source="clears_ms",
               cell=_if_lagging(lambda it: cells.clears_cell(it["clears_ms"], it["status"])),
               filter="clears"),
        column("loses", "data loss in", units.DURATION,
               LOSES_HELP, rank=2, source="retention_risk_ms",
               cell=_if_lagging(
                   lambda it: cells.loses_cell(it["retention_risk_ms"], it["waiting"])),
               filter="loses", is_time_left=True),
        column("committed", "committed", units.OFFSET, "Committed offset", rank=2,
               source="committed_offset", cell=_committed_cell),
        column("end", "end", units.OFFSET, "Earliest high watermark read at or after the commit",
               source="end_offset"),
        column("consumed", "consumes", units.RECORD_RATE, CONSUMES_HELP,
               source="consumed_records_per_s",
               cell=_if_lagging(lambda it: cells.record_rate_cell(it["consumed_records_per_s"])),
               filter="consumes"),
        column("stuck", "stuck for", units.DURATION,
               "How long its offset has stood still, with lag",
               source="stuck_ms", cell=lambda it: cells.stuck_cell(it["stuck_ms"], it["status"]),
               filter="stuck"),
        column("leader", "leader", units.ID, sort="led_by", filter="leader broker",
               cell=lambda it: cells.leader_cell(it["leader"])),
        name_column("member", "member", "Member that owns the partition", rank=2,
                    source="member_id", filter="member",
                    cell=worded(lambda it: it["member_id"])),
        name_column("status_unknown_because", "no verdict because",
                    "Why there is no verdict", rank=2, source="unjudged",
                    cell=worded(lambda it: it["unjudged"])),
    ),
    unlisted=(name_column("group", "group", rank=1, source="group_id", filter="group"),),
)  # fmt: skip
GROUPS_OF_PARTITION: Final = COMMITS.only(
    "group", *(it.id for it in COMMITS.without("topic", "partition", "leader"))
)
"""The same for one partition: a line per group."""


def commit_table(evidence: Evidence) -> pa.Table:
    """One row per group and partition that it committed or owns; worst first, then most lag.

    Adds to the store's columns: has_lag (known or not; a commit is there, within the log),
    is_bound (the lag of a share group that no broker tells), name,
    status, statuses, rank, verdict (the status, null where there is none) and unjudged (why),
    lag_ms (the job's), clears_ms, readable (records that are there to read: lag less what
    is lost and what no consumer gets, without a commit all that the log holds), waiting (lag
    less what no consumer gets), leader.

    A commit beyond the end of the log has no lag, nor what follows from it.
    """
    commits, partitions = evidence.snapshot.commits, evidence.snapshot.partitions
    place = evidence.snapshot.commit_places
    leaders = np.append(ints(partitions["leader"]), -1)[place]
    records = pc.subtract(partitions["high_watermark"], partitions["log_start_offset"])
    held = records.take(pa.array(place, mask=place < 0))
    ranks = evidence.commit_ranks
    words = words_of(ranks, GROUP_SEVERITIES)
    is_dead = pc.is_valid(evidence.unjudged).to_numpy(zero_copy_only=False)
    has_commit = pc.is_valid(commits["committed_offset"]).to_numpy()
    inside = has_lag(commits)
    is_beyond = has_commit & ~inside.to_numpy()
    lag = np.where(is_beyond, np.nan, floats(commits["lag"]))
    stuck_ms = evidence.now_ms - floats(commits["stuck_since_ms"])
    told_ms = floats(commits["time_lag_ms"])
    time_ms = np.where((lag == 0) & np.isnan(told_ms), 0.0, told_ms)
    lost = _lost(commits, commit_log_starts(evidence.snapshot))
    nobodys = _for_nobody(commits, commit_logs(evidence.snapshot, "readable_offset"))
    waiting = pc.if_else(inside, pc.subtract(commits["lag"], nobodys), None)
    left = pc.subtract(waiting, lost)
    readable = pc.if_else(pa.array(has_commit), left, held)
    risk_ms = np.where(ranks == RANKS["LOST"], 0.0, floats(commits["retention_risk_ms"]))
    shares = evidence.snapshot.groups.filter(
        pc.equal(evidence.snapshot.groups["group_type"], SHARE_GROUP)
    )
    is_bound = pc.and_(
        pc.is_in(commits["group_id"], shares["group_id"]), pc.is_null(commits["told_lag"])
    )
    added = {
        "has_lag": inside,
        "is_bound": pc.and_kleene(is_bound, pc.greater(commits["lag"], 0)),
        "name": pc.binary_join_element_wise(
            commits["group_id"], arrow.partition_names(commits), " "
        ),
        "status": words,
        "statuses": pc.binary_join_element_wise("", words, "", " "),
        "rank": pa.array(ranks, pa.int32()),
        "judged_rank": arrow.judged_ranks(ranks, words),
        **_verdicts(words, _reasons(words, readable, evidence.unjudged)),
        "lag": pc.if_else(pa.array(is_beyond), pa.scalar(None, pa.int64()), commits["lag"]),
        "lag_ms": arrow.nullable(np.where(is_dead | is_beyond, np.nan, time_ms)),
        "clears_ms": arrow.nullable(clears_ms(lag, floats(commits["lag_records_per_s"]))),
        "stuck_ms": arrow.nullable(stuck_ms),
        "retention_risk_ms": arrow.nullable(np.where(inside.to_numpy(), risk_ms, np.nan)),
        **{name: pc.if_else(inside, commits[name], None) for name in _SPEEDS},
        "readable": readable,
        "waiting": waiting,
        "leader": pa.array(leaders),
        "led_by": arrow.led_by(leaders),
    }
    made = arrow.with_columns(commits, added)
    order = ["group_id", "rank", "-lag", arrow.INTERNAL, "topic", "partition"]
    return arrow.sorted_by(made, order)


_SPEEDS: Final = ("lag_records_per_s", "consumed_records_per_s")
"""They say nothing where there is no lag."""


def _reasons(words: pa.Array, readable: Any, reasons: pa.Array) -> pa.Array:
    """Why there can be no verdict, and of what has no commit what is there to read."""
    rows = np.flatnonzero(np.asarray(words, dtype=object) == NO_COMMIT)
    if not rows.size:
        return reasons
    counts = (plural_text(it, "record") for it in readable.take(pa.array(rows)).to_pylist())
    told = [f"nothing committed; {count} there to read" for count in counts]
    of_commits = pa.array(told, pa.string()).take(_places(rows, len(words)))
    return pc.coalesce(reasons, of_commits)


def _places(rows: IntColumn, count: int) -> pa.Array:
    """Place of each row among these; null: it is none of them."""
    places = np.full(count, -1)
    places[rows] = np.arange(rows.size)
    return pa.array(places, mask=places < 0)


def _verdicts(words: pa.Array, reasons: pa.Array) -> dict[str, pa.Array]:
    """The words that are verdicts, and why the others are none: the reason that stands against
    one, or what the word itself means."""
    place = pc.index_in(words, pa.array(list(UNJUDGED)))
    meant = pa.array(list(UNJUDGED.values()), pa.string()).take(place)
    why = pc.if_else(pc.is_null(place), None, pc.coalesce(reasons, meant))
    return {"verdict": pc.if_else(pc.is_null(place), words, None), "unjudged": why}


def clears_ms(lag: FloatColumn, trend: FloatColumn) -> FloatColumn:
    """When lag is 0 at this trend; ``NEVER_MS``: not at this one; NaN: one of them is unknown."""
    falls = trend < -VELOCITY_DEAD_BAND_RECORDS_PER_S
    with np.errstate(divide="ignore", invalid="ignore"):
        left_ms = np.where(falls, lag / -trend * 1000.0, NEVER_MS)
    return np.where(lag == 0, 0.0, np.where(np.isnan(lag) | np.isnan(trend), np.nan, left_ms))


def _for_nobody(commits: pa.Table, readable: IntColumn) -> Any:
    """The part of each lag that no consumer gets."""
    first = pc.max_element_wise(pa.array(readable), commits["committed_offset"])
    tail = pc.max_element_wise(pc.subtract(commits["end_offset"], first), 0)
    return pc.if_else(pa.array(readable < 0), 0, tail)


def _lost(commits: pa.Table, log_start: IntColumn) -> Any:
    """The part of each lag that is deleted: as the job tells it, else by the log's start."""
    start = pa.array(log_start, mask=log_start < 0)
    reached = pc.min_element_wise(start, commits["end_offset"], skip_nulls=False)
    gone = pc.subtract(reached, commits["committed_offset"])
    return pc.coalesce(commits["lost_records"], pc.max_element_wise(gone, 0, skip_nulls=False))
