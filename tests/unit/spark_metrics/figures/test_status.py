"""Verdicts, moves and speeds of commits, beside the same for each row alone."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_metrics.figures import speed
from spark_metrics.figures.column import Column
from spark_metrics.figures.standing import PACE_KEPT, Moves, moves
from spark_metrics.figures.status import Judged, Trend, status, stuck_since
from tests.support.cases import examples
from tests.unit.spark_metrics.figures.rows import (
    Row,
    flags,
    floats,
    listed,
    longs,
    maybe,
    rows_of,
)

_NOW_MS = 1_000_000
_AGO = st.sampled_from([0, 500, 1_500, 5_000, 12_000, 19_000, 20_000, 61_000, 70_000, 400_000]).map(
    lambda ago: _NOW_MS - ago
)
_OFFSET = st.integers(40, 44)
_SPEED = st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0])


def _verdict(row: Row) -> str | None:
    """The table of docs/reference/definitions.md, word by word."""
    offset, end, since = row["offset"], row["end"], row["still_since_ms"]
    if offset is None:
        start = row["start"]
        return "OK" if end is not None and start is not None and end <= start else None
    if row["lag"] is None:
        return None
    if end is not None and offset > end:
        if since is not None and _NOW_MS - since >= 3_000:
            return "BEYOND"
        return "OK" if row["moved_ms"] == _NOW_MS else None
    if row["lag"] == 0:
        return "OK"
    if row["first_ms"] == _NOW_MS:
        return None
    if row["rewind_from"] is not None and (row["rewind_ms"] or 0) >= _NOW_MS - 60_000:
        return "REWIND"
    return _stops(row) or ("WARN" if _falls_behind(row) else "OK")


def _stops(row: Row) -> str | None:
    since, commit_ms = row["still_since_ms"], row["commit_ms"]
    if since is None:
        return None

    def stands(least_ms: int) -> bool:
        return bool(_NOW_MS - since >= max(least_ms, 3 * (row["pace_ms"] or 0)))

    is_again = commit_ms is not None and commit_ms > since + 1_000
    is_sure = row["pace_ms"] is not None or is_again or stands(60_000)
    if stands(15_000) and is_sure and not row["is_owned"]:
        return "STOP"
    if stands(15_000) and is_again:
        return "STALL"
    is_silent = row["alive_ms"] is None or row["alive_ms"] < _NOW_MS - 60_000
    if stands(60_000) and is_silent:
        return "STALL" if commit_ms is None else "STOP"
    return "STALL" if stands(300_000) else None


def _falls_behind(row: Row) -> bool:
    grows = (row["trend_per_s"] or 0) > 1 and (row["trend_span_ms"] or 0) >= 10_000
    return bool(grows and (row["lag_per_s"] is None or row["lag_per_s"] >= -1))


def _judged(rows: list[Row]) -> Judged:
    def of(name: str) -> Column:
        return longs(rows, name)

    return Judged(
        committed_offset=of("offset"),
        end_offset=of("end"),
        log_start_offset=of("start"),
        lag=of("lag"),
        lag_per_s=floats(rows, "lag_per_s"),
        read_ms=Column(pa.array([_NOW_MS] * len(rows), pa.int64())),
        commit_ms=of("commit_ms"),
        first_ms=of("first_ms"),
        moves=Moves(*(of(name) for name in Moves._fields)),
        trend=Trend(floats(rows, "trend_per_s"), of("trend_span_ms")),
        is_owned=flags(rows, "is_owned"),
        alive_ms=of("alive_ms"),
    )


@examples(100)
@given(
    rows_of(
        offset=maybe(_OFFSET),
        end=maybe(_OFFSET),
        start=maybe(_OFFSET),
        lag=maybe(st.integers(0, 2)),
        lag_per_s=maybe(_SPEED),
        commit_ms=maybe(_AGO),
        first_ms=maybe(_AGO),
        trend_per_s=maybe(_SPEED),
        trend_span_ms=maybe(st.sampled_from([9_999, 10_000, 40_000])),
        is_owned=st.booleans(),
        alive_ms=maybe(_AGO),
        still_since_ms=maybe(_AGO),
        moved_ms=maybe(_AGO),
        pace_ms=maybe(st.sampled_from([100, 6_000, 30_000])),
        outage_ms=st.none(),
        rewind_from=maybe(_OFFSET),
        rewind_ms=maybe(_AGO),
    )
)
def test_a_verdict_is_the_first_that_applies(rows: list[Row]) -> None:
    judged = _judged(rows)
    assert listed(status(judged)) == [_verdict(row) for row in rows]
    stuck = [
        it["still_since_ms"]
        if it["lag"] and (it["still_since_ms"] or _NOW_MS) <= _NOW_MS - 10_000
        else None
        for it in rows
    ]
    assert listed(stuck_since(judged)) == stuck


@pytest.mark.parametrize(("later_ms", "verdict"), [(1_000, "OK"), (1_001, "STALL")])
def test_a_commit_counts_as_repeated_when_it_is_more_than_a_second_later(
    later_ms: int, verdict: str
) -> None:
    since_ms = _NOW_MS - 20_000
    row = {
        **{"offset": 40, "end": 44, "start": 0, "lag": 4, "lag_per_s": 0.0, "pace_ms": None},
        **{"commit_ms": since_ms + later_ms, "first_ms": 1, "still_since_ms": since_ms},
        **{"trend_per_s": None, "trend_span_ms": None, "is_owned": True, "alive_ms": _NOW_MS},
        **{"moved_ms": None, "outage_ms": None, "rewind_from": None, "rewind_ms": None},
    }
    assert listed(status(_judged([row]))) == [verdict] == [_verdict(row)]


def _moves(row: Row) -> tuple[int | None, ...]:
    offset, old, ms = row["offset"], row["old"], row["read_ms"]
    since, moved, pace = row["still_since_ms"], row["moved_ms"], row["pace_ms"]
    rewind = row["rewind_from"]
    stays = since if offset == old and since is not None else ms
    stands = stays if row["stands"] else None
    outage = row["outage_ms"]
    if offset > old:
        if moved is not None:
            waited = 0 if since is None else ms - since
            usual = max(15_000, 3 * (pace or 0))
            is_outage = waited > (60_000 if pace is None else usual)
            told = min(waited, outage) if is_outage and outage is not None else waited
            if not is_outage or outage is not None:
                pace = max(told, told if pace is None else int(pace * PACE_KEPT))
            fading = int((outage or 0) * PACE_KEPT)
            outage = waited if is_outage else fading if fading > usual else None
        moved = ms
    end = row["end"]
    if offset < old <= end:
        return stands, moved, pace, outage, max(rewind or 0, old), ms
    is_over = rewind is not None and not offset < rewind <= end
    return stands, moved, pace, outage, None if is_over else rewind, row["rewind_ms"]


@given(
    rows_of(
        offset=_OFFSET,
        old=_OFFSET,
        end=_OFFSET,
        stands=maybe(st.booleans()),
        read_ms=_AGO,
        still_since_ms=maybe(_AGO),
        moved_ms=maybe(_AGO),
        pace_ms=maybe(st.integers(0, 50_000)),
        outage_ms=maybe(st.integers(15_000, 400_000)),
        rewind_from=maybe(_OFFSET),
        rewind_ms=maybe(_AGO),
    )
)
def test_moves_of_a_commit(rows: list[Row]) -> None:
    offset, old = longs(rows, "offset"), longs(rows, "old")
    found = moves(
        Moves(*(longs(rows, name) for name in Moves._fields)),
        read_ms=longs(rows, "read_ms"),
        offset=offset,
        old_offset=old,
        end_offset=longs(rows, "end"),
        stands=flags(rows, "stands"),
        is_back=offset < old,
        is_on=offset > old,
    )
    each = zip(*(listed(column) for column in found), strict=True)
    assert list(each) == [_moves(row) for row in rows]


_ANCHOR = st.fixed_dictionaries({"ms": st.integers(0, 40_000), "lag": st.integers(0, 9)})


@st.composite
def _anchors(draw: st.DrawFn) -> list[Row]:
    """Older, newer and now; the first two are unknown before the first reading."""
    three = sorted(draw(st.lists(_ANCHOR, min_size=3, max_size=3)), key=lambda it: it["ms"])
    nothing = {"ms": None, "lag": None}
    return three if draw(st.booleans()) else [nothing, nothing, three[2]]


@given(rows_of(anchors=_anchors(), is_fresh=st.booleans(), is_back=st.booleans()))
def test_anchors_of_speed(rows: list[Row]) -> None:
    def side(place: int) -> dict[str, Column]:
        return {it: longs([row["anchors"][place] for row in rows], it) for it in ("ms", "lag")}

    now, window_ms = side(2), speed.SPEED_WINDOW_MS
    found = speed.roll(
        side(0),
        side(1),
        now,
        window_ms=window_ms,
        is_fresh=flags(rows, "is_fresh"),
        is_back=flags(rows, "is_back"),
        lag=now["lag"],
    )

    def oracle(row: Row) -> list[int | None]:
        older, newer, reading = (it["ms"] for it in row["anchors"])
        is_first = older is None or row["is_back"]
        near = not is_first and (reading - older <= window_ms or reading <= newer)
        base = None if is_first else older if near else newer
        if row["is_fresh"] and is_first:
            return [reading, reading, base]
        if row["is_fresh"] and newer is not None and reading - newer >= window_ms // 2:
            return [newer, reading, base]
        return [older, newer, base]

    each = zip(*(listed(anchor["ms"]) for anchor in found), strict=True)
    assert [list(it) for it in each] == [oracle(row) for row in rows]


@given(rows_of(now=maybe(_OFFSET), base=maybe(_OFFSET), lag=maybe(_OFFSET), per_s=maybe(_SPEED)))
def test_speeds_and_when_lag_is_gone(rows: list[Row]) -> None:
    now, base = longs(rows, "now"), longs(rows, "base")
    one, three = (Column(pa.array([ms] * len(rows), pa.int64())) for ms in (1_000, 3_000))
    expected = [
        None
        if None in (it["now"], it["base"]) or it["now"] < it["base"]
        else (it["now"] - it["base"]) / 2
        for it in rows
    ]
    found = speed.consumed(now, base, now_ms=three, base_ms=one)
    assert listed(found) == pytest.approx(expected)
    assert listed(speed.per_s(now, base, now_ms=one, base_ms=one)) == [None] * len(rows)
    clears = [
        None
        if it["lag"] is None or (it["per_s"] or 0) >= -1
        else int(it["lag"] / -it["per_s"] * 1_000)
        for it in rows
    ]
    assert listed(speed.time_to_clear(longs(rows, "lag"), floats(rows, "per_s"))) == clears
