"""A rate and a verdict die with the source that they rest on; what was read stays, with its age."""

from typing import Any

import pytest

from control.model.freshness import doubtful_brokers
from control.model.status import Severity
from control.model.watched_cluster import WatchedCluster
from control.views.cluster.all_clusters import cluster_rows
from control.views.snapshots.snapshot import (
    OperatorSnapshot,
    broker_page,
    build_snapshot,
    group_page,
    group_partition_page,
    partition_page,
    topic_page,
)
from control.views.tables.export import exported
from control.views.tables.rows import Tone
from tests.unit.control import clusters
from tests.unit.control.clusters import NOW_MS

BROKERS = (101, 102, 103)


def health(**known: Any) -> dict[str, Any]:
    row = {"batch_id": 1, "batch_ms": 300, "records": 9, "bad_records": 0, "bad_records_total": 0}
    return {**row, "delay_ms": 700, "newest_round_ms": NOW_MS - 700, "written_ms": NOW_MS, **known}


def judged(
    *,
    now_ms: int = NOW_MS,
    heard: dict[int, int] | None = None,
    answering: frozenset[int] | None = None,
    **rows: Any,
) -> OperatorSnapshot:
    """A partition a broker, led by it, and a group that reads all of them."""
    heard_ms = dict.fromkeys(BROKERS, NOW_MS - 300) | (heard or {})
    found = {
        "brokers": [
            clusters.broker(it, heard_ms=heard_ms[it], sampled_ms=heard_ms[it] - 500)
            for it in BROKERS
        ],
        "partitions": [clusters.partition("t", n, [it]) for n, it in enumerate(BROKERS)],
        "commits": [
            clusters.commit("g", "t", n, status="OK", time_lag_ms=6_800, source=101)
            for n in range(len(BROKERS))
        ],
        "groups": [clusters.group("g")],
        "health": [health()],
        **rows,
    }
    tables = clusters.tables(**found)
    return build_snapshot(tables, version=1, now_ms=now_ms, answering=answering)


def kinds(snapshot: OperatorSnapshot) -> list[tuple[str, str, Severity]]:
    return [(it.kind, it.label, it.severity) for it in snapshot.findings]


def column(page: Any, name: str) -> list[Any]:
    return [row.cell(name).text for row in page.rows]


def statuses(snapshot: Any) -> list[str]:
    """Of the brokers, without since when."""
    return [words.partition(" ")[0] for words in column(broker_page(snapshot), "status")]


def test_while_figures_come_all_is_said_as_it_is() -> None:
    snapshot = judged()
    assert kinds(snapshot) == []
    assert snapshot.headline.brokers.text == "3/3 brokers"
    assert column(group_page(snapshot), "rests_on") == ["3 partitions"]


@pytest.mark.parametrize(("after_ms", "is_dead"), [(5_700, False), (5_900, True), (54_000, True)])
def test_a_cluster_that_says_nothing_is_critical_within_seven_seconds(
    after_ms: int, is_dead: bool
) -> None:
    snapshot = judged(now_ms=NOW_MS + after_ms)
    assert (("cluster-silent", "cluster", Severity.CRITICAL) in kinds(snapshot)) is is_dead
    assert snapshot.is_stale(NOW_MS + after_ms) is is_dead


def test_of_a_silent_cluster_no_face_shows_a_rate_or_a_verdict() -> None:
    now_ms = NOW_MS + 54_000
    snapshot = judged(now_ms=now_ms)
    head = snapshot.headline
    assert head.brokers.text == "0/3 brokers heard"
    assert {head.in_bytes.text, head.out_bytes.text, head.in_records.text} == {"n/a"}
    assert head.controller.text == "controller not known"
    assert statuses(snapshot) == ["silent"] * 3
    assert column(partition_page(snapshot), "status") == ["not-known"] * 3
    assert column(topic_page(snapshot), "status") == ["not-known"]
    assert column(topic_page(snapshot), "in_bytes") == ["n/a"]
    assert column(group_page(snapshot), "status") == ["not-known"]
    (row,) = exported(group_page(snapshot)).to_pylist()
    assert row["status"] is None
    assert "all brokers are silent" in row["status_unknown_because"]
    assert row["lag"] == 30, "what was read stays"
    (listed,) = cluster_rows([(WatchedCluster(), snapshot)], now_ms=now_ms)
    assert listed.brokers.text == "0/3 brokers heard"
    assert listed.in_bytes.text == "n/a"
    assert "1 not-known" in listed.groups.text


