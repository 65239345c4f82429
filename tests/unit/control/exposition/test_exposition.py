"""The exposition over snapshots: known values, and what must be absent."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from control.exposition.exposition import Exposition, write
from control.exposition.families import EVERY_GROUP
from control.exposition.limits import USUAL, Limits
from control.exposition.source import ClusterSource
from control.move.events import MoveProgress
from control.move.state import OperationState, Phase
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from control.views.snapshots.store import StoreReader
from dashboard.server.metrics import PROCESS_METRICS
from spark_metrics.window.tables import NOW_TABLES
from tests.support.scraped import Scraped
from tests.support.store_builder import (
    CLUSTER,
    StoreBuilder,
    SyntheticSizes,
    synthetic_rows,
    table_of,
)

ROOT: Final = Path(__file__).resolve().parents[4]
AT_MS: Final = 1_800_000_000_000
SIZES: Final = SyntheticSizes(topics=2, partitions=3, groups=3)
Rows = dict[str, list[dict[str, Any]]]


def rows_of(sizes: SyntheticSizes = SIZES, **changes: Callable[[dict[str, Any]], None]) -> Rows:
    """Rows of a synthetic cluster, each table's changed by the function of its name."""
    rows = synthetic_rows(sizes, at_ms=AT_MS)
    for row in rows["brokers"]:
        row["heard_ms"] = AT_MS
    for row in rows["commits"]:
        row["source"] = 101
    for name, change in changes.items():
        for row in rows[name]:
            change(row)
    return rows


def snapshot_of(rows: Rows, *, later_ms: int = 200, **more: Any) -> OperatorSnapshot:
    tables = {name: table_of(rows[name], schema) for name, schema in NOW_TABLES.items()}
    return build_snapshot(tables, version=1, now_ms=AT_MS + later_ms, **more)


def scraped(rows: Rows, *, limits: Limits = USUAL, is_current: bool = True, **more: Any) -> Scraped:
    snapshot = snapshot_of(rows, **more)
    source = ClusterSource(name="c", snapshot=snapshot, limits=limits, is_current=is_current)
    return Scraped.of(write([source]))


def test_figures_have_the_names_that_users_of_kafka_exporter_know() -> None:
    told = scraped(rows_of())
    third = {"topic": "topic-0", "partition": "2", "cluster": "c"}
    behind = {"consumergroup": "group-1", "topic": "topic-1"}

    assert told.value("kafka_brokers", cluster="c") == 3
    assert told.value("kafka_broker_info", id="101", address="127.0.0.1:9092") == 1
    assert told.value("kafka_topic_partitions", topic="topic-0") == 3
    assert told.value("kafka_topic_partition_current_offset", **third) == 10_200
    assert told.value("kafka_topic_partition_oldest_offset", **third) == 0
    assert told.value("kafka_topic_partition_leader", **third) == 103
    assert told.value("kafka_topic_partition_replicas", **third) == 3
    assert told.value("kafka_topic_partition_in_sync_replica", **third) == 3
    assert told.value("kafka_topic_partition_leader_is_preferred", **third) == 1
    assert told.value("kafka_topic_partition_under_replicated_partition", **third) == 0
    assert told.value("kafka_consumergroup_lag", partition="0", **behind) == 2_000
    assert told.value("kafka_consumergroup_current_offset", partition="0", **behind) == 8_300
    assert told.value("kafka_consumergroup_lag_sum", **behind) == 6_000
    assert told.value("kafka_consumergroup_current_offset_sum", **behind) == 25_200
    assert told.value("kafka_consumergroup_members", consumergroup="group-1") == 2
    assert told.value("kminion_kafka_topic_log_dir_size_total_bytes", topic_name="topic-0") == (
        3 * 100 * (10_000 + 10_100 + 10_200)
    )


