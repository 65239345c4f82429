"""Lag, what of it is lost, its age and its risk, beside the same for each row alone."""

from hypothesis import given
from hypothesis import strategies as st

from spark_metrics.figures import lag as lags
from tests.unit.spark_metrics.figures.rows import (
    Row,
    falling,
    floats,
    listed,
    lists,
    longs,
    maybe,
    rows_of,
)

_OFFSET = st.integers(0, 40)
_MS = st.integers(0, 2_000)


@given(rows_of(end=maybe(_OFFSET), offset=maybe(_OFFSET), start=maybe(_OFFSET)))
def test_lag_and_what_of_it_is_lost(rows: list[Row]) -> None:
    end, offset, start = (longs(rows, name) for name in ("end", "offset", "start"))
    known = [None not in (it["end"], it["offset"]) for it in rows]
    expected = [
        max(it["end"] - it["offset"], 0) if is_known else None
        for it, is_known in zip(rows, known, strict=True)
    ]
    assert listed(lags.lag(end, offset)) == expected
    lost = [
        max(min(it["start"], it["end"]) - it["offset"], 0)
        if None not in (it["start"], it["end"], it["offset"])
        else None
        for it in rows
    ]
    found = listed(lags.lost(start, end, offset).where(end.is_known))
    assert found == lost


@st.composite
def _log(draw: st.DrawFn) -> Row:
    """Points of the log's end (newest first), and of its records (oldest first)."""
    offsets = draw(falling(_OFFSET, 8))
    times = draw(st.lists(_MS, min_size=len(offsets), max_size=len(offsets), unique=True))
    records = sorted(draw(falling(_OFFSET, 4)))
    stamps = sorted(draw(st.lists(_MS, min_size=len(records), max_size=len(records))))
    pairs = zip(records, stamps, strict=True)
    return {
        "times": sorted(times, reverse=True),
        "offsets": offsets,
        "log_points": [it for pair in pairs for it in pair],
    }


def _line(offset: int, older: tuple[int, int], newer: tuple[int, int]) -> int:
    """The time of the offset; (time, offset) each."""
    pace = (newer[0] - older[0]) / (newer[1] - older[1])
    return older[0] + int((offset - older[1]) * pace)


def _reached_ms(row: Row) -> int | None:
    offset, lag = row["offset"], row["lag"]
    if offset is None or lag is None:
        return None
    if lag == 0:
        return int(row["end_ms"])
    points = list(zip(row["log"]["times"], row["log"]["offsets"], strict=True))
    later = [it for it in points if it[1] > offset]
    if len(later) < len(points):
        return _line(offset, points[len(later)], later[-1]) if later else None
    flat = row["log"]["log_points"]
    records = list(zip(flat[1::2], flat[::2], strict=True))
    earlier = [it for it in records if it[1] <= offset]
    if not earlier or len(earlier) == len(records):
        return None
    return _line(offset, earlier[-1], records[len(earlier)])


@given(rows_of(offset=_OFFSET, lag=maybe(st.integers(0, 2)), end_ms=_MS, log=_log()))
def test_when_the_log_ended_where_the_commit_stands(rows: list[Row]) -> None:
    logs = [row["log"] for row in rows]
    found = lags.reached_ms(
        longs(rows, "offset"),
        longs(rows, "lag"),
        end_read_ms=longs(rows, "end_ms"),
        points=(lists(logs, "times"), lists(logs, "offsets")),
        log_points=lists(logs, "log_points"),
    )
    assert listed(found) == [_reached_ms(row) for row in rows]


def _risk(row: Row) -> int | None:
    if not row["lag"]:
        return None
    if row["lost"]:
        return 0
    each = []
    if row["age_ms"] is not None and (row["retention_ms"] or 0) > 0:
        each.append(max(0, row["retention_ms"] - row["age_ms"]))
    if row["per_ms"] is not None and row["per_ms"] > 0 and row["start"] is not None:
        each.append(int((row["offset"] - row["start"]) / row["per_ms"]))
    return min(each, default=None)


@given(
    rows_of(
        offset=_OFFSET,
        lag=maybe(st.integers(0, 2)),
        lost=maybe(st.integers(0, 1)),
        start=maybe(_OFFSET),
        age_ms=maybe(_MS),
        retention_ms=maybe(st.sampled_from([-1, 500, 1_500])),
        per_ms=maybe(st.sampled_from([-0.5, 0.0, 0.25, 2.0])),
    )
)
def test_until_records_are_deleted_unread(rows: list[Row]) -> None:
    found = lags.retention_risk(
        longs(rows, "offset"),
        longs(rows, "lag"),
        longs(rows, "lost"),
        time_lag_ms=longs(rows, "age_ms"),
        retention_ms=longs(rows, "retention_ms"),
        log_start_offset=longs(rows, "start"),
        start_per_ms=floats(rows, "per_ms"),
    )
    assert listed(found) == [_risk(row) for row in rows]
