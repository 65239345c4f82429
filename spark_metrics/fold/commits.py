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
"""

from typing import Any, Final

import pyarrow as pa

from spark_metrics.figures import lag as lags
from spark_metrics.figures import speed
from spark_metrics.figures.column import Column, column, where
from spark_metrics.figures.lists import Lists
from spark_metrics.figures.pairing import Paired, Reading, pair
from spark_metrics.figures.standing import Moves, moves
from spark_metrics.figures.status import Judged, Trend, status, stuck_since
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
    told = {
        "committed_offset": offset,
        "commit_ms": commit_ms,
        "read_ms": read_ms,
        "end_offset": end_offset,
        "end_read_ms": end_read_ms,
        "lag": lag,
        "first_ms": given["first_ms"].or_else(read_ms).where(lag.is_known),
        "is_fresh": paired.is_fresh,
    }
    told |= {
        f"{name}_{field}": value
        for name, reading in zip(_WAITS, paired.waits, strict=True)
        for field, value in reading._asdict().items()
    }
    told |= _moved(given, told)
    told |= _figures(given, told, logs, log_row)
    columns = {ROW: rows[ROW]} | {name: it.values for name, it in told.items() if name[0] != "_"}
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


def _moved(given: dict[str, Column], told: dict[str, Column]) -> dict[str, Column]:
    """Moves and anchors after the reading; bases of figures by ``_speed`` and ``_trend`` names."""
    offset, old_offset = told["committed_offset"], given["committed_offset"]
    was_paired = told["is_fresh"] & given["lag"].is_known
    is_back = (was_paired & (offset < old_offset)).is_sure
    is_on = (was_paired & (offset > old_offset)).is_sure
    found = moves(
        Moves(*(given[name] for name in Moves._fields)),
        read_ms=told["read_ms"],
        offset=offset,
        old_offset=old_offset,
        end_offset=told["end_offset"],
        lag=told["lag"],
        is_back=is_back,
        is_on=is_on,
    )._asdict()
    now = {"ms": told["read_ms"], "offset": offset, "lag": told["lag"]}
    for name, (window_ms, fields) in _ANCHORS.items():
        older, newer = ({it: given[f"{name}_{end}_{it}"] for it in fields} for end in "ab")
        anchors = speed.roll(
            older,
            newer,
            now,
            window_ms=window_ms,
            is_fresh=told["is_fresh"],
            is_back=is_back,
            lag=told["lag"],
        )
        for it in fields:
            found[f"{name}_a_{it}"] = anchors.older[it]
            found[f"{name}_b_{it}"] = anchors.newer[it]
            found[f"_{name}_{it}"] = anchors.base[it]
    return found


def _figures(
    given: dict[str, Column], told: dict[str, Column], logs: pa.Table, log_row: Column
) -> dict[str, Column]:
    offset, lag, read_ms = told["committed_offset"], told["lag"], told["read_ms"]
    log_start, retention_ms, start_per_ms = (
        column(logs[name]).take(log_row)
        for name in ("log_start_offset", "retention_ms", "start_per_ms")
    )
    at_ms = lags.reached_ms(
        offset,
        lag,
        end_read_ms=told["end_read_ms"],
        points=(_lists(logs, "point_times", log_row), _lists(logs, "point_offsets", log_row)),
        log_points=_lists(logs, "log_points", log_row),
    )
    lost = lags.lost(log_start, told["end_offset"], offset).where(lag.is_known)
    time_lag_ms = lags.time_lag(told["end_read_ms"], at_ms)
    span: Any = {"now_ms": read_ms, "base_ms": told["_speed_ms"]}
    lag_per_s = speed.per_s(lag, told["_speed_lag"], **span)
    trend_ms = told["_trend_ms"]
    trend_per_s = speed.per_s(lag, told["_trend_lag"], now_ms=read_ms, base_ms=trend_ms)
    judged = Judged(
        committed_offset=offset,
        end_offset=told["end_offset"],
        log_start_offset=log_start,
        lag=lag,
        lag_per_s=lag_per_s,
        read_ms=read_ms,
        commit_ms=told["commit_ms"],
        first_ms=told["first_ms"],
        moves=Moves(*(told[name] for name in Moves._fields)),
        trend=Trend(trend_per_s, read_ms - trend_ms),
        is_owned=given["is_owned"],
        alive_ms=given["alive_ms"],
    )
    return {
        "lost_records": lost,
        "consumed_records_per_s": speed.consumed(offset, told["_speed_offset"], **span),
        "lag_records_per_s": lag_per_s,
        "time_lag_ms": time_lag_ms,
        "time_to_clear_ms": speed.time_to_clear(lag, lag_per_s),
        "retention_risk_ms": lags.retention_risk(
            offset,
            lag,
            lost,
            time_lag_ms=time_lag_ms,
            retention_ms=retention_ms,
            log_start_offset=log_start,
            start_per_ms=start_per_ms,
        ),
        "status": status(judged),
        "history_ms": read_ms - told["first_ms"],
        "stuck_since_ms": stuck_since(judged),
    }


def _lists(logs: pa.Table, name: str, rows: Column) -> Lists:
    return Lists.of(logs[name]).at(rows)