def test_every_family_is_of_one_declaration_in_base_units() -> None:
    names = [family.name for group in EVERY_GROUP for family in group.families]

    assert len(names) == len(set(names))
    for name in names:
        assert not name.endswith(("_ms", "_percent", "_milliseconds")), name
        assert name.startswith(("kafka_", "kminion_", "partiscope_")), name


def test_what_nobody_knows_is_absent_and_never_zero() -> None:
    def forget_partition(row: dict[str, Any]) -> None:
        if (row["topic"], row["partition"]) == ("topic-0", 1):
            row.update(high_watermark=None, size_bytes=None, log_start_offset=None)

    def forget_lag(row: dict[str, Any]) -> None:
        if (row["group_id"], row["partition"]) == ("group-1", 1):
            row.update(lag=None, end_offset=None)

    told = scraped(rows_of(partitions=forget_partition, commits=forget_lag))
    unknown = {"topic": "topic-0", "partition": "1"}
    behind = {"consumergroup": "group-1"}

    assert told.all("kafka_topic_partition_current_offset", **unknown) == []
    assert told.all("kafka_topic_partition_oldest_offset", **unknown) == []
    assert told.value("kafka_topic_partition_replicas", **unknown) == 3
    assert told.all("partiscope_topic_size_bytes", topic="topic-0") != [0]
    assert told.all("kafka_consumergroup_lag", partition="1", **behind) == []
    assert told.all("kafka_consumergroup_lag_sum", **behind) == []
    assert told.value("partiscope_consumergroup_known_lag", **behind) == 4_000
    assert told.value("partiscope_consumergroup_unknown_lag_partitions", **behind) == 1
    assert told.value("kafka_consumergroup_current_offset_sum", **behind) == 25_200
    assert told.all("partiscope_consumergroup_data_loss_seconds") == []


def test_an_offline_partition_has_neither_leader_nor_offsets() -> None:
    rows = rows_of(SyntheticSizes(topics=1, partitions=4, groups=1, offline_every=3))
    told = scraped(rows)
    gone = {"topic": "topic-0", "partition": "3"}

    assert told.all("kafka_topic_partition_leader", **gone) == []
    assert told.all("kafka_topic_partition_leader_is_preferred", **gone) == []
    assert told.all("kafka_topic_partition_current_offset", **gone) == []
    assert told.all("kafka_consumergroup_lag", **gone) == []
    assert told.value("kafka_consumergroup_current_offset", **gone) is not None
    assert told.value("kafka_topic_partition_in_sync_replica", **gone) == 1
    assert told.value("kafka_topic_partition_under_replicated_partition", **gone) == 1
    assert told.value("partiscope_status_partitions", status="offline") == 2
    assert told.value("partiscope_finding", id="offline", severity="critical") == 1


def test_what_rests_on_a_broker_that_is_not_heard_of_is_absent() -> None:
    def silence(row: dict[str, Any]) -> None:
        if row["broker"] == 101:
            row.update(heard_ms=AT_MS - 60_000, sampled_ms=AT_MS - 60_000)

    def told_by_102(row: dict[str, Any]) -> None:
        row["source"] = 101 if row["group_id"] == "group-0" else 102

    told = scraped(rows_of(brokers=silence, commits=told_by_102))

    assert told.value("partiscope_broker_up", broker="101") == 0
    assert told.value("partiscope_broker_status", broker="101", status="silent") == 1
    assert told.all("partiscope_broker_size_bytes", broker="101") == []
    assert told.value("partiscope_broker_size_bytes", broker="102") is not None
    led = "kafka_topic_partition_current_offset"
    assert told.all(led, topic="topic-0", partition="0") == []  # led by 101
    assert told.value(led, topic="topic-0", partition="1") == 10_100
    assert told.all("kafka_topic_partition_in_sync_replica", topic="topic-0", partition="0") == []
    assert told.all("partiscope_topic_size_bytes") == []  # each has a replica there
    assert told.all("kafka_consumergroup_members", consumergroup="group-0") == []
    assert told.all("kafka_consumergroup_current_offset", consumergroup="group-0") == []
    assert told.all("kafka_consumergroup_lag_sum", consumergroup="group-1") == []
    assert len(told.all("kafka_consumergroup_lag", consumergroup="group-1")) == 2


