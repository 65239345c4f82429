"""The job goes on from a store that an older version of it wrote, whose state had other columns or
other buckets, and reads the samples of older sources."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import spark_metrics.buckets.shares
from broker.metrics_schema import Row, encode_round
from spark_metrics.buckets.on_driver import DriverFold
from spark_metrics.buckets.on_executors import ExecutorFold
from spark_metrics.buckets.plan import BucketFold
from spark_metrics.window.aggregates import AggregatesReader
from tests.spark.story import CLUSTER, T0_MS, Story, commit, envelope, group, replica

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
ANCHOR = pa.struct({"ms": pa.int64(), "committed_offset": pa.int64(), "lag": pa.int64()})


def as_an_older_version_wrote_it(store: Path) -> None:
    """The state of commits with structs for what waits and speed is taken from, names alone; groups
    without their types, history without types and told lags."""
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
    for table, column in (("commit_history", "told_lag"), ("group_history", "group_type")):
        for path in (store / "history").glob(f"{table}*.parquet"):
            pq.write_table(pq.ParquetFile(path).read().drop_columns([column]), path)


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
    past = AggregatesReader(str(tmp_path)).as_of(cluster=CLUSTER, at_ms=T0_MS + 2_500)
    assert past is not None
    assert past.tables["groups"]["group_type"].to_pylist() == [None]
    assert past.tables["commits"]["lag"].to_pylist() == [140]


def as_an_older_source_wrote_it(value: bytes) -> bytes:
    """A record of one of eight buckets, into which topics were put by another rule."""
    head, _, body = value.partition(b"\n")
    document = json.loads(head)
    if document.pop("bucket_of", None):
        document["bucket"] = 7
    document.pop("parts_of", None)
    return json.dumps(document).encode() + b"\n" + body


@pytest.mark.parametrize("fold", [DriverFold, ExecutorFold])
def test_older_and_newer_sources_are_read_side_by_side(
    spark: SparkSession, tmp_path: Path, fold: type[BucketFold]
) -> None:
    story = Story(session=spark, store=tmp_path, buckets=fold())

    def second(number: int) -> list[dict[str, Any]]:
        at_ms = 1_000 * number
        ends: list[Row] = [replica(at_ms, 30 * number, partition=n) for n in range(4_500)]
        commits: list[Row] = [commit(at_ms - 1, 10 * number, partition=n) for n in range(4_500)]
        story.records += map(as_an_older_source_wrote_it, encode_round(envelope(101, at_ms), ends))
        story.records += encode_round(envelope(102, at_ms), commits)
        return story.batch()["commits"]

    for number in range(3):
        rows = second(number)
        assert {row["partition"] for row in rows} == set(range(4_500))
        assert {row["lag"] for row in rows} == {20 * number}
    assert story.reports[-1].bad_records == 0
    assert story.writer.manifest is not None
    assert len(story.writer.manifest.now["commits"]) == 2


def test_a_store_that_was_cut_by_another_rule_is_cut_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_metrics.buckets.shares, "BUCKET_ROWS_MAX", (4, 400, 800))
    story = Story(session=spark, store=tmp_path)

    def second(number: int) -> list[float | None]:
        ends = [replica(1_000 * number, 30 * number, topic=f"t{n}") for n in range(8)]
        story.round(101, 1_000 * number, *ends)
        return [row["in_records_per_s"] for row in story.batch()["partitions"]]

    second(0)
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    del manifest["memory"]["buckets"]
    for table in ("partitions", "commits"):
        assert len(manifest["now"][table]) == 2
        manifest["now"][table].reverse()
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    story.sink = story.make_sink()
    assert second(1) == [pytest.approx(30.0)] * 8
    assert second(2) == [pytest.approx(30.0)] * 8
