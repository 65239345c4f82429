"""Lag, what of it is lost, and its age, beside the same for each row alone."""

from hypothesis import given
from hypothesis import strategies as st

from spark_metrics.figures import lag as lags
from spark_metrics.figures.reached import LogTimes, Reached
from tests.unit.spark_metrics.figures.rows import (
    Row,
    falling,
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
        "errors": draw(st.lists(maybe(_MS), min_size=len(offsets), max_size=len(offsets))),
        "times": sorted(times, reverse=True),
        "offsets": offsets,
        "log_points": [it for pair in pairs for it in pair],
    }


def _line(offset: int, older: tuple[int, int], newer: tuple[int, int]) -> int:
    """The time of the offset; (time, offset) each."""
    pace = (newer[0] - older[0]) / (newer[1] - older[1])
    return older[0] + int((offset - older[1]) * pace)


_Bracket = tuple[tuple[int, int], tuple[int, int]]


def _brackets(row: Row) -> list[_Bracket | None]:
    """Points right before and after the offset: of readings, and of records."""
    found: list[_Bracket | None] = []
    offset, log = row["offset"], row["log"]
    points = list(zip(log["times"], log["offsets"], strict=True))[::-1]
    records = list(zip(log["log_points"][1::2], log["log_points"][::2], strict=True))
    for each in (points, records):
        place = sum(it[1] <= offset for it in each)
        found.append((each[place - 1], each[place]) if 0 < place < len(each) else None)
    return found


def _reached(row: Row) -> tuple[int | None, int | None]:
    if row["offset"] is None:
        return None, None
    by_points, by_records = _brackets(row)
    told: list[tuple[int, int]] = []
    if by_points:
        ms = _line(row["offset"], *by_points)
        said = row["log"]["errors"][row["log"]["times"].index(by_points[1][0])]
        error = max(ms - by_points[0][0], by_points[1][0] - ms)
        told.append((error if said is None else min(error, said), ms))
    if by_records:
        since, until = by_points[0][0] if by_points else 0, by_points[1][0] if by_points else 9_999
        three = (_line(row["offset"], *by_records), by_records[0][0], by_records[1][0])
        ms, first, last = (max(since, min(until, it)) for it in three)
        told.append((max(ms - first, last - ms), ms))
    if not told:
        return None, None
    error, ms = min(told, key=lambda it: it[0])
    return ms, error


@given(rows_of(offset=maybe(_OFFSET), log=_log()))
def test_when_the_log_ended_where_the_commit_stands(rows: list[Row]) -> None:
    logs = [row["log"] for row in rows]
    names = ("times", "offsets", "errors", "log_points")
    found = LogTimes(*(lists(logs, name) for name in names)).reached(longs(rows, "offset"))
    each = list(zip(listed(found.ms), listed(found.error_ms), strict=True))
    assert each == [_reached(row) for row in rows]


def test_the_closer_of_two_counts() -> None:
    def told(ms: list[int | None], error: list[int | None]) -> Reached:
        rows = [{"ms": one, "error": two} for one, two in zip(ms, error, strict=True)]
        return Reached(longs(rows, "ms"), longs(rows, "error"))

    one, other = told([1, 1, None, 1], [5, 5, None, 5]), told([2, 2, 2, None], [4, 5, 9, None])
    assert listed(one.closer(other).ms) == [2, 1, 2, 1]
