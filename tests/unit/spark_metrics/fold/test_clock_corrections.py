"""A clock that is found to be behind: what was read from it before is set right, and only that."""

from typing import Any

import pyarrow as pa
import pytest

from spark_metrics.fold.clock_corrections import corrected_commits, corrected_partitions
from spark_metrics.fold.names import NAMES
from spark_metrics.schema import COMMIT_STATE, PARTITION_STATE, TEXT
from spark_metrics.state.rounds import SourceKey
from spark_metrics.state.source_clocks import (
    Correction,
    Seen,
    SourceClock,
    corrections,
    observe_clocks,
)

T0_MS = 1_800_000_000_000
KEY = SourceKey("c", 1)


def found(skews_ms: list[int]) -> list[tuple[int, Correction]]:
    """Corrections of a clock with these skews, a second apart: the batch's time, and which."""
    clocks: dict[SourceKey, SourceClock] = {}
    reached_ms: int | None = None
    told = []
    for second, skew_ms in enumerate(skews_ms):
        now_ms = T0_MS + 1_000 * second
        sent_ms = now_ms - 200 + skew_ms
        seen = {KEY: Seen(first_ms=sent_ms - 50, sent_ms=sent_ms)}
        before, clocks = (
            clocks,
            observe_clocks(clocks, seen, seen_ms=now_ms, reached_ms=reached_ms),
        )
        reached_ms = now_ms
        told += [(now_ms, it) for it in corrections(before, clocks)]
    return told


def state(*rows: dict[str, Any]) -> pa.Table:
    """State of as many commits of broker 1, unless told otherwise."""
    schema = pa.schema(COMMIT_STATE)
    names = dict.fromkeys(NAMES, "x") | {"cluster": "c", "partition": 0}
    kinds = {name: pa.int32() if name == "partition" else TEXT for name in NAMES}
    known = {
        name: pa.chunked_array([pa.array([row.get(name, names[name]) for row in rows], kind)])
        for name, kind in kinds.items()
    }
    held = [
        {name: row.get(name) for name in schema.names} | {"source": row.get("source", 1)}
        for row in rows
    ]
    made = pa.Table.from_pylist(held, schema=schema)
    for name, column in known.items():
        made = made.append_column(name, column)
    return made


@pytest.mark.parametrize("skew_ms", [-45_000, -5_000])
def test_readings_of_a_clock_that_is_behind_are_set_right_once(skew_ms: int) -> None:
    ((now_ms, correction),) = found([skew_ms] * 20)
    read_ms = now_ms - 1_200 + skew_ms
    row = {"read_ms": read_ms, "still_since_ms": read_ms - 1_000, "lag": 7, "trend_a_ms": read_ms}
    row |= {"reached_ms": 5, "reached_error_ms": 1}
    before = state(row, {**row, "source": 2}, {**row, "cluster": "other"})
    mended, *others = corrected_commits(before, [correction]).to_pylist()
    assert mended["reached_ms"] is None, "of a leader, whose clock it may be"
    assert mended["read_ms"] == pytest.approx(now_ms - 1_200, abs=1_000)
    assert mended["read_ms"] - mended["still_since_ms"] == 1_000
    assert (mended["lag"], mended["trend_a_ms"]) == (7, None)
    of_other, of_cluster = before.to_pylist()[1:]
    of_other |= {"reached_ms": None, "reached_error_ms": None}
    assert others == [of_other, of_cluster]


def test_readings_of_a_leader_whose_clock_is_behind_are_set_right() -> None:
    correction = Correction(source=KEY, until_ms=1_000, by_ms=400)
    points: list[dict[str, Any]] = [
        {"ms": 900, "offset": 2, "error_ms": 9},
        {"ms": 800, "offset": 1, "error_ms": None},
    ]
    told: dict[str, Any] = {
        **{"cluster": "c", "topic": "t", "view_broker": 2, "view_ms": 905, "log_broker": 1},
        **{"read_ms": 900, "points": points, "log_starts": [{"ms": 800}]},
        "ends": [{"read_ms": 900, "broker_epoch": 1, "high_watermark": 2}],
    }
    rows = [told, {**told, "log_broker": 2}, {**told, "read_ms": 1_000}, {**told, "points": None}]
    before = pa.Table.from_pylist(rows, schema=pa.schema(PARTITION_STATE))
    mended, of_other, of_now, unpointed = corrected_partitions(before, [correction]).to_pylist()
    assert (mended["view_ms"], mended["read_ms"], mended["ends"][0]["read_ms"]) == (905, 1300, 1300)
    assert mended["ends"][0]["high_watermark"] == 2
    assert mended["points"] == [{**it, "ms": it["ms"] + 400} for it in points]
    assert mended["log_starts"] == [{"ms": 1_200, "offset": None, "end": None}]
    assert [of_other, of_now] == before.to_pylist()[1:3]
    assert (unpointed["points"], unpointed["log_starts"][0]["ms"]) == ([], 1_200)


def test_readings_of_before_a_clock_was_set_back_stay() -> None:
    ((now_ms, correction),) = found([0] * 10 + [-45_000] * 10)
    before = state({"read_ms": T0_MS + 9_000, "trend_a_ms": T0_MS, "trend_a_lag": 3})
    assert now_ms > T0_MS + 9_000
    assert corrected_commits(before, [correction]).equals(before)


@pytest.mark.parametrize("skews_ms", [[0] * 20, [45_000] * 20, [0] * 5 + [45_000] * 10])
def test_clocks_that_are_right_or_ahead_need_no_correction(skews_ms: list[int]) -> None:
    assert found(skews_ms) == []
