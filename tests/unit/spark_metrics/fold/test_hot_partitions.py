"""Which partitions are hotter than the others of their topic."""

from collections.abc import Sequence

import pyarrow as pa

from broker.metrics_schema import RANGE_PARTITIONS
from spark_metrics.fold.now_tables import hot_flags


def flags(topic: str, traffic: Sequence[float | None]) -> list[bool | None]:
    rows = {"cluster": ["c"] * len(traffic), "topic": [topic] * len(traffic)}
    numbers = pa.array(range(len(traffic)), pa.int32())
    table = pa.table({**rows, "partition": numbers, "in_bytes_per_s": pa.array(traffic)})
    found: list[bool | None] = hot_flags(table).to_pylist()
    return found


def test_a_partition_is_compared_with_those_of_its_topic() -> None:
    assert flags("t", [1.0] * 9 + [50.0]) == [False] * 9 + [True]
    assert flags("t", [1.0, None]) == [None, None]


def test_ranges_of_a_large_topic_are_compared_each_by_itself() -> None:
    quiet, busy = [1.0] * RANGE_PARTITIONS, [50.0] * RANGE_PARTITIONS
    assert not any(flags("t", [*quiet, *busy]))
    assert sum(it is True for it in flags("t", [*quiet, *busy[1:], 500.0])) == 1