def test_stale_figures_are_absent_and_said_to_be_so() -> None:
    told = scraped(rows_of(), is_current=False, later_ms=120_000)

    assert {it for it in told.names if it.startswith(("kafka_", "kminion_"))} == set()
    assert told.all("partiscope_consumergroup_lag_seconds") == []
    assert told.all("partiscope_broker_up") == []
    assert told.value("partiscope_figures_stale", cluster="c") == 1
    assert told.value("partiscope_figures_timestamp_seconds") == AT_MS / 1000
    assert told.value("partiscope_job_written_timestamp_seconds") == AT_MS / 1000
    assert told.all("partiscope_job_batch_seconds") == []
    assert told.value("partiscope_findings", severity="critical") == 1


def test_a_cluster_without_figures_tells_that_alone() -> None:
    told = scraped({name: [] for name in NOW_TABLES}, is_current=False)

    assert told.value("partiscope_figures_stale") == 1
    assert told.all("partiscope_figures_timestamp_seconds") == []
    assert told.all("kafka_brokers") == []
    assert told.all("partiscope_partitions") == []


HOSTILE: Final = (
    "\x1b[2Jevil",
    "\\x1b[2Jevil",
    'a"b',
    'a\\"b',
    "a\nkafka_brokers 0",
    "nul\0l",
    "back\\slash",
    "‮turned",
    "a{b}=,c",
    "ümlaut 日本",
)


def test_hostile_names_are_escaped_and_stay_apart() -> None:
    rows = rows_of(SyntheticSizes(topics=1, partitions=1, groups=1))
    (commit,), (group,) = rows["commits"], rows["groups"]
    rows["commits"] = [{**commit, "group_id": it} for it in HOSTILE]
    rows["groups"] = [{**group, "group_id": it} for it in HOSTILE]
    source = ClusterSource(name='c"\x1b', snapshot=snapshot_of(rows), limits=USUAL, is_current=True)
    written = write([source])
    told = Scraped.of(written)

    found = told.values_of("kafka_consumergroup_lag", "consumergroup")
    assert len(found) == len(HOSTILE)
    assert {"\\x1b[2Jevil", 'a"b', "back\\slash", "ümlaut 日本"} <= found
    assert all(name.isprintable() for name in found)
    assert told.value("kafka_brokers") == 3
    assert told.values_of("kafka_brokers", "cluster") == {'c"\\x1b'}


def test_names_beyond_the_bound_have_no_series_and_are_counted() -> None:
    rows = rows_of(SyntheticSizes(topics=1, partitions=1, groups=1))
    (group,) = rows["groups"]
    rows["groups"] = [group, {**group, "group_id": "x" * 32_000}]
    told = scraped(rows)

    assert told.values_of("kafka_consumergroup_members", "consumergroup") == {"group-0"}
    assert told.value("partiscope_left_out", of="groups") == 1


def test_limits_keep_the_worst_and_the_largest_and_count_the_rest() -> None:
    rows = rows_of(SyntheticSizes(topics=3, partitions=4, groups=3, offline_every=6))
    limits = Limits(topics_max=1, partitions_max=3, groups_max=1, group_partitions_max=2)
    told = scraped(rows, limits=limits)

    replicas = "kafka_topic_partition_replicas"
    kept = {
        (dict(it)["topic"], dict(it)["partition"]) for name, it in told.series if name == replicas
    }
    assert kept == {("topic-0", "0"), ("topic-1", "2"), ("topic-2", "3")}  # two offline, one large
    assert told.value("partiscope_left_out", of="partitions") == 9
    assert told.value("partiscope_left_out", of="topics") == 2
    assert told.value("partiscope_left_out", of="groups") == 2
    assert told.value("partiscope_left_out", of="group_partitions") == 10
    assert told.values_of("kafka_consumergroup_members", "consumergroup") == {"group-2"}
    assert told.value("partiscope_partitions") == 12
    assert sum(told.all("partiscope_consumergroups")) == 3


