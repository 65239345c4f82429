"""Files of history are Parquet for everybody: Spark reads what is cut into stretches."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_metrics.store import indexed_parquet
from spark_metrics.store.files import Order, StoreFiles
from tests.support.history_examples import must_read, write_examples

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    # Spark's own client leaves them to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
ROWS = 1_000


def test_spark_reads_a_file_in_stretches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexed_parquet, "GROUPS", 2)
    files = StoreFiles(str(tmp_path))
    table = pa.table(
        {
            "topic": [f"topic-{number // 100}" for number in range(ROWS)],
            "at_ms": [1_790_000_000_000 + number * 977 for number in range(ROWS)],
            "lag": [None if number % 7 == 0 else number - 500 for number in range(ROWS)],
            "rate": [number / 3 for number in range(ROWS)],
        }
    )
    order = Order(key=["topic"], measured="at_ms", rows_max=10)
    files.write_sorted("history.parquet", [table], table.schema, order=order)
    with files.open("history.parquet") as source:
        assert len(list(indexed_parquet.footers(source))) == 7
    read = spark.read.parquet(files.absolute("history.parquet")).orderBy("at_ms")
    assert [row.asDict() for row in read.collect()] == table.to_pylist()


def test_spark_reads_the_files_of_a_version_as_documented(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert spark is SparkSession.getActiveSession()
    must_read(write_examples(tmp_path), "PySpark")
