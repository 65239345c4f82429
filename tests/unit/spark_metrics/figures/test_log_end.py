"""Points of a log's end, beside the same for each row alone."""

from hypothesis import given
from hypothesis import strategies as st

from spark_metrics.figures.log_end import START_WINDOW_MS, Start, starts, with_newest
from spark_metrics.schema import POINTS_KEPT, POINTS_MAX
from tests.support.cases import examples
from tests.unit.spark_metrics.figures.rows import (
    Row,
    falling,
    flags,
    listed,
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


def _oracle(row: Row) -> list[tuple[int, int]]:
    known = list(zip(row["points"]["ms"], row["points"]["offset"], strict=True))
    if row["now_ms"] is None or row["end"] is None:
        return known
    now = (row["now_ms"], row["end"])
    goes_on = not known or (now[0] > known[0][0] and now[1] >= known[0][1])
    if not row["is_new"] or not goes_on:
        return [now] if known and now[1] < known[0][1] else known
    return _thinned([now, *known]) if len(known) >= POINTS_MAX else [now, *known]


def _thinned(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept = []
    for place, (ms, offset) in enumerate(points):
        half = max((points[0][0] - ms) // 2, 1)
        cell = 1 << (half.bit_length() - 1)
        is_end = place in (0, len(points) - 1)
        if is_end or ms // cell != points[place + 1][0] // cell:
            kept.append((ms, offset))
    return kept[:POINTS_KEPT]


@examples(70)
@given(rows_of(points=_points(), now_ms=_MS, end=_OFFSET, is_new=st.booleans()))
def test_points_of_the_end_get_sparser_into_the_past(rows: list[Row]) -> None:
    points = [row["points"] for row in rows]
    counts, ms, offset = with_newest(
        lists(points, "ms"),
        lists(points, "offset"),
        now_ms=longs(rows, "now_ms"),
        end=longs(rows, "end"),
        is_new=flags(rows, "is_new"),
    )
    found, flat = [], list(zip(ms.to_pylist(), offset.to_pylist(), strict=True))
    for count in counts:
        found.append(flat[:count])
        flat = flat[count:]
    assert not flat
    assert found == [_oracle(row) for row in rows]


_TIMES = falling(st.integers(0, 90_000), 3).filter(lambda it: len(it) == 3)


@given(rows_of(times=_TIMES, a=_OFFSET, b=_OFFSET, now=maybe(_OFFSET), is_first=st.booleans()))
def test_two_starts_of_the_log(rows: list[Row]) -> None:
    def known(row: Row, value: int) -> int | None:
        return None if row["is_first"] else value

    each = [
        {
            "a_ms": known(it, it["times"][2]),
            "a": known(it, it["a"]),
            "b_ms": known(it, it["times"][1]),
            "b": known(it, it["b"]),
            "now_ms": it["times"][0],
            "now": it["now"],
        }
        for it in rows
    ]

    def start(name: str) -> Start:
        return Start(longs(each, f"{name}_ms"), longs(each, name))

    def oracle(row: Row) -> list[tuple[int | None, int | None]]:
        a, b, now = ((row[f"{it}_ms"], row[it]) for it in ("a", "b", "now"))
        if b[0] is None or (now[1] is not None and now[1] < b[1]):
            return [now, now]
        return [b, now] if now[0] - b[0] >= START_WINDOW_MS // 2 else [a, b]

    found = starts(start("a"), start("b"), start("now"))
    sides = [list(zip(*map(listed, side), strict=True)) for side in found]
    assert [list(it) for it in zip(*sides, strict=True)] == [oracle(row) for row in each]