def test_patterns_choose_topics_and_groups() -> None:
    limits = Limits(topics=["topic-*"], exclude_topics=["*-1"], exclude_groups=["group-0"])
    told = scraped(rows_of(), limits=limits)

    assert told.values_of("kafka_topic_partition_leader", "topic") == {"topic-0"}
    assert told.values_of("kafka_topic_partitions", "topic") == {"topic-0"}
    assert told.values_of("kafka_consumergroup_members", "consumergroup") == {"group-1", "group-2"}
    assert told.values_of("kafka_consumergroup_lag", "topic") == {"topic-0"}
    assert told.value("partiscope_left_out", of="groups") == 0


def test_families_beyond_the_bytes_are_left_out_whole_and_counted() -> None:
    source = ClusterSource(name="c", snapshot=snapshot_of(rows_of()), limits=USUAL, is_current=True)
    whole = write([source])
    few = ClusterSource(name="c", snapshot=source.snapshot, limits=USUAL, is_current=True)
    told = Scraped.of(write([few], bytes_max=4_000))

    assert told.value("kafka_brokers") == 3
    assert (told.value("partiscope_left_out", of="families") or 0) > 10
    assert len(told.families) < len(whole.families)
    for family in told.families:
        if family.name.startswith("kafka_topic_partition_"):
            assert len(family.samples) == 6


def test_state_sets_have_one_state() -> None:
    told = scraped(rows_of())

    for broker in ("101", "102", "103"):
        assert sorted(told.all("partiscope_broker_status", broker=broker)) == [0, 0, 0, 0, 0, 1]
    verdict = "partiscope_consumergroup_verdict"
    assert told.value(verdict, consumergroup="group-2", verdict="STOP") == 1
    assert told.value(verdict, consumergroup="group-1", verdict="WARN") == 1
    assert sum(told.all(verdict, consumergroup="group-2")) == 1
    assert told.value("partiscope_consumergroups", verdict="STOP") == 1


@pytest.mark.parametrize(
    ("risk_ms", "lag", "seconds"),
    [(90_000, 2_000, 90.0), (0, 2_000, 0.0), (400 * 86_400_000, 2_000, float("inf")), (0, 0, None)],
)
def test_time_to_data_loss_is_infinite_beyond_what_is_foretold(
    risk_ms: int, lag: int, seconds: float | None
) -> None:
    def at_risk(row: dict[str, Any]) -> None:
        row.update(retention_risk_ms=risk_ms, lag=lag, lost_records=0)
        row["committed_offset"] = row["end_offset"] - lag

    told = scraped(rows_of(commits=at_risk))

    assert set(told.all("partiscope_consumergroup_data_loss_seconds")) == {seconds} - {None}
    partitions = told.all("partiscope_consumergroup_partition_data_loss_seconds")
    assert set(partitions) == {seconds} - {None}


def test_running_reassignments_tell_their_progress() -> None:
    progress = MoveProgress(bytes_done=40, bytes_total=100, partitions_done=1, partitions_total=4,
                            wave=1, waves=2, rate_bytes_per_s=8.0, eta_s_high=7.5)  # fmt: skip
    running = OperationState(operation_id="m-1", phase=Phase.RUNNING, progress=progress,
                             updated_ms=AT_MS)  # fmt: skip
    done = OperationState(operation_id="m-0", phase=Phase.FINISHED, progress=progress)
    told = scraped(rows_of(), moves=(running, done))

    assert told.values_of("partiscope_reassignment_bytes", "reassignment") == {"m-1"}
    assert told.value("partiscope_reassignment_bytes") == 100
    assert told.value("partiscope_reassignment_copied_bytes") == 40
    assert told.value("partiscope_reassignment_moved_partitions") == 1
    assert told.value("partiscope_reassignment_remaining_seconds") == 7.5
    assert told.value("partiscope_reassignment_phase", phase="running") == 1
    assert sum(told.all("partiscope_reassignment_phase")) == 1
    assert told.all("partiscope_reassignment_throttle_bytes_per_second") == []


