"""What a batch makes of hand-made histories: rates, lag, follower lag, standing still, going."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from broker.metrics_schema import (
    Envelope,
    LogDirSample,
    UnchangedCommit,
    UnchangedReplica,
    encode_round,
)
from spark_metrics.decode.record_head import KafkaRecord, read_head
from spark_metrics.job.first_snapshot import first_snapshot
from spark_metrics.state.rounds import FORGET_MS, RETIRED_MS
from spark_metrics.store.layout import MANIFEST
from spark_metrics.window.aggregates import AggregatesReader
from tests.spark.story import (
    CLUSTER,
    T0_MS,
    Story,
    broker,
    commit,
    envelope,
    group,
    replica,
    round_values,
)

pytestmark = [
    pytest.mark.spark,
    # pyspark leaves the sockets, over which it collects Arrow, to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
Now = dict[str, list[dict[str, Any]]]


@pytest.fixture
def story(spark: SparkSession, tmp_path: Path) -> Story:
    return Story(session=spark, store=tmp_path)


def only(rows: list[dict[str, Any]]) -> dict[str, Any]:
    (row,) = rows
    return row


def test_a_retired_cluster_leaves_nothing(story: Story) -> None:
    story.clock_ms = T0_MS
    gone = replace(envelope(9, 0), cluster="gone")
    story.records += encode_round(gone, [replica(0, 5, topic="t-gone"), broker(0, 9)])
    story.round(101, 0, replica(0, 10), broker(0, 101))
    clusters = {row["cluster"] for row in story.batch()["partitions"]}
    assert clusters == {CLUSTER, "gone"}
    for batch, after_ms in enumerate((RETIRED_MS + 1_000, RETIRED_MS + FORGET_MS + 2_000), 1):
        story.clock_ms = T0_MS + after_ms
        story.round(101, 1_000 * batch, replica(1_000 * batch, 10))
        assert only(story.batch()["partitions"])["cluster"] == CLUSTER
    story.round(101, 3_000, replica(3_000, 10))
    story.commit()
    assert "gone" not in (story.store / MANIFEST).read_text()


def test_losses_and_wins_of_the_isr_are_counted(story: Story) -> None:
    for at_ms, isr in ((0, (101, 102)), (1_000, (101, 102)), (2_000, (101,)), (3_000, (101, 102))):
        story.round(101, at_ms, replica(at_ms, 1, isr=isr), replica(at_ms, 1, partition=1))
        rows = story.batch()["partitions"]
        found = {it["partition"]: (it["isr_shrinks"], it["isr_expands"]) for it in rows}
        assert found == {0: (int(at_ms > 1_000), int(at_ms > 2_000)), 1: (0, 0)}


def test_rates_are_counted_between_readings(story: Story) -> None:
    story.round(101, 0, replica(10, 100, bytes_in=5_000, bytes_out=0))
    first = only(story.batch()["partitions"])
    assert first["in_records_per_s"] is None
    assert first["in_bytes_per_s"] is None
    story.round(101, 2_000, replica(2_010, 300, bytes_in=9_000, bytes_out=1_000))
    second = only(story.batch()["partitions"])
    assert second["in_records_per_s"] == pytest.approx(100.0)
    assert second["in_bytes_per_s"] == pytest.approx(2_000.0)
    assert second["out_bytes_per_s"] == pytest.approx(500.0)
    assert second["read_ms"] == T0_MS + 2_010


def test_bytes_in_falls_back_to_growth_of_the_log(story: Story) -> None:
    story.round(101, 0, replica(0, 100))
    story.batch()
    story.round(101, 1_000, replica(1_000, 150))
    row = only(story.batch()["partitions"])
    assert row["in_bytes_per_s"] == pytest.approx(5_000.0)
    assert row["out_bytes_per_s"] is None
    story.round(101, 2_000, replica(2_000, 150, size_bytes=10))
    assert only(story.batch()["partitions"])["in_bytes_per_s"] is None


def test_a_restarted_broker_makes_no_spike_and_no_negative_rate(story: Story) -> None:
    story.round(101, 0, replica(0, 100, bytes_in=90_000))
    story.round(101, 1_000, replica(1_000, 110, bytes_in=91_000))
    story.batch()
    story.round(101, 9_000, replica(9_000, 900, bytes_in=50), epoch=2)
    restarted = only(story.batch()["partitions"])
    assert restarted["in_bytes_per_s"] is None
    assert restarted["in_records_per_s"] is None
    story.round(101, 10_000, replica(10_000, 910, bytes_in=1_050), epoch=2)
    after = only(story.batch()["partitions"])
    assert after["in_bytes_per_s"] == pytest.approx(1_000.0)
    assert after["in_records_per_s"] == pytest.approx(10.0)


def test_a_change_of_leader_makes_no_spike(story: Story) -> None:
    moved = {"leader": 102, "leader_epoch": 2}
    story.round(101, 0, replica(0, 100, bytes_in=90_000))
    story.round(102, 0, replica(5, 90, bytes_in=7))
    story.round(101, 1_000, replica(1_000, 110, bytes_in=91_000))
    story.batch()
    story.round(102, 2_000, replica(2_000, 120, bytes_in=500, **moved))
    row = only(story.batch()["partitions"])
    assert (row["leader"], row["leader_epoch"]) == (102, 2)
    assert row["in_bytes_per_s"] is None
    story.round(102, 3_000, replica(3_000, 130, bytes_in=900, **moved))
    assert only(story.batch()["partitions"])["in_bytes_per_s"] == pytest.approx(400.0)


def test_a_topic_begun_anew_has_no_negative_rate(story: Story) -> None:
    story.round(101, 0, replica(0, 1_000))
    story.batch()
    story.round(101, 1_000, replica(1_000, 3))
    row = only(story.batch()["partitions"])
    assert row["in_records_per_s"] is None
    assert row["in_bytes_per_s"] is None


def test_lag_waits_for_an_end_offset_read_after_the_commit(story: Story) -> None:
    story.round(101, 0, replica(900, 100))
    story.round(102, 0, commit(1_000, 50))
    waiting = only(story.batch()["commits"])
    assert waiting["lag"] is None
    assert waiting["end_offset"] is None
    assert waiting["committed_offset"] == 50
    story.round(101, 1_500, replica(1_900, 120))
    paired = only(story.batch()["commits"])
    assert (paired["lag"], paired["end_offset"]) == (70, 120)
    assert paired["end_read_ms"] == T0_MS + 1_900


def test_lag_takes_the_earliest_of_several_end_offsets(story: Story) -> None:
    story.round(101, 0, replica(900, 100))
    story.round(102, 900, commit(1_000, 50))
    for at_ms in (1_100, 2_100, 3_100):
        story.round(101, at_ms, replica(at_ms, at_ms))
    assert only(story.batch()["commits"])["end_offset"] == 1_100


def test_lag_is_never_below_zero(story: Story) -> None:
    story.round(102, 0, commit(1_000, 500))
    story.round(101, 0, replica(1_000, 400))
    assert only(story.batch()["commits"])["lag"] == 0


def test_the_last_paired_commit_is_shown_while_a_newer_one_waits(story: Story) -> None:
    story.round(102, 0, commit(0, 50))
    story.round(101, 0, replica(10, 100))
    story.batch()
    story.round(102, 1_000, commit(1_000, 80))
    waiting = only(story.batch()["commits"])
    assert (waiting["committed_offset"], waiting["lag"]) == (50, 50)
    story.round(101, 1_000, replica(1_010, 110))
    assert only(story.batch()["commits"])["committed_offset"] == 80


def test_speed_of_a_group_that_falls_behind(story: Story) -> None:
    for second in range(5):
        story.round(102, 1_000 * second, commit(1_000 * second, 10 * second))
        story.round(101, 1_000 * second, replica(1_000 * second + 1, 100 + 30 * second))
    row = only(story.batch()["commits"])
    assert row["consumed_records_per_s"] == pytest.approx(10.0)
    assert row["lag_records_per_s"] == pytest.approx(20.0)
    assert row["stuck_since_ms"] is None


def test_a_rewound_group_has_no_negative_speed(story: Story) -> None:
    story.round(102, 0, commit(0, 90))
    story.round(101, 0, replica(1, 100))
    story.batch()
    story.round(102, 1_000, commit(1_000, 5))
    story.round(101, 1_000, replica(1_001, 100))
    row = only(story.batch()["commits"])
    assert row["lag"] == 95
    assert row["consumed_records_per_s"] is None


def test_a_group_stands_still_since_it_first_had_to_move(story: Story) -> None:
    stuck = []
    for second in range(14):
        end = 50 if second < 2 else 60
        story.round(102, 1_000 * second, commit(1_000 * second, 50))
        story.round(101, 1_000 * second, replica(1_000 * second + 1, end))
        stuck.append(only(story.batch()["commits"])["stuck_since_ms"])
    assert stuck == [None] * 12 + [T0_MS + 2_000] * 2
    story.round(102, 14_000, commit(14_000, 55))
    story.round(101, 14_000, replica(14_001, 60))
    assert only(story.batch()["commits"])["stuck_since_ms"] is None


def test_follower_lag_counts_from_an_end_read_after_the_followers(story: Story) -> None:
    story.round(102, 0, replica(1_000, 80))
    story.round(101, 0, replica(1_100, 100))
    rows = {row["broker"]: row for row in story.batch()["replicas"]}
    assert rows[101]["follower_lag"] == 0
    assert rows[102]["follower_lag"] == 20
    assert (rows[101]["is_leader"], rows[102]["is_leader"]) == (True, False)
    story.round(102, 2_000, replica(2_000, 100, isr=(101,)))
    rows = {row["broker"]: row for row in story.batch()["replicas"]}
    assert rows[102]["follower_lag"] == 20, "its newest reading waits for the leader's"
    assert rows[102]["is_in_sync"], "the leader's word counts within one epoch"


def test_a_deleted_partition_goes_with_the_next_complete_round(story: Story) -> None:
    story.round(101, 0, replica(0, 10), replica(0, 20, topic="gone"))
    assert len(story.batch()["partitions"]) == 2
    story.records += encode_round(envelope(101, 1_000), [replica(1_000, 10)] * 501)[:1]
    assert len(story.batch()["partitions"]) == 2, "half a round proves nothing"
    story.round(101, 2_000, replica(2_000, 10))
    now = story.batch()
    assert [row["topic"] for row in now["partitions"]] == ["t"]
    assert [row["topic"] for row in now["replicas"]] == ["t"]


def test_a_round_cut_by_a_batch_is_complete_with_its_last_part(story: Story) -> None:
    many = [replica(0, 10, partition=number) for number in range(600)]
    parts = encode_round(envelope(101, 0), many)
    assert len(parts) == 2
    for part in parts:
        story.records.append(part)
        now = story.batch()
    assert len(now["partitions"]) == 600


def test_an_offline_partition_keeps_its_last_row(story: Story) -> None:
    story.round(101, 0, replica(0, 100))
    story.round(102, 0, replica(0, 100))
    story.batch()
    story.round(102, 1_000, replica(1_000, 100, leader=-1, leader_epoch=2, isr=(101,)))
    row = only(story.batch()["partitions"])
    assert (row["leader"], row["leader_epoch"], row["isr"]) == (-1, 2, [101])
    assert (row["high_watermark"], row["read_ms"]) == (100, T0_MS)
    assert row["in_records_per_s"] == 0.0


def test_the_only_replica_of_a_fenced_broker_is_offline(story: Story) -> None:
    alone = {"replicas": (101,), "isr": (101,)}
    story.round(101, 0, replica(0, 100, **alone), broker(0, 101), broker(0, 102))
    assert only(story.batch()["partitions"])["leader"] == 101
    story.round(102, 9_000, broker(9_000, 101, fenced=True), broker(9_000, 102))
    now = story.batch()
    assert only(now["partitions"])["leader"] == -1
    rows = {row["broker"]: row for row in now["brokers"]}
    assert rows[101]["is_fenced"], "a dead broker stays while it is registered"
    assert (rows[101]["replicas"], rows[101]["leaders"]) == (1, 0)


def test_a_partition_deleted_while_a_broker_is_dead_goes(story: Story) -> None:
    story.round(101, 0, replica(0, 100))
    story.round(102, 0, replica(0, 100))
    story.batch()
    story.round(101, 9_000)
    assert story.batch()["partitions"] == []


def test_an_unregistered_broker_and_what_it_told_go(story: Story) -> None:
    story.round(101, 0, broker(0, 101), broker(0, 102), replica(0, 100))
    story.round(102, 0, broker(0, 101), broker(0, 102), replica(0, 100))
    story.batch()
    left = {"replicas": (101,), "isr": (101,), "leader_epoch": 2}
    story.round(101, 5_000, broker(5_000, 101), replica(5_000, 100, **left))
    now = story.batch()
    assert [row["broker"] for row in now["brokers"]] == [101]
    assert [row["broker"] for row in now["replicas"]] == [101]


def test_brokers_count_what_is_assigned_and_what_they_lead(story: Story) -> None:
    brokers = [broker(0, number, rack="abc"[number - 101]) for number in (101, 102, 103)]
    directories = (
        LogDirSample(path="/d/1", total_bytes=1_000, usable_bytes=400, is_cordoned=True),
        LogDirSample(path="/d/2", is_failed=True),
    )
    own = broker(1, 101, disk_total_bytes=1_000, disk_usable_bytes=400, directories=directories)
    story.round(101, 0, replica(0, 10), *brokers, own)
    now = story.batch()
    told = {row["broker"]: row["directories"] for row in now["brokers"]}
    assert told == {101: [asdict(it) for it in directories], 102: None, 103: None}
    rows = {row["broker"]: row for row in now["brokers"]}
    assert [(rows[it]["replicas"], rows[it]["leaders"]) for it in (101, 102, 103)] == [
        (1, 1),
        (1, 0),
        (0, 0),
    ]
    assert rows[103]["size_bytes"] == 0
    assert (rows[101]["disk_usable_bytes"], rows[102]["disk_usable_bytes"]) == (400, None)
    assert rows[101]["sampled_ms"] == T0_MS
    assert rows[102]["sampled_ms"] is None


def test_groups_without_commits_are_listed_and_go_when_deleted(story: Story) -> None:
    idle = group(0, group_id="idle", state="Empty", members=0, group_type="share", group_epoch=7,
                 assignment_epoch=6)  # fmt: skip
    story.round(102, 0, group(0), idle)
    rows = {row["group_id"]: row for row in story.batch()["groups"]}
    told = ("group_type", "group_epoch", "assignment_epoch")
    assert {name: [row[it] for it in told] for name, row in rows.items()} == {
        "g": ["", None, None],
        "idle": ["share", 7, 6],
    }
    story.round(102, 1_000, group(1_000))
    assert [row["group_id"] for row in story.batch()["groups"]] == ["g"]


def test_a_group_that_moved_to_another_coordinator_is_not_lost(story: Story) -> None:
    story.round(102, 0, group(0), commit(0, 5))
    story.round(101, 0, replica(10, 10))
    story.batch()
    story.round(102, 1_000)
    story.round(101, 1_000, group(1_100), commit(1_100, 6), replica(1_200, 10))
    now = story.batch()
    assert only(now["groups"])["group_id"] == "g"
    assert only(now["commits"])["lag"] == 4


@pytest.mark.parametrize(
    "value",
    [
        b"not json",
        b"",
        b"\xff\xfe\n",
        b"[1, 2]",
        None,
        b'{"v":1,"cluster":"story","broker":101,"round_ms":5,"interval_ms":1,"replicas":[]}',
        b'{"v":2,"broker":101,"broker_epoch":1,"round_ms":5}',
        b'{"v":2,"cluster":"story","broker":101,"round_ms":99999999999999,"interval_ms":1}',
    ],
)
def test_bad_records_are_counted_and_kept_aside(story: Story, value: bytes | None) -> None:
    story.round(101, 0, replica(0, 100))
    story.records.append(value)
    now = story.batch()
    health = only(now["health"])
    assert (health["bad_records"], health["bad_records_total"]) == (1, 1)
    assert len(list((story.store / "bad").iterdir())) == 1
    assert health["records"] == 2
    assert only(now["partitions"])["high_watermark"] == 100


def test_good_rows_of_a_record_with_a_bad_one_count(story: Story) -> None:
    (value,) = encode_round(envelope(101, 0), [replica(0, 7), replica(0, 8, partition=1)])
    story.records.append(value.replace(b'"partition":[0,1]', b'"partition":[0,"one"]'))
    now = story.batch()
    assert only(now["partitions"])["high_watermark"] == 7
    assert only(now["health"])["bad_records"] == 1


def test_columns_with_a_hole_are_a_bad_record_of_which_the_rest_counts(story: Story) -> None:
    (value,) = encode_round(envelope(101, 0), [replica(0, 7), replica(0, 8, partition=1)])
    story.records.append(value.replace(b'"high_watermark":[7,8]', b'"high_watermark":[7,null]'))
    story.records.append(value.replace(b'"replicas_columns":{', b'"replicas_columns":{{'))
    now = story.batch()
    assert only(now["partitions"])["high_watermark"] == 7
    assert only(now["health"])["bad_records"] == 2


def test_unchanged_rows_are_readings_of_what_is_known(story: Story) -> None:
    read: dict[str, Any] = {"topic": "t", "partition": 0}
    story.round(101, 0, replica(0, 100), UnchangedReplica(**read, read_ms=T0_MS + 5, since_ms=1))
    story.round(102, 0, commit(0, 40))
    story.batch()
    again = UnchangedReplica(**read, read_ms=T0_MS + 1_000, since_ms=T0_MS)
    kept = UnchangedCommit(group_id="g", **read, read_ms=T0_MS + 900, since_ms=T0_MS)
    story.round(101, 900, again)
    story.round(102, 900, kept)
    now = story.batch()
    row = only(now["partitions"])
    assert (row["high_watermark"], row["in_records_per_s"]) == (100, 0.0)
    assert row["read_ms"] == T0_MS + 1_000
    lag = only(now["commits"])
    assert (lag["lag"], lag["read_ms"]) == (60, T0_MS + 900)
    unknown = UnchangedReplica(**read, read_ms=T0_MS + 2_000, since_ms=T0_MS + 1_500)
    story.round(101, 1_900, unknown)
    row = only(story.batch()["partitions"])
    assert row["read_ms"] == T0_MS + 1_000, "it repeats a row that has not arrived"


def test_lag_older_than_the_job_is_aged_by_the_logs_own_times(story: Story) -> None:
    points = [0, T0_MS - 100_000, 500, T0_MS - 50_000, 1_000, T0_MS]
    kept: dict[str, Any] = {"retention_ms": 600_000}
    told: dict[str, Any] = {"log_points": points}
    for at_ms, further in ((0, told), (1_000, {}), (61_000, {})):
        story.round(101, at_ms, replica(at_ms + 10, 1_000, **kept, **further))
        story.round(102, at_ms, commit(at_ms, 250))
        row = only(story.batch()["commits"])
        assert row["time_lag_ms"] == at_ms + 10 + 75_000, "told once, it stays known"
        risk_ms = 600_000 - row["time_lag_ms"] if at_ms == 61_000 else None
        assert row["retention_risk_ms"] == risk_ms, "known once it is known to stand"
    story.round(101, 62_000, replica(62_010, 300, **kept))
    story.round(102, 62_000, commit(62_000, 250))
    assert only(story.batch()["commits"])["time_lag_ms"] is None, "the log was begun anew"


def test_records_lost_to_retention_are_counted(story: Story) -> None:
    story.round(101, 0, replica(0, 1))
    story.batch()
    story.offset += 25
    story.round(101, 1_000, replica(1_000, 2))
    assert only(story.batch()["health"])["lost_records_total"] == 25
    assert story.reports[-1].lost_records == 25


def test_a_replayed_batch_changes_nothing(story: Story) -> None:
    story.round(101, 0, replica(0, 100, bytes_in=0))
    story.batch()
    story.round(101, 1_000, replica(1_000, 200, bytes_in=500))
    values = list(story.records)
    before = story.batch()
    version = AggregatesReader(str(story.store)).version()
    restarted = story.make_sink()
    story.offset -= len(values)
    restarted(story.frame(values), story.batch_id)
    assert AggregatesReader(str(story.store)).version() == version
    assert story.now() == before


def test_the_first_batch_knows_nothing_of_the_first_sight(story: Story) -> None:
    story.round(101, 0, replica(0, 100), replica(0, 7, topic="early"), group(0, group_id="early"))
    at_first = [
        read_head(KafkaRecord(partition=0, offset=n, timestamp_ms=T0_MS, value=value or b""))
        for n, value in enumerate(story.records)
    ]
    story.writer.commit(first_snapshot(at_first))
    assert {row["topic"] for row in story.now()["partitions"]} == {"t", "early"}
    story.records = []
    story.round(101, 1_000, replica(1_000, 200))
    now = story.batch()
    assert (now["health"][0]["batch_id"], now["health"][0]["lost_records_total"]) == (0, 0)
    assert only(now["partitions"])["in_records_per_s"] is None, "one reading is no rate"
    assert now["groups"] == []
    story.round(101, 2_000, replica(2_000, 300))
    assert only(story.batch()["partitions"])["in_records_per_s"] == 100


def test_a_restarted_job_goes_on_from_the_store(story: Story) -> None:
    story.round(101, 0, replica(0, 100))
    story.round(102, 0, commit(0, 40))
    story.batch()
    story.sink = story.make_sink()
    story.round(101, 2_000, replica(2_000, 300))
    now = story.batch()
    assert only(now["partitions"])["in_records_per_s"] == pytest.approx(100.0)
    assert only(now["commits"])["lag"] == 60


def test_duplicated_records_change_nothing(story: Story) -> None:
    story.round(101, 0, replica(0, 100))
    story.round(101, 1_000, replica(1_000, 150))
    story.records = story.records * 2
    row = only(story.batch()["partitions"])
    assert row["in_records_per_s"] == pytest.approx(50.0)


def test_history_holds_each_reading_once(story: Story) -> None:
    for second in range(3):
        story.round(101, 1_000 * second, replica(1_000 * second, 10 * second))
        story.batch()
    story.round(102, 3_000, commit(500, 1))
    story.batch()
    reader = AggregatesReader(str(story.store))
    until_ms = T0_MS + 60_000
    points = reader.partition_history(cluster=CLUSTER, topic="t", since_ms=T0_MS, until_ms=until_ms)
    assert points["high_watermark"].to_pylist() == [0, 10, 20]
    assert points["replicas_count"].to_pylist() == [2, 2, 2]
    commits = reader.commit_history(
        cluster=CLUSTER, group_id="g", since_ms=T0_MS, until_ms=until_ms
    )
    assert commits["lag"].to_pylist() == [9]


def test_an_older_checkpoint_reads_once_more_what_the_store_has(story: Story) -> None:
    """The batches are cut in other places then, and have numbers that the store has seen."""
    told = [round_values(101, 1_000 * n, replica(1_000 * n, 10 * n)) for n in range(7)]
    records = [(n, value) for n, values in enumerate(told) for value in values]
    for n in range(0, 4):
        story.commit_at(records[n : n + 1], batch_id=n)
    reports = len(story.reports)
    story.commit_at(records[1:3], batch_id=1)
    assert len(story.reports) == reports, "nothing is new"
    story.commit_at(records[2:6], batch_id=2)
    assert only(story.now()["partitions"])["high_watermark"] == 50
    assert story.reports[-1].records == 2
    story.commit_at(records[6:], batch_id=3)
    assert only(story.now()["partitions"])["high_watermark"] == 60
    history = AggregatesReader(str(story.store)).partition_history(
        cluster=CLUSTER, topic="t", since_ms=0, until_ms=1 << 53, points_max=1 << 53
    )
    assert history["high_watermark"].to_pylist() == [0, 10, 20, 30, 40, 50, 60]
    assert story.reports[-1].lost_records == 0


def test_a_topic_that_is_begun_anew_is_read_from_its_beginning(story: Story) -> None:
    for n in range(4):
        story.commit_at([(n + 100, round_values(101, 1_000 * n, replica(1_000 * n, n))[0])], n)
    story.commit_at([(0, round_values(101, 9_000, replica(9_000, 90))[0])], 4)
    assert only(story.now()["partitions"])["high_watermark"] == 90
    story.commit_at([(1, round_values(101, 10_000, replica(10_000, 95))[0])], 5)
    assert only(story.now()["partitions"])["high_watermark"] == 95


def test_a_leader_that_reports_keeps_its_partition_alive(story: Story) -> None:
    """Its follower does not tell of it, and both tell each 10 s, the one 6 s after the other."""
    for at_ms in (0, 10_000, 20_000):
        story.records += encode_round(slow_envelope(101, at_ms), [replica(at_ms, 10)])
        assert len(story.batch()["partitions"]) == 1
        story.records += encode_round(slow_envelope(102, at_ms + 6_000), [])
        assert len(story.batch()["partitions"]) == 1
    story.records += encode_round(slow_envelope(102, 42_000), [])
    assert story.batch()["partitions"] == [], "its leader is silent, its follower does not have it"


def slow_envelope(broker_id: int, at_ms: int) -> Envelope:
    return replace(envelope(broker_id, at_ms), interval_ms=10_000)
