"""Buckets folded by tasks make the same store as buckets folded by the driver."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from broker.metrics_schema import BUCKETS, CommitSample, Envelope, ReplicaSample, Row, encode_round
from spark_metrics.aggregates import AggregatesReader
from spark_metrics.buckets.on_executors import ExecutorFold
from tests.spark.story import T0_MS, Story, broker, commit, group, replica, round_values

pytestmark = [
    pytest.mark.spark,
    # pyspark leaves the sockets, over which it collects Arrow, to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
TOPICS, PARTITIONS = 21, 100


@pytest.fixture
def stories(spark: SparkSession, tmp_path: Path) -> tuple[Story, Story]:
    by_driver = Story(session=spark, store=tmp_path / "driver")
    by_tasks = Story(session=spark, store=tmp_path / "tasks", buckets=ExecutorFold())
    return by_driver, by_tasks


def play(stories: tuple[Story, Story], values: list[bytes]) -> dict[str, list[dict[str, Any]]]:
    """A batch of these records for both; what both show."""
    for story in stories:
        story.records = list(values)
    one, other = (shown(story.batch()) for story in stories)
    assert other == one
    first, second = (history(story.store) for story in stories)
    assert second == first
    reports = [story.reports[-1] for story in stories]
    assert len({(it.records, it.bad_records, it.lost_records) for it in reports}) == 1
    kept = [
        [path.read_text() for path in sorted((story.store / "bad").iterdir())] for story in stories
    ]
    assert kept[0] == kept[1]
    return other


def shown(tables: dict[str, list[dict[str, Any]]]) -> dict[str, list[Any]]:
    """Without times at which the job itself did something."""
    own = ("heard_ms",)
    return {
        name: sorted(
            ({key: it for key, it in row.items() if key not in own} for row in rows), key=str
        )
        for name, rows in tables.items()
        if name != "health"
    }


def history(store: Path) -> list[Any]:
    reader = AggregatesReader(str(store))
    span = {"since_ms": T0_MS - 60_000, "until_ms": T0_MS + 600_000, "points_max": 10_000}
    return [
        reader.partition_history(cluster="story", topic="t", **span).to_pylist(),
        reader.partition_history(cluster="large", topic="t-7", partition=3, **span).to_pylist(),
        reader.commit_history(cluster="story", group_id="g", **span).to_pylist(),
        reader.topic_history(cluster="large", topic="t-7", **span).to_pylist(),
    ]


def large(at_ms: int, *, topics: int = TOPICS) -> list[bytes]:
    """A round of a cluster whose records have rows of one bucket each."""
    rows: list[Row] = []
    for topic in range(topics):
        for partition in range(PARTITIONS):
            place: dict[str, Any] = {"topic": f"t-{topic}", "partition": partition}
            led: dict[str, Any] = {"leader": 1, "leader_epoch": 1, "replicas": [1], "isr": [1]}
            end, read_ms = at_ms * (topic + 1), T0_MS + at_ms
            ends = {"log_start_offset": 0, "high_watermark": end, "log_end_offset": end}
            rows += [
                ReplicaSample(**place, **led, **ends, read_ms=read_ms),
                CommitSample(group_id="g", **place, committed_offset=0, read_ms=read_ms),
            ]
    envelope = Envelope(
        cluster="large", broker=1, broker_epoch=1, round_ms=T0_MS + at_ms, interval_ms=1_000
    )
    return encode_round(envelope, rows)


def small(at_ms: int, end: int) -> list[bytes]:
    told = (replica(at_ms, end), commit(at_ms, end - 5), group(at_ms), broker(at_ms, 101))
    return round_values(101, at_ms, *told)


def test_a_small_cluster_is_one_task(stories: tuple[Story, Story]) -> None:
    play(stories, small(0, 10))
    found = play(stories, [*small(1_000, 20), b"no sample", b"{}\n{}", *small(2_000, 30)])
    assert found["partitions"][0]["in_records_per_s"] == pytest.approx(10.0)
    assert found["commits"][0]["lag"] == 5
    assert stories[1].reports[-1].bad_records == 2


def test_each_bucket_is_a_task_and_keeps_what_it_is_not_told_of(
    stories: tuple[Story, Story],
) -> None:
    first = large(0)
    assert all(re.search(rb'"bucket":\d', it.partition(b"\n")[0]) for it in first)
    play(stories, [*first, *small(0, 10)])
    # Rounds of which the older is told again, one that lies of its bucket, and rows of several.
    lie = re.sub(rb'"bucket":(\d)', lambda it: b'"bucket":%d' % (int(it[1]) ^ 1), large(500)[0])
    backlog = [*large(1_000), *large(2_000), lie, *small(1_000, 20), *small(2_000, 40)]
    found = play(stories, backlog)
    assert len(found["partitions"]) == TOPICS * PARTITIONS + 1
    # A part of a round tells of one bucket: what the others have stays.
    found = play(stories, large(3_000)[:1])
    assert len(found["partitions"]) == TOPICS * PARTITIONS + 1
    # A whole round without some topics: they are deleted.
    found = play(stories, large(4_000, topics=TOPICS - 2))
    assert len(found["partitions"]) == (TOPICS - 2) * PARTITIONS + 1
    manifest = stories[1].writer.manifest
    assert manifest is not None
    paths = manifest.now["partitions"]
    assert 1 < len(paths) <= BUCKETS
    assert all(re.search(r"-\d_[0-9a-f]{12}\.parquet$", path) for path in paths)
