"""Which partitions exist is said by metadata: neither a broker's death nor its unregistering ends
one, and a topic that is deleted goes although nobody who held it is there to say so."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from broker.metrics_schema import ReplicaSample, Row, encode_round
from spark_metrics.buckets.on_driver import DriverFold
from spark_metrics.decode.record_head import KafkaRecord, read_head
from spark_metrics.fold.partitions import MISSING_MS
from spark_metrics.job.first_snapshot import first_snapshot
from tests.spark.story import CLUSTER, T0_MS, Story, broker, commit, envelope, group, replica

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
ALONE: dict[str, Any] = {"leader": 104, "replicas": (104,), "isr": (104,)}
Now = dict[str, list[dict[str, Any]]]


@pytest.fixture
def story(spark: SparkSession, tmp_path: Path) -> Story:
    """The job's clock is moved by hand."""
    buckets = DriverFold(steady_ms=lambda: 0)
    return Story(session=spark, store=tmp_path, clock_ms=T0_MS, buckets=buckets)


def orphan(at_ms: int, **further: Any) -> ReplicaSample:
    """Partition t-0 of broker 104 alone, as metadata has it after that broker's death."""
    fields = {"leader": -1, "leader_epoch": 2, "replicas": (104,), "isr": (104,)}
    return ReplicaSample(topic="t", partition=0, read_ms=T0_MS + at_ms, **{**fields, **further})


def registered(at_ms: int, *ids: int, fenced: tuple[int, ...] = ()) -> list[Row]:
    return [broker(at_ms, it, fenced=it in fenced) for it in ids]


def died(story: Story) -> None:
    """104 leads t-0 alone, then it is fenced, and 101, the controller, tells of its orphan."""
    story.round(104, 0, replica(0, 500, **ALONE), *registered(0, 101, 104))
    story.round(101, 0, *registered(0, 101, 104), orphans=[])
    story.batch()
    story.clock_ms += 3_000
    fenced = registered(3_000, 101, 104, fenced=(104,))
    story.round(101, 3_000, *fenced, orphans=[orphan(3_000)])
    row = only(story.batch())
    assert (row["leader"], row["high_watermark"], row["read_ms"]) == (-1, 500, T0_MS)


def only(now: Now) -> dict[str, Any]:
    (row,) = now["partitions"]
    return row


def later(story: Story, at_ms: int, orphans: list[Row] | None) -> Now:
    """A round of 101 without 104, which was unregistered."""
    story.clock_ms = T0_MS + at_ms
    story.round(101, at_ms, *registered(at_ms, 101), orphans=orphans)
    return story.batch()


def test_unregistering_its_broker_ends_no_partition(story: Story) -> None:
    died(story)
    for at_ms in (4_000, 20_000, 700_000):
        now = later(story, at_ms, [orphan(at_ms)])
        row = only(now)
        assert (row["leader"], row["replicas"], row["in_bytes_per_s"]) == (-1, [104], 0.0)
        assert (row["high_watermark"], row["size_bytes"]) == (500, 50_000), "as last known"
        assert row["read_ms"] == T0_MS, "and said to be that old"
        assert now["replicas"] == [], "nobody holds it"
        assert [it["broker"] for it in now["brokers"]] == [101]


def test_a_listing_that_comes_before_the_orphans_does_not_end_it(story: Story) -> None:
    died(story)
    story.round(102, 4_000, *registered(4_000, 101, 102))
    assert only(story.batch())["high_watermark"] == 500
    assert only(later(story, 4_500, [orphan(4_500)]))["high_watermark"] == 500


def test_a_deleted_topic_goes_though_its_only_broker_is_dead(story: Story) -> None:
    died(story)
    story.clock_ms += MISSING_MS + 1
    fenced = registered(9_000, 101, 104, fenced=(104,))
    story.round(101, 9_000, *fenced, orphans=[])
    assert story.batch()["partitions"] == []


def test_a_deleted_topic_goes_after_its_broker_was_unregistered(story: Story) -> None:
    died(story)
    later(story, 20_000, [orphan(20_000)])
    assert later(story, 21_000, [])["partitions"] == []


def test_a_controller_that_changes_loses_nothing(story: Story) -> None:
    died(story)
    story.clock_ms += 60_000
    fenced = registered(63_000, 101, 102, 104, fenced=(104,))
    story.round(101, 63_000, *fenced)
    assert only(story.batch())["high_watermark"] == 500, "101 tells of orphans no more"
    story.round(102, 64_000, *fenced, orphans=[orphan(64_000)])
    assert only(story.batch())["high_watermark"] == 500
    story.round(102, 65_000, *fenced, orphans=[])
    assert story.batch()["partitions"] == [], "the newest teller's word counts"


def test_a_broker_that_comes_back_tells_itself_again(story: Story) -> None:
    died(story)
    back = {**ALONE, "leader_epoch": 3}
    for at_ms, end in ((9_000, 500), (10_000, 600), (11_000, 700)):
        story.clock_ms = T0_MS + at_ms
        story.round(104, at_ms, replica(at_ms, end, **back), *registered(at_ms, 101, 104), epoch=2)
        story.round(101, at_ms, *registered(at_ms, 101, 104), orphans=[])
        now = story.batch()
    row = only(now)
    assert (row["leader"], row["high_watermark"], row["in_records_per_s"]) == (104, 700, 100.0)
    assert [it["broker"] for it in now["replicas"]] == [104]


def test_a_job_that_begins_when_the_broker_is_dead_knows_of_its_partitions(story: Story) -> None:
    story.clock_ms += 10_000
    again = envelope(101, 0)
    rows = registered(0, 101, 104, fenced=(104,))
    heads = [
        read_head(KafkaRecord(partition=0, offset=n, timestamp_ms=T0_MS, value=value))
        for n, value in enumerate(encode_round(again, rows, [orphan(0)]))
    ]
    (seen,) = first_snapshot(heads).now["partitions"].to_pylist()
    assert (seen["leader"], seen["high_watermark"]) == (-1, None)
    assert first_snapshot(heads).now["replicas"].num_rows == 0
    story.round(101, 0, *rows, orphans=[orphan(0)])
    for at_ms in (1_000, 2_000):
        row = only(later(story, at_ms, [orphan(at_ms)]))
        assert (row["leader"], row["high_watermark"], row["size_bytes"]) == (-1, None, None)
    story.round(104, 9_000, replica(9_000, 500, **{**ALONE, "leader_epoch": 3}))
    story.round(101, 9_000, *registered(9_000, 101, 104), orphans=[])
    assert only(story.batch())["high_watermark"] == 500


def test_rows_of_a_living_partition_are_not_touched_by_who_tells_of_orphans(story: Story) -> None:
    story.round(101, 0, replica(0, 100), *registered(0, 101, 102), orphans=[])
    story.round(102, 0, commit(0, 40), group(0))
    story.batch()
    story.clock_ms += 60_000
    story.round(101, 60_000, replica(60_000, 200), *registered(60_000, 101, 102), orphans=[])
    now = story.batch()
    assert (only(now)["leader"], only(now)["high_watermark"]) == (101, 200)
    assert CLUSTER in {row["cluster"] for row in now["commits"]}
