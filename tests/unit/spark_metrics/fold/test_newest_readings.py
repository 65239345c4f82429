"""What a step says of commits beside what was known: row by row as the rules have it."""

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from spark_metrics.fold.newest_readings import with_newest
from spark_metrics.schema import COMMIT_STATE, FRESH_COMMITS, MET_COMMITS

Row = dict[str, Any]
KNOWN, NEW = 400, 100
NUMBERS = ("log_row", "told_offset", "told_commit_ms", "told_source", "source", "committed_offset")


def some(schema: pa.Schema, count: int, dice: Random) -> list[Row]:
    """Rows of small numbers, a third of them unknown, so that times meet."""

    def value(item: pa.Field) -> Any:
        if dice.random() < 0.35:
            return None
        return dice.random() < 0.5 if item.type == pa.bool_() else dice.randrange(6)

    return [{item.name: value(item) for item in schema} for _ in range(count)]


def greatest(*values: int | None) -> int | None:
    return max((value for value in values if value is not None), default=None)


def at_least(one: int | None, other: int | None, *, unless_known: bool) -> bool:
    return unless_known if one is None or other is None else one >= other


def judged(told: Row, held: Row) -> tuple[Row, Row]:
    """What the plan is given of one row, and what is carried past it."""
    known = next((it for it in ("wait_b", "wait_a") if held[f"{it}_ms"] is not None), None)
    paired = {"ms": "read_ms", "offset": "committed_offset", "commit_ms": "commit_ms"}
    newest = {it: held[f"{known}_{it}" if known else paired[it]] for it in paired}
    ms, at = told["told_ms"], newest["ms"]
    is_full = ms is not None and at_least(ms, at, unless_known=True)
    again, before = told["again_ms"], greatest(ms, at)
    is_same = (
        again is not None
        and before is not None
        and again > before
        and at_least(greatest(ms, held["full_ms"]), told["since_ms"], unless_known=False)
    )
    brings = is_same or (is_full and (at is None or ms > at))
    full = {
        "source": told["told_source"] if is_full else held["source"],
        "round_ms": told["told_round_ms"] if is_full else held["round_ms"],
        "full_ms": ms if is_full else held["full_ms"],
        "is_owned": told["told_owned"] if is_full else held["is_owned"],
        "told_lag": told["new_lag"] if is_full else held["told_lag"],
    }
    alive = told["told_alive_ms"] if told["told_alive_ms"] is not None else held["alive_ms"]
    carried = {
        **full,
        "round_ms": greatest(told["again_round_ms"], full["round_ms"]),
        "alive_ms": alive,
    }
    takes = brings and is_full
    given = {
        **{"newest_ms": (again if is_same else ms) if brings else at, "brings": brings},
        "newest_offset": told["told_offset"] if takes else newest["offset"],
        "newest_commit_ms": told["told_commit_ms"] if takes else newest["commit_ms"],
    }
    return given, {**carried, "is_full": is_full}


@pytest.mark.parametrize("seed", range(5))
def test_each_row_is_judged_by_the_rules(seed: int) -> None:
    dice = Random(seed)
    fresh = some(pa.schema(FRESH_COMMITS), KNOWN + NEW, dice)
    for number, row in enumerate(fresh):
        row["row"] = number
    state = some(pa.schema(COMMIT_STATE), KNOWN, dice)
    rows, carried = with_newest(
        pa.Table.from_pylist(fresh, pa.schema(FRESH_COMMITS)),
        pa.Table.from_pylist(state, pa.schema(COMMIT_STATE)),
    )
    nothing = dict.fromkeys(COMMIT_STATE)
    expected = [
        judged(told, held) for told, held in zip(fresh, state + [nothing] * NEW, strict=True)
    ]
    assert carried.to_pylist() == [beside for _, beside in expected]
    assert rows.column_names == list(MET_COMMITS)
    given = {row["row"]: row for row in rows.to_pylist()}
    for number, (wanted, beside) in enumerate(expected):
        assert (number in given) == (beside["full_ms"] is not None), "told in full at some time"
        if number in given:
            assert wanted.items() <= given[number].items()
            assert given[number]["is_owned"] == beside["is_owned"]
