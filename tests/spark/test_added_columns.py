"""History that was written before a column was added is read beside what is written now."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_metrics.window.aggregates import AggregatesReader
from tests.spark.story import CLUSTER, T0_MS, Story, commit, group, replica

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def without(store: Path, table: str, column: str) -> None:
    """The files of a table of history as they were before it had this column."""
    for path in (store / "history").glob(f"{table}*.parquet"):
        pq.write_table(pq.ParquetFile(path).read().drop_columns([column]), path)


def test_history_that_lacks_a_column_is_read(spark: SparkSession, tmp_path: Path) -> None:
    story = Story(session=spark, store=tmp_path)

    def second(number: int) -> None:
        of_group = (group(1_000 * number), commit(1_000 * number, 10 * number))
        story.round(102, 1_000 * number, *of_group)
        story.round(101, 1_000 * number, replica(1_000 * number + 1, 100 + 30 * number))
        story.batch()

    for number in range(3):
        second(number)
    without(tmp_path, "commit_history", "told_lag")
    without(tmp_path, "group_history", "group_type")
    story.sink = story.make_sink()
    second(3)
    reader = AggregatesReader(str(tmp_path))
    points = reader.commit_history(
        cluster=CLUSTER, group_id="g", since_ms=T0_MS, until_ms=T0_MS + 60_000
    )
    assert points["lag"].to_pylist() == [100, 120, 140, 160]
    past = reader.as_of(cluster=CLUSTER, at_ms=T0_MS + 2_500)
    assert past is not None
    assert past.tables["groups"]["group_type"].to_pylist() == [None]
    assert past.tables["commits"]["lag"].to_pylist() == [140]
