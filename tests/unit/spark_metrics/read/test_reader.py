"""The reader against stores written by the job's own writer."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from control.model.job_health import find_damaged_history
from control.views.format import phrase
from spark_metrics.store.layout import MANIFEST, encode_manifest
from spark_metrics.window.aggregates import (
    BROKER_HISTORY,
    COMMIT_HISTORY,
    COMMITS,
    NOW_TABLES,
    PARTITION_HISTORY,
    AggregatesReader,
    StoreUnreadableError,
)
from tests.support.at_once import AtOnce
from tests.support.store_builder import CLUSTER, StoreBuilder, SyntheticSizes

AT_MS = 1_700_000_000_000
SIZES = SyntheticSizes()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    StoreBuilder(tmp_path).write_synthetic(SIZES, history_s=60, at_ms=AT_MS)
    return tmp_path


def test_no_store_yet_is_none_and_not_an_error(tmp_path: Path) -> None:
    reader = AggregatesReader(str(tmp_path / "later"))
    assert reader.version() is None
    assert reader.now() is None
    history = reader.cluster_history(cluster=CLUSTER, since_ms=0, until_ms=AT_MS)
    assert history.num_rows == 0
    assert history.schema == BROKER_HISTORY


def test_now_has_exactly_the_documented_tables(store: Path) -> None:
    now = AggregatesReader(str(store)).now()
    assert now is not None
    assert {name: table.schema for name, table in now.tables.items()} == NOW_TABLES
    assert now.tables["partitions"].num_rows == SIZES.topics * SIZES.partitions
    assert now.tables["replicas"].num_rows == SIZES.topics * SIZES.partitions * SIZES.replicas


@pytest.mark.parametrize("spoil", ["empty", "gone", "cut", "zeros", "a page"])
def test_a_chart_draws_the_rest_of_a_spoilt_file_and_names_it(tmp_path: Path, spoil: str) -> None:
    builder = StoreBuilder(tmp_path)
    for number in range(3):
        manifest = builder.write_synthetic(SIZES, history_s=10, at_ms=AT_MS + 20_000 * number)
    topics = manifest.history["topic_history"]
    spoilt = topics[1].path
    value = (tmp_path / spoilt).read_bytes()
    (tmp_path / spoilt).unlink()
    if spoil != "gone":
        pages = bytes(len(value) // 2) + value[len(value) // 2 :]
        values = {"empty": b"", "cut": value[:-9], "zeros": bytes(len(value)), "a page": pages}
        (tmp_path / spoilt).write_bytes(values[spoil])
    reader = AggregatesReader(str(tmp_path))
    asked: Any = {"cluster": CLUSTER, "since_ms": 0, "until_ms": AT_MS + 60_000}
    drawn = reader.topic_history(topic="topic-0", **asked)
    assert drawn["readings"].to_pylist()
    whole = {AT_MS + 1_000 * second for second in (*range(-10, 1), *range(30, 41))}
    past = reader.as_of(cluster=CLUSTER, at_ms=AT_MS + 20_000)
    assert past is not None
    assert {*drawn["at_ms"].to_pylist()} <= whole
    assert [*reader.damaged_files] == [spoilt]
    (found,) = find_damaged_history(reader.damaged_files)
    assert spoilt in phrase(found.reason, found.facts)
    assert [*find_damaged_history(AggregatesReader(str(tmp_path)).damaged_files)] == []


def test_now_is_the_jobs_time_where_its_host_is_off(tmp_path: Path) -> None:
    manifest = StoreBuilder(tmp_path).write_synthetic(SIZES)
    off = replace(manifest, clock_skew_ms=7_200_000)
    (tmp_path / MANIFEST).write_bytes(encode_manifest(off))
    reader = AggregatesReader(str(tmp_path))
    now = reader.now()
    assert now is not None
    assert now.clock_skew_ms == 7_200_000
    assert reader.now_ms() == pytest.approx(time.time() * 1_000 - 7_200_000, abs=60_000)


def test_a_file_that_the_job_has_replaced_is_no_damage(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.write_synthetic(SIZES, history_s=10, at_ms=AT_MS)
    reader = AggregatesReader(str(tmp_path))
    assert reader.version() is not None
    newest = builder.write_synthetic(SIZES, history_s=10, at_ms=AT_MS + 20_000)
    asked: Any = {"cluster": CLUSTER, "since_ms": 0, "until_ms": AT_MS + 60_000}
    assert reader.topic_history(topic="topic-0", **asked).num_rows
    assert newest.history
    assert reader.damaged_files == {}


def test_now_is_cached_until_the_next_version(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.write_synthetic(SIZES)
    reader = AggregatesReader(str(tmp_path))
    first = reader.now()
    assert reader.now() is first
    manifest = builder.write_synthetic(SIZES)
    second = reader.now()
    assert second is not None
    assert second is not first
    assert second.version == manifest.version == reader.version()


def test_one_table_of_now_by_itself(store: Path, tmp_path: Path) -> None:
    reader = AggregatesReader(str(store))
    now = reader.now()
    assert now is not None
    assert reader.now_table("brokers").equals(now.tables["brokers"])
    nothing = AggregatesReader(str(tmp_path / "later"))
    assert nothing.now_table("commits").equals(COMMITS.empty_table())


def test_partition_history_keeps_every_point_when_there_is_room(store: Path) -> None:
    history = AggregatesReader(str(store)).partition_history(
        cluster=CLUSTER, topic="topic-1", partition=2, since_ms=AT_MS - 30_000, until_ms=AT_MS
    )
    assert history.schema == PARTITION_HISTORY
    assert history["at_ms"].to_pylist() == list(range(AT_MS - 30_000, AT_MS + 1, 1_000))
    assert set(history["partition"].to_pylist()) == {2}


def test_partition_history_of_a_topic_is_thinned_to_points_max(store: Path) -> None:
    history = AggregatesReader(str(store)).partition_history(
        cluster=CLUSTER, topic="topic-0", since_ms=AT_MS - 60_000, until_ms=AT_MS, points_max=7
    )
    per_partition = history.group_by("partition").aggregate([("at_ms", "count")])
    assert per_partition.num_rows == SIZES.partitions
    assert max(per_partition["at_ms_count"].to_pylist()) <= 7 + 1
    newest = history.filter(pa.compute.equal(history["at_ms"], AT_MS))
    assert newest["high_watermark"].to_pylist() == [10_000 + 100 * n for n in range(6)]


def test_sums_of_a_topic_a_broker_and_the_cluster_agree(store: Path) -> None:
    reader = AggregatesReader(str(store))
    span: dict[str, Any] = {"since_ms": AT_MS - 50_000, "until_ms": AT_MS}
    cluster = reader.cluster_history(cluster=CLUSTER, **span)
    brokers = [
        reader.broker_history(cluster=CLUSTER, broker=broker, **span) for broker in (101, 102, 103)
    ]
    topics = [reader.topic_history(cluster=CLUSTER, topic=f"topic-{n}", **span) for n in range(4)]
    expected = sum(10.0 + number for number in range(24))
    assert cluster.num_rows > 20
    assert cluster["in_records_per_s"].to_pylist() == pytest.approx([expected] * cluster.num_rows)
    assert set(topics[0]["partitions"].to_pylist()) == {6}
    assert set(cluster["leaders"].to_pylist()) == {24}
    for parts in (brokers, topics):
        columns = [part["in_bytes_per_s"].to_pylist() for part in parts]
        sums = [sum(values) for values in zip(*columns, strict=True)]
        assert sums == pytest.approx(cluster["in_bytes_per_s"].to_pylist())


def test_commit_history_of_one_partition(store: Path) -> None:
    history = AggregatesReader(str(store)).commit_history(
        cluster=CLUSTER,
        group_id="group-1",
        topic="topic-1",
        partition=0,
        since_ms=AT_MS - 10_100,
        until_ms=AT_MS,
    )
    assert history.schema == COMMIT_HISTORY
    lags = history["lag"].to_pylist()
    assert lags == sorted(lags)
    assert lags[-1] == 2_000
    assert len(lags) == 11


def test_history_goes_on_over_many_versions_and_merged_files(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path, executor=AtOnce())
    row = {"cluster": CLUSTER, "topic": "it's", "partition": 0, "leader": 101}
    for second in range(40):
        builder.write(
            {}, partition_history=[{**row, "at_ms": AT_MS + 1_000 * second, "size_bytes": second}]
        )
    reader = AggregatesReader(str(tmp_path))
    history = reader.partition_history(
        cluster=CLUSTER, topic="it's", since_ms=AT_MS, until_ms=AT_MS + 60_000
    )
    assert history["size_bytes"].to_pylist() == list(range(40))


@pytest.mark.parametrize("back_ms", [0, 7_500, 30_000, -30_000, -3_600_000])
def test_a_past_moment_has_each_partition_once_as_it_was_last(store: Path, back_ms: int) -> None:
    reader, at_ms = AggregatesReader(str(store)), AT_MS - back_ms
    past = reader.as_of(cluster=CLUSTER, at_ms=at_ms)
    assert past is not None
    told = {
        (row["topic"], row["partition"]): row["high_watermark"]
        for row in past.tables["partitions"].to_pylist()
    }
    assert past.tables["partitions"].num_rows == len(told) == SIZES.topics * SIZES.partitions
    for topic, partition in told:
        points = reader.partition_history(
            cluster=CLUSTER, topic=topic, partition=partition, since_ms=0, until_ms=at_ms
        )
        assert told[topic, partition] == points["high_watermark"][-1].as_py()
    assert past.tables["health"].num_rows <= 1


def test_a_torn_manifest_is_told_with_reason_and_next_step(store: Path) -> None:
    (store / MANIFEST).write_bytes((store / MANIFEST).read_bytes()[:40])
    with pytest.raises(StoreUnreadableError, match="cannot be read") as caught:
        AggregatesReader(str(store)).now()
    assert caught.value.why
    assert caught.value.what_next


def test_a_missing_file_is_told(store: Path) -> None:
    for path in (store / "now").iterdir():
        path.unlink()
    with pytest.raises(StoreUnreadableError):
        AggregatesReader(str(store)).now()


def test_a_store_reached_by_url_reads_the_same(store: Path) -> None:
    by_url = AggregatesReader(f"file://{store}").now()
    by_path = AggregatesReader(str(store)).now()
    assert by_url is not None
    assert by_path is not None
    assert by_url.tables["commits"].equals(by_path.tables["commits"])


def test_many_moments_at_once_are_as_each_by_itself(tmp_path: Path) -> None:
    """Before history begins, within it, twice, and in the gap after it."""
    StoreBuilder(tmp_path).write_synthetic(
        SyntheticSizes(topics=2, partitions=2), history_s=60, at_ms=AT_MS
    )
    reader = AggregatesReader(str(tmp_path))
    moments = [AT_MS - 90_000, AT_MS - 60_000, AT_MS - 30_500, AT_MS - 30_000, AT_MS + 600_000]
    together = reader.states(cluster=CLUSTER, moments=moments)
    for at_ms, found in zip(moments, together, strict=True):
        alone = reader.as_of(cluster=CLUSTER, at_ms=at_ms)
        assert (found is None) == (alone is None) == (at_ms < AT_MS - 60_000)
        if found is not None and alone is not None:
            assert (found.version, found.gap_since_ms) == (at_ms, alone.gap_since_ms)
            for name, table in alone.tables.items():
                plain = [it.name for it in table.schema if not pa.types.is_nested(it.type)]
                keys = [(it, "ascending") for it in plain]
                assert found.tables[name].sort_by(keys) == table.sort_by(keys), name
    assert [it and it.gap_since_ms for it in together][-1] == AT_MS
