"""A leader's readings after a batch, beside the same for each row alone."""

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_metrics.figures.lists import Lists
from spark_metrics.fold.leader_readings import with_readings
from spark_metrics.schema import READING, READINGS_MAX

_KIND = pa.list_(pa.struct(READING))


@st.composite
def _reading(draw: st.DrawFn) -> dict[str, Any]:
    read_ms, end = draw(st.integers(1, 9)), draw(st.none() | st.integers(0, 1))
    return {**dict.fromkeys(READING, 0), "read_ms": read_ms, "high_watermark": end}


def _newest_first(readings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each once; what is unknown comes after what is known."""
    different = {tuple(it.values()): it for it in readings}
    order = sorted(different, key=lambda it: [(x is not None, x or 0) for x in it], reverse=True)
    return [different[it] for it in order]


_ROW = st.fixed_dictionaries(
    {
        "before": st.lists(_reading(), max_size=READINGS_MAX).map(_newest_first),
        "same": _reading(),
        "is_same": st.booleans(),
        "told": _reading(),
        "is_told": st.booleans(),
    }
)


@given(st.lists(_ROW, min_size=1, max_size=8))
def test_readings_that_come_late_or_twice_are_put_in_order(rows: list[dict[str, Any]]) -> None:
    found = with_readings(
        Lists.of(pa.array([it["before"] for it in rows], _KIND)),
        same=pa.array([it["same"] for it in rows], _KIND.value_type),
        is_same=np.array([it["is_same"] for it in rows]),
        full=pa.array([it["told"] for it in rows], _KIND.value_type),
        is_full=np.array([it["is_told"] for it in rows]),
    )
    flat = found.packed().to_pylist()
    for row, start, count in zip(rows, found.starts, found.counts, strict=True):
        brought = [row[it] for it in ("same", "told") if row[f"is_{it}"]]
        expected = _newest_first([*brought, *row["before"]])[:READINGS_MAX]
        assert flat[start : start + count] == expected
