"""A small cluster with a story, for the questions that operators ask (``questions.py``).

Three brokers in racks a, b and c. 103's disk is nearly full. topic-0-0 lacks its replica on 103.
topic-2-4 is led by its second replica. topic-3-7 takes by far the most traffic and topic-3 holds
the most bytes. group-0 keeps up; group-1 falls behind and loses data in about six hours, first on
topic-1-5; group-2 has stopped since ten minutes.
"""

from pathlib import Path
from typing import Any, Final

from tests.support.store_builder import (
    StoreBuilder,
    SyntheticSizes,
    commit_history_of,
    partition_history_of,
    sums_history_of,
    synthetic_rows,
)

INTERVAL_MS: Final = 120_000
"""Nobody writes on: no broker is silent while a question is answered."""
SIZES: Final = SyntheticSizes(topics=4, partitions=12, brokers=3, groups=3)
HOUR_MS: Final = 3_600_000
HISTORY_S: Final = 120


def write_story(store: Path, *, at_ms: int) -> None:
    """One version of the story, with two minutes of history."""
    rows = synthetic_rows(SIZES, at_ms=at_ms)
    partitions = {(row["topic"], row["partition"]): row for row in rows["partitions"]}
    partitions["topic-0", 0]["isr"] = [101, 102]
    partitions["topic-2", 4].update(leader=partitions["topic-2", 4]["replicas"][1])
    partitions["topic-3", 7].update(in_bytes_per_s=50e6, in_records_per_s=40_000.0)
    for row in rows["brokers"]:
        row["interval_ms"] = INTERVAL_MS
        if row["broker"] == 103:
            row["disk_usable_bytes"] = 3 << 30
    for row in rows["commits"]:
        if row["group_id"] == "group-1":
            row["retention_risk_ms"] = _risk_of(row)
    StoreBuilder(store).write(
        rows,
        partition_history=partition_history_of(rows["partitions"], HISTORY_S),
        commit_history=commit_history_of(rows["commits"], HISTORY_S),
        **sums_history_of(rows, HISTORY_S, at_ms),
    )


def _risk_of(row: dict[str, Any]) -> int:
    return (6 if row["partition"] == 5 else 30) * HOUR_MS