def test_clusters_stand_side_by_side_in_one_family() -> None:
    sources = [
        ClusterSource(name=it, snapshot=snapshot_of(rows_of()), limits=USUAL, is_current=True)
        for it in ("prod", "test")
    ]
    told = Scraped.of(write(sources))

    assert told.values_of("kafka_topic_partition_leader", "cluster") == {"prod", "test"}
    assert told.value("kafka_brokers", cluster="test") == 3
    assert told.all("partiscope_job_batch_seconds") == [0.3]


class _Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.ms = AT_MS + 200

    def __call__(self) -> int:
        return self.ms


def test_it_is_written_once_for_each_snapshot_and_anew_when_that_is_stale(tmp_path: Path) -> None:
    clock, store = _Clock(), StoreBuilder(tmp_path)
    store.write(rows_of())
    feed = SnapshotFeed(StoreReader(str(tmp_path)), now_ms=clock)
    feed.refresh()
    exposition = Exposition(feeds={"": feed}, now_ms=clock)
    first = exposition.written()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(exposition.written())) for _ in "abc"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert [it is first for it in found] == [True] * 3
    assert Scraped.of(first).values_of("kafka_brokers", "cluster") == {CLUSTER}

    clock.ms += 60_000  # the feed is not asked: whoever hangs must not keep figures alive
    stale = Scraped.of(exposition.written())
    assert stale.value("partiscope_figures_stale") == 1
    assert stale.all("kafka_brokers") == []

    feed.refresh()
    assert exposition.written() is not first


def test_numbers_of_all_64_bits_are_whole() -> None:
    def huge(row: dict[str, Any]) -> None:
        row["high_watermark"] = (1 << 63) - 1

    rows: Mapping[str, Any] = rows_of(
        SyntheticSizes(topics=1, partitions=1, groups=0), partitions=huge
    )
    source = ClusterSource(
        name="c", snapshot=snapshot_of(dict(rows)), limits=USUAL, is_current=True
    )

    assert any(
        b" 9223372036854775807\n" in text for _, texts in write([source]).families for text in texts
    )


NAME: Final = re.compile(r"\b(?:kafka|kminion|partiscope|process)_\w+")


@pytest.mark.parametrize("file", ["examples/grafana/partiscope.json", "docs/operate/prometheus.md"])
def test_queries_name_metrics_and_labels_that_are_exposed(file: str) -> None:
    """Of the dashboard, and of the rules to begin with."""
    text = (ROOT / file).read_text()
    exprs = "\n".join(_expressions(json.loads(text))) if file.endswith("json") else _rules(text)
    labels = {it.name: group.label_names for group in EVERY_GROUP for it in group.families}
    named = set(NAME.findall(exprs))

    assert len(named) > 4
    assert named <= {*labels, *PROCESS_METRICS, "process_resident_memory_bytes"}
    for name, chosen in re.findall(r"(\w+)\{([^}]*)\}", exprs):
        asked = set(re.findall(r"(\w+)=", chosen))
        assert asked <= {*labels.get(name, ()), *_OF_SCRAPE}, name


_OF_SCRAPE: Final = ("job",)


def _expressions(node: Any) -> Iterator[str]:
    """Every query of a dashboard, of its panels and its variables."""
    if isinstance(node, list):
        for each in node:
            yield from _expressions(each)
    elif isinstance(node, dict):
        for key, value in node.items():
            is_query = key in ("expr", "query") and isinstance(value, str)
            yield from [value] if is_query else _expressions(value)


def _rules(text: str) -> str:
    return "\n".join(re.findall(r"^ *expr: (.*)$", text, re.MULTILINE))
