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


def test_retention_is_known_from_where_a_log_began() -> None:
    starts = [
        {"ms": 1_000 + 300_000 * it, "offset": 100 * it, "end": 100 * it + 650} for it in range(4)
    ]
    found = logs_of(
        partitions(
            {"log_starts": starts[::-1], "log_start_offset": 300, "high_watermark": 950},
            {"log_starts": starts[1::-1], "log_start_offset": 100, "high_watermark": 750},
            {"log_starts": starts[::-1], "log_start_offset": 300, "high_watermark": 9_950},
            {"log_starts": None},
        )
    )
    assert found["kept_looked_ms"].to_pylist() == [901_000, 301_000, 901_000, None]
    assert found["kept_check_ms"].to_pylist() == [300_000, 300_000, 300_000, None]
    assert found["kept_step"].to_pylist() == [100, 100, 100, None]
    assert found["kept_records"].to_pylist() == [600, None, None, None], "one move proves nothing"


def test_looks_of_retention_are_known_though_a_reading_was_missed() -> None:
    """It was seen to delete up to 50 s late."""
    late_ms = (0, 50_000, 10_000, 40_000)
    starts = [
        {"ms": 300_000 * it + late, "offset": 100 * it, "end": 100 * it + 650}
        for it, late in enumerate(late_ms)
    ]
    found = logs_of(partitions({"log_starts": starts[::-1], "log_start_offset": 300}))
    assert found["kept_check_ms"].to_pylist() == [300_000]
