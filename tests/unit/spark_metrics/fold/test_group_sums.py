"""The figures of a group are told of all of its partitions, or not at all."""

from typing import Any

import pytest

from spark_metrics.fold.now_tables import group_sums
from spark_metrics.fold.sums import added_sums, sums_of
from spark_metrics.window.tables import COMMITS, PARTITIONS, REPLICAS
from tests.support.store_builder import table_of

KNOWN: dict[str, Any] = {
    "committed_offset": 90,
    "end_offset": 100,
    "lag": 10,
    "lost_records": 0,
    "lag_records_per_s": -4.0,
    "consumed_records_per_s": 5.0,
    "time_lag_ms": 1_000,
}
OWNED = dict.fromkeys(KNOWN)
BEYOND = {**KNOWN, "committed_offset": 101, "lag": 0, "time_lag_ms": None}
NAMES = ("lag", "lag_records_per_s", "consumed_records_per_s", "time_lag_ms", "time_to_clear_ms")


def told(*commits: dict[str, Any]) -> tuple[Any, ...]:
    """As one bucket sums them up, and as two do."""
    rows = [
        {"cluster": "c", "group_id": "g", "topic": "t", "partition": number, **known}
        for number, known in enumerate(commits)
    ]
    nothing = table_of([], PARTITIONS), table_of([], REPLICAS)
    parts = [sums_of(*nothing, table_of(each, COMMITS)) for each in (rows[:1], rows[1:])]
    both = group_sums(added_sums(parts))["c", "g"]
    assert both == group_sums(sums_of(*nothing, table_of(rows, COMMITS)))["c", "g"]
    return tuple(both[name] for name in NAMES)


@pytest.mark.parametrize(
    ("second", "figures"),
    [
        (KNOWN, (20, -8.0, 10.0, 1_000, 2_500)),
        ({**KNOWN, "lag_records_per_s": 2.0}, (20, -2.0, 10.0, 1_000, 10_000)),
        ({**KNOWN, "lag_records_per_s": 4.0}, (20, 0.0, 10.0, 1_000, None)),
        ({**KNOWN, "lag": None}, (None, -8.0, 10.0, 1_000, None)),
        ({**KNOWN, "lag_records_per_s": None}, (20, None, 10.0, 1_000, None)),
        ({**KNOWN, "time_lag_ms": None}, (20, -8.0, 10.0, None, 2_500)),
        (OWNED, (10, -4.0, 5.0, 1_000, 2_500)),
        (BEYOND, (10, -4.0, 5.0, 1_000, 2_500)),
    ],
)
def test_a_part_does_not_stand_for_the_whole(
    second: dict[str, Any], figures: tuple[Any, ...]
) -> None:
    assert told(KNOWN, second) == figures
