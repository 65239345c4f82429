"""What commits are told of their partitions, out of the answer that has it in structs."""

from typing import Any

import pyarrow as pa

from spark_metrics.fold.logs import logs_of
from spark_metrics.schema import PARTITION_STATE


def partitions(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=pa.schema(PARTITION_STATE))


def test_readings_and_points_lie_flat_beside_each_other() -> None:
    found = logs_of(
        partitions(
            {
                "ends": [{"read_ms": 20, "high_watermark": 7}, {"read_ms": 10}],
                "points": [{"ms": 20, "offset": 7}],
                "log_points": [1, 5],
                "retention_ms": 9,
            },
            {"ends": None, "points": []},
            {"ends": [{"read_ms": 30, "high_watermark": 8}], "log_start_offset": 3},
        )
    )
    assert found["row"].to_pylist() == [0, 1, 2]
    assert found["end_times"].to_pylist() == [[20, 10], [], [30]]
    assert found["end_offsets"].to_pylist() == [[7, None], [], [8]]
    assert found["point_times"].to_pylist() == [[20], [], []]
    assert found["point_offsets"].to_pylist() == [[7], [], []]
    assert found["log_points"].to_pylist() == [[1, 5], None, None]
    assert found["retention_ms"].to_pylist() == [9, None, None]
    assert found["log_start_offset"].to_pylist() == [None, None, 3]


def test_the_pace_of_a_log_start_needs_two_times() -> None:
    def start(ms: int, offset: int) -> dict[str, int]:
        return {"ms": ms, "offset": offset}

    found = logs_of(
        partitions(
            {"starts": {"a": start(1_000, 10), "b": start(3_000, 40)}},
            {"starts": {"a": start(1_000, 10), "b": start(1_000, 10)}},
            {"starts": None},
        )
    )
    assert found["start_per_ms"].to_pylist() == [0.015, None, None]
