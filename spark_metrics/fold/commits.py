"""Groups' commits: figures and state after a batch, one row per group and partition. Pure.

A commit is read by the group's coordinator, an end offset by the partition's leader. Lag is only
true for an end offset read at or after the commit was, so readings wait for one. Of a share group
the broker may tell the lag itself: no other figure knows what is acknowledged beyond the start
offset. A partition that
a member owns without a commit is a row too: its committed offset is unknown, and so is its lag.

    committed_offset, lag, read_ms, …   the newest paired reading
    wait_a_…, wait_b_…                  readings that wait, the older one first
    speed_a_…, speed_b_…                anchors of speeds, trend_… of trends (``figures.speed``)
    still_since_ms … rewind_ms          ``figures.standing.Moves``
    first_ms                            the first paired reading
    reached_ms, reached_error_ms        ``figures.reached``, of an offset that it still stands at
    moved_lag, lag_growth_per_s         ``figures.speed.Growth``
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from spark_metrics.figures import lag as lags
from spark_metrics.figures import speed
from spark_metrics.figures.column import Column, column, first_of, greatest, least, where
from spark_metrics.figures.lists import Lists
from spark_metrics.figures.pairing import Paired, Reading, pair
from spark_metrics.figures.reached import LogTimes, Reached
from spark_metrics.figures.retention import LOSS_MS_MAX, Kept, Unread, time_to_loss
from spark_metrics.figures.speed import Growth, grown
from spark_metrics.figures.standing import Moves, moves
from spark_metrics.figures.status import Judged, Trend, reads_no_more, status, stuck_since
from spark_metrics.schema import ROW

_ANCHORS: Final = {
    "speed": (speed.SPEED_WINDOW_MS, ("ms", "offset", "lag")),
    "trend": (speed.TREND_WINDOW_MS, ("ms", "lag")),
}
_WAITS: Final = ("wait_a", "wait_b")


def newest_commits(rows: pa.Table, logs: pa.Table) -> pa.Table:
    """Compute figures, state and ``is_fresh`` of each row of ``schema.MET_COMMITS``.

    ``logs``: ``schema.LOGS`` of the partitions of the same batch. Names are no part of it.
    """
    given = {name: column(rows[name]) for name in rows.column_names}
    log_row = given["log_row"]
    paired = _paired(given, logs, log_row)
    read_ms, offset, commit_ms = paired.shown
    end_offset = where(paired.is_fresh, paired.end_offset, given["end_offset"])
    end_read_ms = where(paired.is_fresh, paired.end_ms, given["end_read_ms"])
    counted = given["told_lag"].or_else(lags.lag(end_offset, offset))
    lag = where(paired.is_fresh, counted, given["lag"])
    answer = {
        "committed_offset": offset,
        "commit_ms": commit_ms,
        "read_ms": read_ms,
        "end_offset": end_offset,
        "end_read_ms": end_read_ms,
        "lag": lag,
        "first_ms": given["first_ms"].or_else(read_ms).where(lag.is_known),
        "is_fresh": paired.is_fresh,
    }
    answer |= {
        f"{name}_{field}": value
        for name, reading in zip(_WAITS, paired.waits, strict=True)
        for field, value in reading._asdict().items()
    }
    answer["_readable"] = column(logs["readable_offset"]).take(log_row)
    gets_none = (offset >= answer["_readable"]).is_sure
    answer["_waits"] = ((lag > 0) & ~gets_none).where(lag.is_known)
    answer |= _moved(given, answer)
    answer |= _figures(given, answer, logs, log_row)
    columns = {ROW: rows[ROW]} | {name: it.values for name, it in answer.items() if name[0] != "_"}
    return pa.table(columns)


def _paired(given: dict[str, Column], logs: pa.Table, log_row: Column) -> Paired:
    def reading(prefix: str) -> Reading:
        return Reading(*(given[f"{prefix}_{field}"] for field in Reading._fields))

    return pair(
        reading("newest"),
        (reading("wait_a"), reading("wait_b")),
        Reading(given["read_ms"], given["committed_offset"], given["commit_ms"]),
        brings=given["brings"],
        was_paired=given["lag"].is_known,
        ends=(_lists(logs, "end_times", log_row), _lists(logs, "end_offsets", log_row)),
    )


def _moved(given: dict[str, Column], answer: dict[str, Column]) -> dict[str, Column]:
    """Moves and anchors after the reading; bases of figures by ``_speed`` and ``_trend`` names."""
    offset, old_offset = answer["committed_offset"], given["committed_offset"]
    was_paired = answer["is_fresh"] & given["lag"].is_known
    is_back = (was_paired & (offset < old_offset)).is_sure
    is_on = (was_paired & (offset > old_offset)).is_sure
    moved = moves(
        Moves(*(given[name] for name in Moves._fields)),
        read_ms=answer["read_ms"],
        offset=offset,
        old_offset=old_offset,
        end_offset=answer["end_offset"],
        stands=answer["_waits"] | (offset > answer["end_offset"]),
        is_back=is_back,
        is_on=is_on,
    )._asdict()
    growth = grown(
        Growth(given["moved_lag"], given["lag_growth_per_s"]),
        lag=answer["lag"],
        read_ms=answer["read_ms"],
        moved_ms=given["moved_ms"],
        first_ms=answer["first_ms"],
        is_on=is_on,
        is_back=is_back,
    )
    moved |= {"moved_lag": growth.lag, "lag_growth_per_s": growth.per_s}
    # Between two moves lag rises and falls by itself: the trend goes from move to move.
    is_between = answer["read_ms"] - moved["still_since_ms"] <= moved["pace_ms"]
    moved["_settled_lag"] = where(is_between & growth.lag.is_known, growth.lag, answer["lag"])
    now = {"ms": answer["read_ms"], "offset": offset, "lag": answer["lag"]}
    for name, (window_ms, fields) in _ANCHORS.items():
        if name == "trend":
            now["lag"] = moved["_settled_lag"]
        older, newer = ({it: given[f"{name}_{end}_{it}"] for it in fields} for end in "ab")
        anchors = speed.roll(
            older,
            newer,
            now,
            window_ms=window_ms,
            is_fresh=answer["is_fresh"],
            is_back=is_back,
            lag=answer["lag"],
        )
        for it in fields:
            moved[f"{name}_a_{it}"] = anchors.older[it]
            moved[f"{name}_b_{it}"] = anchors.newer[it]
            moved[f"_{name}_{it}"] = anchors.base[it]
    return moved


def _figures(
    given: dict[str, Column], answer: dict[str, Column], logs: pa.Table, log_row: Column
) -> dict[str, Column]:
    offset, lag, read_ms = answer["committed_offset"], answer["lag"], answer["read_ms"]
    waits = answer["_waits"]
    log_start = column(logs["log_start_offset"]).take(log_row)
    reached = _reached(given, answer, _log_times(logs, log_row))
    last = least(answer["end_offset"], answer["_readable"])
    lost = lags.lost(log_start, last, offset).where(lag.is_known)
    at_ms = where(~waits, answer["end_read_ms"], reached.ms)
    time_lag_ms = lags.time_lag(answer["end_read_ms"], at_ms)
    span: Any = {"now_ms": read_ms, "base_ms": answer["_speed_ms"]}
    lag_per_s = speed.per_s(lag, answer["_speed_lag"], **span)
    trend_ms = answer["_trend_ms"]
    settled_lag = answer["_settled_lag"]
    trend_per_s = speed.per_s(settled_lag, answer["_trend_lag"], now_ms=read_ms, base_ms=trend_ms)
    judged = Judged(
        committed_offset=offset,
        end_offset=answer["end_offset"],
        log_start_offset=log_start,
        lag=lag,
        lag_per_s=lag_per_s,
        read_ms=read_ms,
        commit_ms=answer["commit_ms"],
        first_ms=answer["first_ms"],
        moves=Moves(*(answer[name] for name in Moves._fields)),
        trend=Trend(trend_per_s, read_ms - trend_ms),
        is_owned=given["is_owned"],
        alive_ms=given["alive_ms"],
    )
    is_long = answer["moved_ms"] - answer["first_ms"] >= speed.GROWTH_SPAN_MS
    growth = Growth(answer["moved_lag"], answer["lag_growth_per_s"].where(is_long))
    risk_ms = _risk_ms(judged, growth, time_lag_ms, logs, log_row)
    return {
        "lost_records": lost,
        "consumed_records_per_s": speed.consumed(offset, answer["_speed_offset"], **span),
        "lag_records_per_s": lag_per_s,
        "time_lag_ms": time_lag_ms,
        "time_to_clear_ms": speed.time_to_clear(lag, lag_per_s),
        "retention_risk_ms": where(lost > 0, 0, risk_ms).where(waits),
        "reached_ms": reached.ms,
        "reached_error_ms": reached.error_ms,
        "time_lag_error_ms": reached.error_ms.where(waits),
        "status": status(judged),
        "history_ms": read_ms - answer["first_ms"],
        "stuck_since_ms": stuck_since(judged),
    }


def _reached(given: dict[str, Column], answer: dict[str, Column], log: LogTimes) -> Reached:
    """When the log ended where the commit stands: as it was known best since it stands there."""
    offset, lag = answer["committed_offset"], answer["lag"]
    is_same = given["committed_offset"].equals(offset) & (given["lag"] > 0)
    is_same = is_same & column(log.times.counts > 1)
    before = Reached(given["reached_ms"], given["reached_error_ms"]).where(is_same)
    return before.closer(log.reached(offset.where(lag > 0))).where(lag > 0)


def _risk_ms(
    judged: Judged, growth: Growth, time_lag_ms: Column, logs: pa.Table, log_row: Column
) -> Column:
    """Milliseconds until retention deletes unread records, of the rows where it may."""
    held = Kept(*(column(logs[f"kept_{name}"]) for name in Kept._fields))
    deletes = (column(logs["retention_ms"]) > 0).is_sure | held.records.is_known
    lag = judged.lag
    if not deletes.numpy().any():
        return column(pa.nulls(len(lag), pa.int64()))
    stands = reads_no_more(judged)
    per_s = where(stands, 1.0, growth.per_s).where((lag > 0) & deletes.take(log_row))
    never = first_of((per_s <= 0, LOSS_MS_MAX))
    rows = np.flatnonzero((per_s > 0).is_sure.numpy())
    if not len(rows):
        return never
    at = column(rows)
    of_log = log_row.take(at)
    ends = _lists(logs, "end_offsets", of_log), _lists(logs, "end_times", of_log)
    written = (lag / time_lag_ms).take(at)
    behind = (growth.per_s.take(at) / 1_000.0 / written).or_else(1.0)
    shares = where(stands.take(at), 1.0, least(greatest(behind, 0.0), 1.0))
    unread = Unread(
        offset=judged.committed_offset.take(at),
        start=judged.log_start_offset.take(at),
        end=ends[0].item(0),
        end_read_ms=ends[1].item(0),
        read_per_ms=(written * (-shares + 1.0)).or_else(0.0),
        shrinks_by=shares,
    )
    left_ms = time_to_loss(
        unread,
        column(logs["retention_ms"]).take(of_log),
        held=Kept(*(it.take(of_log) for it in held)),
        segments=_lists(logs, "segment_offsets", of_log),
        log=_log_times(logs, of_log),
    )
    return left_ms.spread(rows, len(lag)).or_else(never)


def _log_times(logs: pa.Table, rows: Column) -> LogTimes:
    names = ("point_times", "point_offsets", "point_errors", "log_points")
    return LogTimes(*(_lists(logs, name, rows) for name in names))


def _lists(logs: pa.Table, name: str, rows: Column) -> Lists:
    return Lists.of(logs[name]).at(rows)
