"""Points of a log's end and its starts, beside the same for each row alone."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_metrics.figures.log_end import with_newest, with_start
from spark_metrics.schema import POINTS_KEPT, POINTS_MAX, STARTS_MAX
from tests.support.cases import examples
from tests.unit.spark_metrics.figures.rows import (
    Row,
    falling,
    flags,
    lists,
    longs,
    maybe,
    rows_of,
)

_MS = st.integers(1, 500_000)
_OFFSET = st.integers(0, 60)


@st.composite
def _points(draw: st.DrawFn) -> Row:
    """Times and offsets, newest first: few, or as many as can be."""
    count = draw(st.sampled_from([0, 1, 3, POINTS_MAX]))
    each = st.lists(_MS, min_size=count, max_size=count, unique=True)
    end = st.lists(_OFFSET, min_size=count, max_size=count)
    return {
        "ms": sorted(draw(each), reverse=True),
        "offset": sorted(draw(end), reverse=True),
    }


def _grown(row: Row) -> list[tuple[int, int]]:
    """The points with the new one."""
    known = list(zip(row["points"]["ms"], row["points"]["offset"], strict=True))
    if row["now_ms"] is None or row["end"] is None:
        return known
    now = (row["now_ms"], row["end"])
    goes_on = not known or (now[0] > known[0][0] and now[1] >= known[0][1])
    if not row["is_new"] or not goes_on:
        return [now] if known and now[1] < known[0][1] else known
    return [now, *known]


@examples(70)
@given(rows_of(points=_points(), now_ms=_MS, end=_OFFSET, is_new=st.booleans()))
def test_every_reading_is_a_point_until_there_are_as_many_as_can_be(rows: list[Row]) -> None:
    for found, row in zip(_points_after(rows), rows, strict=True):
        grown = _grown(row)
        if len(grown) <= POINTS_MAX:
            assert found == grown
        else:
            assert len(found) == POINTS_KEPT
            assert set(found) <= set(grown)
            assert (found[0], found[-1]) == (grown[0], grown[-1])


def _points_after(rows: list[Row]) -> list[list[tuple[int, int]]]:
    points = [row["points"] for row in rows]
    nothing = [{"error_ms": [None] * len(it["ms"])} for it in points]
    counts, ms, offset, _ = with_newest(
        {
            **{name: lists(points, name) for name in ("ms", "offset")},
            "error_ms": lists(nothing, "error_ms"),
        },
        now_ms=longs(rows, "now_ms"),
        end=longs(rows, "end"),
        is_new=flags(rows, "is_new"),
    )
    found, flat = [], list(zip(ms.to_pylist(), offset.to_pylist(), strict=True))
    for count in counts:
        found.append(flat[:count])
        flat = flat[count:]
    assert not flat
    return found


def test_bends_of_the_past_are_kept() -> None:
    """A pause of twenty minutes stays as sharp as a hundredth of its age; what is told of the rest
    is no further from the truth than it says."""
    ends = [*range(0, 1_200, 10), *[1_200] * 120, *range(1_200, 12_000, 10)]
    names = ("ms", "offset", "error_ms")
    known: list[tuple[int, ...]] = []
    for number, end in enumerate(ends):
        row = {name: [it[place] for it in known] for place, name in enumerate(names)}
        found = with_newest(
            {name: lists([row], name) for name in names},
            **{
                "now_ms": longs([{"it": 10_000 * number}], "it"),
                "end": longs([{"it": end}], "it"),
                "is_new": flags([{"it": True}], "it"),
            },
        )
        known = list(zip(*(it.to_pylist() for it in found[1:]), strict=True))
    at_pause = [ms for ms, offset, _ in known if 1_150 <= offset <= 1_250]
    assert min(at_pause) == pytest.approx(1_200_000, abs=110_000)
    assert max(at_pause) == pytest.approx(2_400_000, abs=110_000)
    for newer, older in pairwise(known):
        for number, end in enumerate(ends):
            if older[1] < end < newer[1]:
                line = older[0] + (end - older[1]) / (newer[1] - older[1]) * (newer[0] - older[0])
                assert abs(line - 10_000 * number) <= newer[2]


@given(
    rows_of(
        starts=falling(_OFFSET, STARTS_MAX),
        now=maybe(_OFFSET),
        end=maybe(_OFFSET),
        is_new=st.booleans(),
    )
)
def test_starts_of_the_log_are_remembered(rows: list[Row]) -> None:
    """Each is (when, where, end then)."""
    each = [{**it, "now_ms": 1_000} for it in rows]
    known = lists(each, "starts")
    found = with_start(
        {"ms": known, "offset": known, "end": known},
        now_ms=longs(each, "now_ms"),
        start=longs(each, "now"),
        end=longs(each, "end"),
        is_new=flags(each, "is_new"),
    )

    def oracle(row: Row) -> list[tuple[int | None, ...]]:
        before: list[tuple[int | None, ...]] = [(it, it, it) for it in row["starts"]]
        now, now_is = row["now"], (row["now_ms"], row["now"], row["end"])
        if before and now is not None and now < before[0][1]:
            return [now_is]
        if not row["is_new"] or (before and (now is None or now <= before[0][1])):
            return before
        return [now_is, *before][:STARTS_MAX]

    flat = list(zip(*(it.to_pylist() for it in found[1:]), strict=True))
    ends = list(accumulate(found.counts.tolist()))
    told = [flat[end - count : end] for end, count in zip(ends, found.counts, strict=True)]
    assert told == [oracle(row) for row in each]
