"""Which commit is paired with which end of the log, beside the same for each row alone."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spark_metrics.figures.column import Column
from spark_metrics.figures.followers import LogEnd, follower_lag
from spark_metrics.figures.pairing import Reading, pair
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

_MS = st.integers(0, 60)
_ENDS = falling(_MS, 6).map(lambda it: {"times": it, "offsets": [10 * ms for ms in it]})


@st.composite
def _readings(draw: st.DrawFn) -> list[Any]:
    """(ms, offset, commit_ms), the oldest first: shown, those that wait, the newest."""
    times = sorted(draw(st.lists(_MS, min_size=2, max_size=4, unique=True)))
    return [(ms, draw(_MS), draw(maybe(_MS))) for ms in times]


def _reading(rows: list[Row], place: int) -> Reading:
    """Place 0: shown, 1 and 2: those that wait, -1: the newest."""
    each = []
    for row in rows:
        known = row["readings"]
        waits = known[1:-1]
        found = known[place] if place in (0, -1) else (waits[place - 1 :] or [None])[0]
        each.append(found or (None, None, None))
    return Reading(*(longs([{"x": it[n]} for it in each], "x") for n in range(3)))


def _oracle(row: Row) -> tuple[Any, ...]:
    """What is shown, with which end, whether it is fresh, and what waits."""
    shown, *waits, newest = row["readings"]
    candidates = [*waits, *([newest] if row["brings"] else [])]
    ends = list(zip(row["ends"]["times"], row["ends"]["offsets"], strict=True))
    for place in reversed(range(len(candidates))):
        after = [end for end in ends if end[0] >= candidates[place][0]]
        if after:
            rest = candidates[place + 1 :]
            return candidates[place], min(after), True, _two(rest)
    return (newest if not row["was_paired"] else shown), None, False, _two(candidates)


def _two(waits: list[Any]) -> list[Any]:
    """The oldest and the newest of those that wait on."""
    kept = waits[:1] + waits[-1:] if len(waits) > 1 else waits
    return [*kept, (None, None, None), (None, None, None)][:2]


@given(rows_of(readings=_readings(), ends=_ENDS, brings=st.booleans(), was_paired=st.booleans()))
def test_a_commit_is_paired_with_the_earliest_end_after_it(rows: list[Row]) -> None:
    ends = [row["ends"] for row in rows]
    found = pair(
        _reading(rows, -1),
        (_reading(rows, 1), _reading(rows, 2)),
        _reading(rows, 0),
        brings=flags(rows, "brings"),
        was_paired=flags(rows, "was_paired"),
        ends=(lists(ends, "times"), lists(ends, "offsets")),
    )

    def rows_again(reading: Reading) -> list[Any]:
        return list(zip(*(listed(column) for column in reading), strict=True))

    shown, end, fresh, waits = zip(*(_oracle(row) for row in rows), strict=True)
    assert rows_again(found.shown) == list(shown)
    assert listed(found.is_fresh) == list(fresh)
    paired = list(zip(listed(found.end_ms), listed(found.end_offset), strict=True))
    assert paired == [it or (None, None) for it in end]
    assert [list(it) for it in zip(*map(rows_again, found.waits), strict=True)] == list(waits)


@given(
    rows_of(
        readings=st.lists(st.tuples(_MS, _MS), min_size=3, max_size=3),
        ends=_ENDS,
        is_leader=st.booleans(),
    )
)
def test_a_follower_is_behind_the_earliest_end_after_its_reading(rows: list[Row]) -> None:
    ends = [row["ends"] for row in rows]

    def at(place: int) -> LogEnd:
        of: list[Column] = [
            longs([{"x": row["readings"][place][field]} for row in rows], "x") for field in (0, 1)
        ]
        return LogEnd(*of)

    def oracle(row: Row) -> int | None:
        if row["is_leader"]:
            return 0
        known = list(zip(row["ends"]["times"], row["ends"]["offsets"], strict=True))
        for ms, end in row["readings"]:
            if after := [offset for at_ms, offset in known if at_ms >= ms]:
                return max(0, int(min(after) - end))
        return None

    found = follower_lag(
        [at(0), at(1), at(2)],
        flags(rows, "is_leader"),
        times=lists(ends, "times"),
        ends=lists(ends, "offsets"),
    )
    assert listed(found) == [oracle(row) for row in rows]


def test_a_follower_that_is_read_ahead_of_its_leader_is_behind_by_nothing() -> None:
    read = LogEnd(longs([{"x": 1_000}], "x"), longs([{"x": 55}], "x"))
    known = [{"times": [1_002, 0], "offsets": [50, 40]}]
    found = follower_lag(
        [read],
        flags([{"is_leader": False}], "is_leader"),
        times=lists(known, "times"),
        ends=lists(known, "offsets"),
    )
    assert listed(found) == [0]