def test_one_hung_broker_is_named_and_only_its_own_figures_die() -> None:
    snapshot = judged(heard={102: NOW_MS - 4_000})
    assert kinds(snapshot) == [("stale", "broker 102", Severity.WARNING)]
    assert snapshot.headline.brokers.text == "2/3 brokers heard"
    assert statuses(snapshot) == ["alive", "silent", "alive"]
    assert column(broker_page(snapshot), "in_bytes") == ["1000 B/s", "n/a", "1000 B/s"]
    assert column(partition_page(snapshot), "status") == ["ok", "not-known", "ok"]
    page = group_partition_page(snapshot, group="g")
    reasons = dict(
        zip(column(page, "partition"), column(page, "status_unknown_because"), strict=True)
    )
    assert reasons == {"0": "–", "1": "its leader, broker 102, is silent", "2": "–"}
    assert column(group_page(snapshot), "rests_on") == ["2 of 3 partitions"]


def test_a_job_that_is_slow_is_not_a_cluster_that_is_dead() -> None:
    slow = health(batch_ms=6_000, delay_ms=9_000, written_ms=NOW_MS)
    for age_ms in (0, 5_000, 12_000):
        snapshot = judged(
            now_ms=NOW_MS + age_ms, heard=dict.fromkeys(BROKERS, NOW_MS - 6_000), health=[slow]
        )
        assert "cluster-silent" not in {kind for kind, _, _ in kinds(snapshot)}


def test_a_broker_whose_clock_is_wrong_is_not_silent() -> None:
    rows = [clusters.broker(it, heard_ms=NOW_MS - 300) for it in BROKERS]
    rows[1]["sampled_ms"] = NOW_MS - 45_000
    rows[2]["sampled_ms"] = NOW_MS + 45_000
    assert kinds(judged(brokers=rows)) == []


def test_a_cluster_beside_a_living_bus_dies_alone() -> None:
    snapshot = judged(heard=dict.fromkeys(BROKERS, NOW_MS - 20_000))
    assert [kind for kind, _, _ in kinds(snapshot)] == ["cluster-silent"]


def test_a_job_that_starts_spark_is_given_time() -> None:
    assert kinds(judged(now_ms=NOW_MS + 30_000, health=[])) == []
    assert kinds(judged(now_ms=NOW_MS + 61_000, health=[]))[0][0] == "cluster-silent"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"partitions": [clusters.partition("t", 0, [104], leader=-1)]},
            "its partition is offline",
        ),
        (
            {"brokers": [clusters.broker(101, is_fenced=True), clusters.broker(102)]},
            "its coordinator, broker 101, is silent",
        ),
    ],
)
@pytest.mark.parametrize("told", ["OK", "STALL", "WARN", None])
@pytest.mark.parametrize("lag", [0, 400])
def test_a_verdict_dies_with_its_partition_or_its_coordinator(
    changes: dict[str, Any], reason: str, told: str | None, lag: int
) -> None:
    dying = clusters.commit(
        "g",
        "t",
        0,
        status=told,
        lag=lag,
        time_lag_ms=6_800,
        lag_records_per_s=5.0,
        source=101,
        stuck_since_ms=NOW_MS - 90_000,
    )
    rows = {"partitions": [clusters.partition("t", 0, [102])], **changes}
    snapshot = judged(commits=[dying], **rows)
    (row,) = group_partition_page(snapshot, group="g").rows
    assert (row.status.text, row.status_unknown_because.text) == ("not-known", reason)
    assert (row.lag_time.text, row.lag.value) == ("n/a", lag)
    (whole,) = group_page(snapshot).rows
    assert (whole.status.text, whole.rests_on.text) == ("not-known", "0 of 1 partition")
    assert whole.status_unknown_because.text == f"t-0: {reason}"
    assert not any(kind.startswith("group-") for kind, _, _ in kinds(snapshot))


def test_records_that_are_deleted_stay_lost_when_the_partition_is_offline() -> None:
    snapshot = judged(
        partitions=[clusters.partition("t", 0, [102], leader=-1, log_start_offset=95)],
        commits=[clusters.commit("g", "t", 0, status="OK")],
    )
    assert column(group_page(snapshot), "status") == ["LOST"]


