"""Rates of counters, each beside the same rate computed for its row alone."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_metrics.figures.column import Column
from spark_metrics.figures.lists import Lists
from spark_metrics.figures.rates import RATE_WINDOW_MS, leader_rates
from spark_metrics.schema import READING, READINGS_MAX
from tests.unit.spark_metrics.figures.rows import Row, falling, flags, listed, maybe, rows_of

_COUNTER = st.integers(0, 1_000)
_TIMES_MS = st.integers(0, 16).map(lambda it: 500 * it)


@st.composite
def _readings(draw: st.DrawFn) -> list[Row]:
    """A leader's, newest first."""
    return [
        {
            "read_ms": read_ms,
            "broker_epoch": draw(st.sampled_from([1, 1, 1, 2, None])),
            "high_watermark": draw(_COUNTER),
            "log_end_offset": draw(_COUNTER),
            "size_bytes": draw(_COUNTER),
            "bytes_in": draw(maybe(_COUNTER)),
            "bytes_out": draw(maybe(_COUNTER)),
        }
        for read_ms in draw(falling(_TIMES_MS, READINGS_MAX))
    ]


def _base(readings: list[Row]) -> Row | None:
    """The oldest reading within the window, or the one before the newest; of the same run."""
    last, *earlier = readings
    same_run = [it for it in earlier if it["broker_epoch"] == last["broker_epoch"] is not None]
    near = [it for it in same_run if it["read_ms"] >= last["read_ms"] - RATE_WINDOW_MS]
    return near[-1] if near else same_run[0] if same_run else None


def _rate(readings: list[Row], counter: str) -> float | None:
    if not readings or (base := _base(readings)) is None:
        return None
    newest, before = readings[0][counter], base[counter]
    if newest is None or before is None or newest < before:
        return None
    seconds = (readings[0]["read_ms"] - base["read_ms"]) / 1_000
    return float((newest - before) / seconds)


def _oracle(row: Row) -> dict[str, float | None]:
    if row["is_offline"]:
        return dict.fromkeys(("in_records_per_s", "in_bytes_per_s", "out_bytes_per_s"), 0.0)
    readings = row["readings"]
    counts = readings and readings[0]["bytes_in"] is not None
    return {
        "in_records_per_s": _rate(readings, "high_watermark"),
        "in_bytes_per_s": _rate(readings, "bytes_in" if counts else "size_bytes"),
        "out_bytes_per_s": _rate(readings, "bytes_out"),
    }


@given(rows_of(readings=_readings(), is_offline=st.booleans()))
def test_rates_of_a_leaders_counters(rows: list[Row]) -> None:
    readings = Lists.of(pa.array([it["readings"] for it in rows], pa.list_(pa.struct(READING))))
    found = leader_rates(readings, flags(rows, "is_offline"), READINGS_MAX)
    for name, column in found.items():
        expected = [_oracle(row)[name] for row in rows]
        assert listed(column) == pytest.approx(expected, nan_ok=False)


def test_unknown_is_not_a_number() -> None:
    """Arithmetic with what is unknown is unknown, and so is what is divided by 0."""
    unknown: Any = Column(pa.array([None, 4], pa.int64()))
    zero = Column(pa.array([2, 0], pa.int64()))
    assert listed(unknown + zero) == [None, 4]
    assert listed(unknown / zero) == [None, None]
    assert listed((unknown > 3).is_sure) == [False, True]
