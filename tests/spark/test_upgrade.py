"""The job goes on from a store that an older version of it wrote, whose state had other columns."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_metrics.window.aggregates import AggregatesReader
from tests.spark.story import CLUSTER, T0_MS, Story, commit, group, replica

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
ANCHOR = pa.struct({"ms": pa.int64(), "committed_offset": pa.int64(), "lag": pa.int64()})


def as_an_older_version_wrote_it(store: Path) -> None:
    """The state of commits with structs for what waits and speed is taken from, names alone; groups
    without their types."""
    for path in (store / "now").glob("commits*.parquet"):
        rows = pq.ParquetFile(path).read()
        flat = ("wait_", "speed_", "trend_", "alive_", "is_owned")
        gone = [name for name in rows.column_names if name.startswith(flat)]
        assert "is_owned" in gone
        rows = rows.drop_columns(gone)
        anchor = {"ms": T0_MS, "committed_offset": 1, "lag": 1}
        for name in ("newest", "waits_a", "waits_b", "speed_a", "speed_b", "trend_a", "trend_b"):
            rows = rows.append_column(name, pa.array([anchor] * rows.num_rows, ANCHOR))
        pq.write_table(rows.append_column("zero_ms", rows["read_ms"]), path)
    for path in (store / "now").glob("groups*.parquet"):
        rows = pq.ParquetFile(path).read()
        told = ["group_type", "group_epoch", "assignment_epoch"]
        pq.write_table(rows.drop_columns(told), path)


def test_a_store_of_an_older_version_is_gone_on_with(spark: SparkSession, tmp_path: Path) -> None:
    story = Story(session=spark, store=tmp_path)

    def second(number: int) -> dict[str, object]:
        of_group = (group(1_000 * number), commit(1_000 * number, 10 * number))
        story.round(102, 1_000 * number, *of_group)
        story.round(101, 1_000 * number, replica(1_000 * number + 1, 100 + 30 * number))
        (row,) = story.batch()["commits"]
        return row

    for number in range(3):
        second(number)
    as_an_older_version_wrote_it(tmp_path)
    story.sink = story.make_sink()
    row = second(3)
    assert (row["lag"], row["history_ms"], row["status"]) == (160, 3_000, "OK")
    assert row["consumed_records_per_s"] is None, "speed is taken from now on"
    assert second(4)["consumed_records_per_s"] == pytest.approx(10.0)
    points = AggregatesReader(str(tmp_path)).commit_history(
        cluster=CLUSTER, group_id="g", since_ms=T0_MS, until_ms=T0_MS + 60_000
    )
    assert points["lag"].to_pylist() == [100, 120, 140, 160, 180]
