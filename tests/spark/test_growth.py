"""A cluster that grows is cut into more buckets; its figures stay."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_metrics.buckets.bucket_rows
from tests.spark.story import Story, broker, commit, group, replica

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
TOPICS = (1, 2, 6, 12)
"""So many there are after each batch."""


def told(story: Story) -> list[dict[str, list[dict[str, Any]]]]:
    """The tables after each batch, in an order of their own."""
    answers = []
    for number, topics in enumerate(TOPICS):
        at_ms = 1_000 * number
        names = [f"t{n}" for n in range(topics)]
        ends = [replica(at_ms + 10, 100 + 30 * number, topic=name) for name in names]
        commits = [commit(at_ms, 10 * number, topic=name, group_id=f"g-{name}") for name in names]
        groups = [group(at_ms, group_id=f"g-{name}") for name in names]
        story.round(101, at_ms, broker(at_ms, 101), broker(at_ms, 102), *ends)
        story.round(102, at_ms, *ends, *commits, *groups)
        now = story.batch()
        del now["health"]
        for row in now["brokers"]:
            del row["heard_ms"]  # by the job's own clock
        answers.append({name: sorted(rows, key=str) for name, rows in now.items()})
    return answers


def test_a_cluster_that_grows_is_told_as_if_it_were_one_bucket(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = told(Story(session=spark, store=tmp_path / "one"))
    monkeypatch.setattr(spark_metrics.buckets.bucket_rows, "BUCKET_ROWS_MAX", (4, 8, 24))
    story = Story(session=spark, store=tmp_path / "grown")
    found = told(story)
    assert story.writer.manifest is not None
    assert len(story.writer.manifest.now["partitions"]) == 8
    assert len(expected[-1]["commits"]) == TOPICS[-1]
    assert found == expected
