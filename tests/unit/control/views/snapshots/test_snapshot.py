"""What the screens show, from rows to pages."""

from typing import Any

import pytest

from control.model.ids import TopicPartition
from control.views.paths import ViewPath, parse_path
from control.views.snapshots import snapshot as views
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from control.views.tables.findings import consequence_words
from control.views.tables.query import TableQuery
from control.views.tables.rows import Tone
from tests.unit.control import clusters
from tests.unit.control.clusters import NOW_MS


def build(**rows: list[dict[str, Any]]) -> OperatorSnapshot:
    return build_snapshot(clusters.tables(**rows), version=1, now_ms=NOW_MS)


@pytest.fixture
def cluster() -> OperatorSnapshot:
    return build(
        brokers=[
            clusters.broker(101, is_controller=True, rack="a", disk_total_bytes=100,
                            disk_usable_bytes=60),
            clusters.broker(102, is_fenced=True),
        ],
        partitions=[
            clusters.partition("orders", number, [101, 102], isr=[101, 102][: 1 + number % 2],
                               high_watermark=100 * (number + 1))
            for number in range(11)
        ],
        replicas=[clusters.replica("orders", 1, 101, is_leader=True, log_end_offset=200)],
        commits=[
            clusters.commit("billing", "orders", 1, lag=12_904, lag_records_per_s=32.0),
            clusters.commit("search", "orders", 1, lag=0),
        ],
        groups=[clusters.group("billing"), clusters.group("search"), clusters.group("idle")],
    )  # fmt: skip


def test_headline(cluster: OperatorSnapshot) -> None:
    head = cluster.headline

    assert (head.brokers.text, head.brokers.tone) == ("1/2 brokers", Tone.CRITICAL)
    assert head.controller.text == "controller 101"
    assert (head.partitions.text, head.replicas.text) == ("11", "22")
    assert head.in_bytes.text == "10.7 KiB/s"
    assert (head.under_replicated.value, head.under_replicated.tone) == (6, Tone.WARNING)


def test_partitions_are_sorted_by_number_not_by_text(cluster: OperatorSnapshot) -> None:
    page = views.partition_page(cluster)

    assert [row.partition.value for row in page.rows] == list(range(11))


def test_topics_of_bookkeeping_come_last() -> None:
    now = build(
        brokers=[clusters.broker(1)],
        partitions=[
            clusters.partition("__consumer_offsets", 0, [1]),
            clusters.partition("orders", 0, [1]),
        ],
    )

    assert [row.key for row in views.topic_page(now).rows] == ["orders", "__consumer_offsets"]
    assert [row.key for row in views.partition_page(now).rows] == [
        "orders-0", "__consumer_offsets-0"
    ]  # fmt: skip
    assert list(now.heat_map("replicas").topics) == ["orders", "__consumer_offsets"]


def test_sort_offset_and_limit(cluster: OperatorSnapshot) -> None:
    page = views.partition_page(
        cluster, TableQuery(sort="-high_watermark", offset=2, limit=3, filter="topic:orders")
    )

    assert [row.partition.value for row in page.rows] == [8, 7, 6]
    assert (page.total, page.matching, page.offset) == (11, 11, 2)


def test_unknown_values_come_last_both_ways(cluster: OperatorSnapshot) -> None:
    for sort in ("lag", "-lag"):
        page = views.partition_page(cluster, TableQuery(sort=sort))
        assert page.rows[0].partition.value == 1
        assert page.rows[-1].max_lag.text == "–"


def test_a_filter_that_makes_no_sense_is_a_problem_not_an_exception(
    cluster: OperatorSnapshot,
) -> None:
    page = views.partition_page(cluster, TableQuery(filter="colour:red"))

    assert page.rows == ()
    assert page.problem.startswith("no column 'colour'")
    assert "no column" in views.partition_page(cluster, TableQuery(sort="colour")).problem


def test_partition_row_shows_what_is_missing(cluster: OperatorSnapshot) -> None:
    row = views.partition_row(cluster, TopicPartition("orders", 0))

    assert row is not None
    assert (row.isr.text, row.isr.tone) == ("1/2 (−102)", Tone.WARNING)
    assert row.leader.text == "★ 101"
    assert row.status.text == "at-min-isr"
    assert row.path == "topics/orders/partitions/0"
    assert views.partition_row(cluster, TopicPartition("orders", 99)) is None


def test_groups_come_worst_first_and_lagging_ones_say_when_they_clear(
    cluster: OperatorSnapshot,
) -> None:
    rows = views.group_page(cluster).rows

    assert [(row.key, row.status.text) for row in rows] == [
        ("billing", "WARN"), ("search", "OK"), ("idle", "no-commit")
    ]  # fmt: skip
    assert rows[2].status.tone is Tone.MUTED
    assert [row.lag.text for row in rows] == ["12,904", "0", "–"]
    assert [row.clears.text for row in rows] == ["never", "now", "–"]
    assert rows[0].velocity.text == "+32 /s"
    assert rows[0].lag_time.text == "n/a", "the job tells none"


def test_partitions_of_a_group_and_groups_of_a_partition(cluster: OperatorSnapshot) -> None:
    page = views.group_partition_page(cluster, group="billing")
    readers = views.groups_of_partition(cluster, TopicPartition("orders", 1))

    assert [row.key for row in page.rows] == ["billing orders-1"]
    assert [row.group.text for row in readers] == ["billing", "search"]