def test_a_group_is_judged_by_the_worst_of_what_is_known() -> None:
    rows = [
        clusters.commit("g", "t", 0, status="STALL", stuck_since_ms=NOW_MS - 60_000, source=101),
        clusters.commit("g", "t", 1, status="OK", source=101),
    ]
    offline = clusters.partition("t", 1, [102], leader=-1)
    snapshot = judged(commits=rows, partitions=[clusters.partition("t", 0, [101]), offline])
    (row,) = group_page(snapshot).rows
    assert (row.status.text, row.rests_on.text) == ("STALL", "1 of 2 partitions")
    assert row.status_unknown_because.text == "t-1: its partition is offline"


def test_the_last_figures_of_an_offline_partition_are_marked_as_such() -> None:
    rows = [
        clusters.partition("t", 0, [104], leader=-1, read_ms=NOW_MS - 90_000),
        clusters.partition("t", 1, [101]),
    ]
    offline, alive = partition_page(judged(partitions=rows)).rows
    assert (offline.age.text, offline.age.tone) == ("1 m 30 s ago", Tone.WARNING)
    assert {it.tone for it in (offline.size_bytes, offline.records, offline.high_watermark)} == {
        Tone.MUTED
    }
    assert (offline.high_watermark.text, alive.high_watermark.tone) == ("100", Tone.PLAIN)
    (row, _) = exported(partition_page(judged(partitions=rows))).to_pylist()
    assert (row["status"], row["high_watermark"], row["age"]) == ("offline", 100, 90_000.0)


def asked(answering: frozenset[int] | None, *, now_ms: int, **known: Any) -> OperatorSnapshot:
    return judged(now_ms=now_ms, answering=answering, **known)


def test_late_figures_of_brokers_that_answer_silence_none_of_them() -> None:
    snapshot = asked(frozenset(BROKERS), now_ms=NOW_MS + 8_000)
    assert kinds(snapshot) == [("metrics-late", "figures", Severity.WARNING)]
    assert column(broker_page(snapshot), "status") == ["alive"] * 3
    assert snapshot.headline.brokers.text == "3/3 brokers"
    assert snapshot.headline.in_bytes.value is None
    assert snapshot.headline.controller.text == "controller not known"
    assert snapshot.is_stale(NOW_MS + 8_000)
    assert column(group_page(snapshot), "status") == ["not-known"]
    assert set(column(group_partition_page(snapshot, group="g"), "status_unknown_because")) == {
        "all figures are late"
    }


def test_figures_that_are_late_for_long_are_critical() -> None:
    snapshot = asked(frozenset(BROKERS), now_ms=NOW_MS + 40_000)
    assert kinds(snapshot) == [("metrics-late", "figures", Severity.CRITICAL)]


def test_of_late_figures_the_broker_that_does_not_answer_is_named() -> None:
    snapshot = asked(frozenset({101, 103}), now_ms=NOW_MS + 8_000)
    assert {(kind, label) for kind, label, _ in kinds(snapshot)} == {
        ("metrics-late", "figures"),
        ("stale", "broker 102"),
    }
    assert statuses(snapshot) == ["alive", "silent", "alive"]


def test_a_broker_that_does_not_answer_is_named_before_the_job_is_late() -> None:
    now_ms = NOW_MS + 3_300
    assert kinds(judged(now_ms=now_ms)) == []
    assert [label for _, label, _ in kinds(asked(frozenset({101, 103}), now_ms=now_ms))] == [
        "broker 102"
    ]


def test_a_broker_whose_figures_are_of_now_is_not_judged_by_its_answer() -> None:
    assert kinds(asked(frozenset(), now_ms=NOW_MS + 1_000)) == []


def test_brokers_none_of_which_answers_are_silent_as_a_cluster() -> None:
    snapshot = asked(frozenset(), now_ms=NOW_MS + 8_000)
    assert kinds(snapshot)[0][0] == "cluster-silent"
    assert snapshot.findings[0].reason.startswith("No broker answers")


def test_only_brokers_whose_figures_are_old_are_asked_and_all_once_the_job_has_stopped() -> None:
    one_is_old = {102: NOW_MS - 6_000}
    snapshot = judged(heard=one_is_old).cluster
    assert list(doubtful_brokers(snapshot, now_ms=NOW_MS)) == [102]
    assert doubtful_brokers(judged().cluster, now_ms=NOW_MS) == {}
    assert list(doubtful_brokers(judged().cluster, now_ms=NOW_MS + 8_000)) == list(BROKERS)