def test_replicas_in_assignment_order_with_the_unreported_as_unknown(
    cluster: OperatorSnapshot,
) -> None:
    first, second = views.replica_rows(cluster, TopicPartition("orders", 1))

    assert (first.broker.value, first.role.text, first.log_end_offset.text) == (
        101, "★ leader", "200"
    )  # fmt: skip
    assert (second.broker.value, second.size_bytes.text, second.follower_lag.text) == (
        102, "n/a", "n/a"
    )  # fmt: skip


def test_segments_are_counted_from_the_whole_log() -> None:
    now = build(
        partitions=[
            clusters.partition(
                "t", 0, [1], segments=5, segment_bytes=[10, 20], segment_offsets=[50, 77]
            )
        ]
    )

    rows = views.segment_rows(now, TopicPartition("t", 0))

    assert [(row.number.value, row.size_bytes.value, row.state.text) for row in rows] == [
        (4, 10, "closed"),
        (5, 20, "active"),
    ]
    assert [row.base_offset.text for row in rows] == ["50", "77"]


def test_base_offsets_that_an_older_store_does_not_have_are_not_guessed() -> None:
    old = clusters.partition("t", 0, [1], segments=2, segment_bytes=[10, 20])
    rows = views.segment_rows(build(partitions=[old]), TopicPartition("t", 0))
    assert [row.base_offset.text for row in rows] == ["n/a", "n/a"]


def test_segments_that_cannot_be_read_are_not_guessed() -> None:
    now = build(partitions=[clusters.partition("t", 0, [1], segments=None)])

    assert views.segment_rows(now, TopicPartition("t", 0)) == ()
    (row,) = views.partition_page(now).rows
    assert row.segments.text == "n/a"


def test_heat_map_leaves_what_a_broker_does_not_hold_empty(cluster: OperatorSnapshot) -> None:
    heat = cluster.heat_map("leaders")

    assert (list(heat.brokers), list(heat.topics)) == ([101, 102], ["orders"])
    assert heat.values[0][0] == 11
    assert heat.values[1][0] != heat.values[1][0], "NaN: broker 102 leads nothing"


def test_an_empty_store_shows_an_empty_cluster() -> None:
    now = build()

    assert now.is_empty
    assert now.headline.brokers.text == "n/a"
    assert now.headline.offline.text == "n/a"
    assert now.health.text == "no figures yet"
    assert now.age_ms(NOW_MS) is None
    assert now.is_stale(NOW_MS)
    assert views.topic_page(now).rows == ()
    assert views.group_page(now).rows == ()
    assert list(now.heat_map("size_bytes").topics) == []


def test_topics_are_summed_up(cluster: OperatorSnapshot) -> None:
    (row,) = views.topic_page(cluster).rows

    assert (row.partitions.value, row.replicas.text, row.status.text) == (11, "2", "at-min-isr")
    assert row.size_bytes.text == "22.0 MiB"
    assert row.max_lag.value == 12_904


def test_a_reassignment_shows_in_the_headline_and_is_no_finding() -> None:
    rows = [clusters.partition("t", 0, [2, 1, 3], leader=1, isr=[1, 3], adding_replicas=[2],
                               removing_replicas=[3])]  # fmt: skip
    brokers = [clusters.broker(number) for number in (1, 2, 3)]
    snapshot = build_snapshot(
        clusters.tables(partitions=rows, brokers=brokers), version=1, now_ms=NOW_MS
    )
    assert snapshot.headline.moving.text == "1 partition moving"
    assert snapshot.findings == ()
    still = build_snapshot(clusters.tables(brokers=brokers), version=1, now_ms=NOW_MS)
    assert still.headline.moving.text == ""


def test_findings_are_put_into_words(cluster: OperatorSnapshot) -> None:
    shown = [(row.severity.shape, row.label.text, row.title.text) for row in cluster.finding_rows]

    assert shown[0] == ("✖", "broker 102", "fenced or down")
    assert "6 partitions at min ISR" in consequence_words(cluster.finding_rows[0])


def test_a_group_that_falls_behind_is_told_though_it_is_no_finding() -> None:
    now = build(
        brokers=[clusters.broker(101)],
        partitions=[clusters.partition("orders", number, [101]) for number in range(2)],
        commits=[
            clusters.commit("billing", "orders", number, lag=900, lag_records_per_s=32.0)
            for number in range(2)
        ],
        groups=[clusters.group("billing")],
    )

    assert now.findings == ()
    assert (now.health.text, now.health.tone) == ("1 group warns", Tone.MUTED)
    assert now.behind_words == "1 group falls behind (WARN)"
    view, _, query = now.health_path.partition("?q=")
    assert view == "groups"
    assert [row.key for row in views.group_page(now, TableQuery(filter=query)).rows] == ["billing"]


@pytest.mark.parametrize("name", ["team/app", "a b%2F", "100%?x#y", "a[/b]c", "é/注"])
def test_a_group_of_any_name_is_opened_by_its_row_its_finding_and_its_outcome(name: str) -> None:
    shown = build(
        partitions=[clusters.partition("orders", 0, [101], high_watermark=100)],
        commits=[clusters.commit(name, "orders", 0, lag=90, status="STOP", stuck_ms=900_000)],
        groups=[clusters.group(name, status="STOP", lag_sum=90)],
    )
    done = ViewPath(view="group", params={"group": name})
    rows = [row for row in views.group_page(shown).rows if row.key == name]
    findings = [each for each in shown.findings if each.subject.startswith("groups/")]
    assert rows
    paths = [str(done), *(row.path for row in rows), *(each.subject for each in findings)]
    for path in paths:
        assert parse_path(path).params == {"group": name}, path
