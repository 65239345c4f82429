"""Findings: what is told, how bad it is, where it leads, and what is not told twice."""

from typing import Any

import pytest

from control.model.finding import Finding, Operation
from control.model.finding_rules import Evidence, find_all
from control.model.status import (
    GROUP_SEVERITIES,
    PARTITION_SEVERITIES,
    Severity,
    commit_ranks,
    partition_statuses,
    words_of,
)
from control.views.format import phrase
from control.views.tables.brokers import broker_table
from tests.support.phrases import lacking
from tests.unit.control import clusters
from tests.unit.control.clusters import MIB, NOW_MS


def find(**rows: list[dict[str, Any]]) -> tuple[Finding, ...]:
    return find_all(Evidence.gather(clusters.snapshot(**rows), now_ms=NOW_MS))


def kinds(findings: tuple[Finding, ...]) -> list[str]:
    return [item.kind for item in findings]


def test_a_healthy_cluster_has_no_findings() -> None:
    assert (
        find(
            brokers=[clusters.broker(1), clusters.broker(2)],
            partitions=[clusters.partition("t", 0, [1, 2]), clusters.partition("t", 1, [2, 1])],
            commits=[clusters.commit("g", "t", 0)],
            groups=[clusters.group("g")],
        )
        == ()
    )


def test_one_offline_partition_leads_to_itself_and_many_to_their_list() -> None:
    one = clusters.partition("t", 0, [1], leader=-1)
    two = clusters.partition("t", 1, [1], leader=-1)

    (single,) = find(partitions=[one])
    (both,) = find(partitions=[one, two])

    assert single.subject == "topics/t/partitions/0"
    assert single.severity is Severity.CRITICAL
    assert both.subject == "partitions?q=status:offline"
    assert both.facts["count"] == 2


def test_what_lacks_replicas_is_told_by_its_worst_name_and_counted_whole() -> None:
    partitions = [
        clusters.partition("under-min", 0, [1, 2, 3], isr=[1], min_isr=2),
        clusters.partition("at-min", 0, [1, 2, 3], isr=[1, 2], min_isr=2),
        clusters.partition("lacks", 0, [1, 2, 3], isr=[1, 2], min_isr=1),
    ]

    def counted(*rows: dict[str, Any]) -> dict[str, Any]:
        return {item.kind: item.facts["count"] for item in find(partitions=[*rows])}

    assert counted(*partitions) == {"under-min-isr": 1, "at-min-isr": 1, "under-replicated": 3}
    assert counted(*partitions[:2]) == {"under-min-isr": 1, "at-min-isr": 1}, "not told again"


def test_a_planned_move_is_moving_and_nothing_worse() -> None:
    moving = clusters.partition("t", 0, [1, 2, 3], isr=[1, 2], adding_replicas=[3], min_isr=2)

    statuses = partition_statuses(clusters.snapshot(partitions=[moving]))

    assert words_of(statuses.ranks(), PARTITION_SEVERITIES).to_pylist() == ["moving"]


def test_an_added_replica_in_sync_does_not_hide_a_settled_one_that_is_not() -> None:
    moving = clusters.partition("t", 0, [1, 2, 3], isr=[1, 3], adding_replicas=[3])

    statuses = partition_statuses(clusters.snapshot(partitions=[moving]))

    assert statuses.count("under-replicated") == 1


def test_leader_not_preferred_offers_an_election() -> None:
    (found,) = find(partitions=[clusters.partition("t", 0, [1, 2], leader=2)])

    assert found.kind == "not-preferred"
    assert found.operation is Operation.ELECT


def test_a_fenced_broker_with_replicas_is_critical() -> None:
    found = find(
        brokers=[clusters.broker(1), clusters.broker(2, is_fenced=True, sampled_ms=5)],
        partitions=[clusters.partition("t", 0, [1, 2])],
    )

    assert [(item.kind, item.severity, item.since_ms) for item in found] == [
        ("broker-fenced", Severity.CRITICAL, 5)
    ]
    assert found[0].facts["replicas"] == 1
    assert not lacking(found[0].next_step, "Start it", "move its replicas")


def test_a_broker_without_an_address_for_us_is_told_and_neither_dead_nor_silent() -> None:
    cluster = clusters.snapshot(
        brokers=[clusters.broker(1), clusters.broker(2, host="", port=-1, sampled_ms=5)],
        partitions=[clusters.partition("t", 0, [1, 2])],
    )
    evidence = Evidence.gather(cluster, now_ms=NOW_MS)
    assert [row["status"] for row in broker_table(evidence).to_pylist()] == ["alive", "no address"]
    (found,) = find_all(evidence)
    assert (found.kind, found.severity) == ("broker-no-address", Severity.WARNING)
    assert not lacking(f"{found.title}. {found.next_step}", "no address for us", "listener")


def test_a_fenced_broker_that_holds_nothing_may_be_one_that_was_retired() -> None:
    (found,) = find(
        brokers=[clusters.broker(1), clusters.broker(2, is_fenced=True, sampled_ms=5)],
        partitions=[clusters.partition("t", 0, [1])],
    )

    assert (found.kind, found.severity) == ("broker-fenced", Severity.WARNING)
    assert found.next_step.endswith("`partiscope brokers drain 2`")


@pytest.mark.parametrize(
    ("cordoned", "title", "reason"),
    [
        ("ab", "cordoned", "names it; 1 replica stay there"),
        ("b", "1 of 2 log directories cordoned", "They receive no new replicas: /b."),
    ],
)
def test_cordoned_log_directories_are_noticed(cordoned: str, title: str, reason: str) -> None:
    (found,) = find(
        brokers=[clusters.broker(1), clusters.broker(2, directories=two_dirs(cordoned))],
        partitions=[clusters.partition("t", 0, [1, 2])],
    )
    assert (found.kind, found.severity) == ("cordoned", Severity.NOTICE)
    assert phrase(found.title, found.facts) == title
    assert reason in phrase(found.reason, found.facts)
    assert "`partiscope brokers uncordon 2`" in found.next_step


def test_a_cordoned_broker_that_is_empty_waits_to_be_unregistered() -> None:
    """One with a single open directory is still used: it is not on its way out."""
    for cordoned, step in (("ab", "Stop it, then unregister it "), ("a", "Drain it ")):
        (found,) = find(
            brokers=[clusters.broker(1), clusters.broker(2, directories=two_dirs(cordoned))],
            partitions=[clusters.partition("t", 0, [1])],
        )
        assert found.next_step.startswith(f"{step}(`partiscope brokers drain 2`)")
        assert ("It is empty and" in found.reason) == (cordoned == "ab")


def two_dirs(cordoned: str = "", failed: str = "") -> list[dict[str, Any]]:
    """Of a broker: /a with 100 bytes and /b with 1,000, of which half are free."""
    return [
        clusters.log_dir(
            f"/{name}",
            total_bytes=None if name in failed else size,
            usable_bytes=None if name in failed else size // 2,
            is_cordoned=name in cordoned,
            is_failed=name in failed,
        )
        for name, size in (("a", 100), ("b", 1_000))
    ]


def test_open_log_directories_and_those_that_nobody_tells_are_no_finding() -> None:
    for told in (two_dirs(), None):
        assert find(brokers=[clusters.broker(1, directories=told)]) == ()


def test_a_failed_log_directory_is_critical_and_named_with_its_broker() -> None:
    down = clusters.broker(2, directories=two_dirs(failed="a"), is_fenced=True)
    found = find(brokers=[clusters.broker(1, directories=two_dirs(failed="b")), down])
    (failed,) = [it for it in found if it.kind == "log-dir-failed"]
    assert (failed.severity, failed.label) == (Severity.CRITICAL, "broker 1")
    assert phrase(failed.title, failed.facts) == "log directory /b failed"
    assert "brokers drain 1" in failed.next_step


def test_a_broker_with_a_failed_directory_is_not_cordoned_though_kafka_refuses_it() -> None:
    found = find(brokers=[clusters.broker(1, directories=two_dirs(cordoned="a", failed="b"))])
    assert kinds(found) == ["log-dir-failed", "cordoned"]
    assert phrase(found[1].title, found[1].facts) == "1 of 2 log directories cordoned"
    assert not lacking(found[1].reason, "others failed", "refuses every reassignment")


def test_each_full_file_system_is_found_and_named_by_its_directories() -> None:
    full = two_dirs()
    full[0] |= {"usable_bytes": 5}
    told = [{**full[0], "path": "/c"}, *full]
    found = find(brokers=[clusters.broker(1, directories=told)])
    assert [(it.kind, it.severity, it.label) for it in found] == [
        ("log-dir-full", Severity.CRITICAL, "broker 1 /a")
    ]
    assert not lacking(phrase(found[0].reason, found[0].facts), "5 B", "/a and /c", "taken for one")


@pytest.mark.parametrize(
    ("retention_ms", "rate", "hours"),
    [
        (-1, 10.0, 23.15),
        (-1, 9.0, None),
        (7 * 86_400_000, 10.0, 23.15),
        (None, 99_999.0, None),
        (86_400_000, 20.0, None),
        (86_400_000, 999.0, 0.473),
    ],
    ids=["for ever", "in more than a day", "for a week", "compacted", "as much as is kept", "fast"],
)
def test_a_disk_that_is_full_within_a_day_is_told_before(
    retention_ms: int | None, rate: float, hours: float | None
) -> None:
    usable = round(10 * 86_400 * 0.965)
    found = find(
        brokers=[
            clusters.broker(1, disk_total_bytes=2 * usable, disk_usable_bytes=usable),
            clusters.broker(2, disk_total_bytes=usable * 1000, disk_usable_bytes=usable * 900),
        ],
        partitions=[
            clusters.partition(
                "t", 0, [1, 2], in_bytes_per_s=rate, retention_ms=retention_ms, size_bytes=864_000
            )
        ],
    )
    told = [(it.kind, it.severity, it.label, it.operation) for it in found]
    wanted = ("disk-filling", Severity.WARNING, "broker 1", Operation.REASSIGN)
    assert told == ([] if hours is None else [wanted])
    if hours is not None:
        assert found[0].facts["full"] == pytest.approx(hours * 3_600_000, rel=0.01)


def test_a_burst_fills_no_disk() -> None:
    """Half a minute of a rate that would fill it within three hours."""
    for held, is_told in ((30 * MIB, False), (600 * MIB, True)):
        found = find(
            brokers=[
                clusters.broker(1, disk_total_bytes=20_480 * MIB, disk_usable_bytes=10_240 * MIB)
            ],
            partitions=[
                clusters.partition(
                    "t", 0, [1], in_bytes_per_s=1.0 * MIB, retention_ms=-1, size_bytes=held
                )
            ],
        )
        assert bool(found) == is_told


def test_a_directory_grows_as_its_number_of_replicas() -> None:
    told = two_dirs()
    told[0] |= {"replicas": 1}
    told[1] |= {"replicas": 9}
    found = find(
        brokers=[clusters.broker(1, directories=told)],
        partitions=[clusters.partition("t", 0, [1], in_bytes_per_s=0.006, retention_ms=-1)],
    )
    assert [(it.kind, it.label) for it in found] == [("disk-filling", "broker 1")]
    assert found[0].facts["room"] == 500.0, "then /a is full: it gets a tenth"
    assert "number of replicas" in found[0].reason


def test_skew_is_told_after_an_empty_broker_joined() -> None:
    partitions = [
        clusters.partition("t", number, [1 + number % 2], size_bytes=64 * MIB)
        for number in range(12)
    ]

    found = find(
        brokers=[clusters.broker(1), clusters.broker(2), clusters.broker(3)],
        partitions=partitions,
    )

    assert kinds(found) == ["skew-bytes"]
    assert found[0].facts["skew"] == -100.0
    assert found[0].operation is Operation.REASSIGN


@pytest.mark.parametrize(
    ("replicas", "isr", "operation"),
    [
        ([[1, 2], [2, 1]], [1, 2], Operation.ELECT),
        ([[1, 2], [2, 1]], [1], Operation.REASSIGN),
        ([[1, 2], [1, 2]], [1, 2], Operation.REASSIGN),
    ],
    ids=["the other is there", "the other is down", "the other is never the first"],
)
def test_leaders_that_an_election_evens_need_no_plan(
    replicas: list[list[int]], isr: list[int], operation: Operation
) -> None:
    partitions = [
        clusters.partition("t", number, replicas[number % 2], isr=isr, leader=1)
        for number in range(12)
    ]
    found = find(brokers=[clusters.broker(1), clusters.broker(2)], partitions=partitions)
    (skew,) = (finding for finding in found if finding.kind == "skew-leaders")
    assert skew.operation is operation
    is_election = operation is Operation.ELECT
    assert skew.next_step == ("Elect the preferred leaders" if is_election else "Plan moves")


def test_a_tiny_cluster_has_no_skew() -> None:
    assert (
        find(
            brokers=[clusters.broker(1), clusters.broker(2)],
            partitions=[clusters.partition("t", 0, [1])],
        )
        == ()
    )


def test_full_disks() -> None:
    found = find(
        brokers=[
            clusters.broker(1, disk_total_bytes=100, disk_usable_bytes=5),
            clusters.broker(2, disk_total_bytes=100, disk_usable_bytes=15),
            clusters.broker(3, disk_total_bytes=100, disk_usable_bytes=50),
            clusters.broker(4),
        ]
    )

    assert [(item.label, item.severity) for item in found] == [
        ("broker 1", Severity.CRITICAL),
        ("broker 2", Severity.WARNING),
    ]


def test_groups_that_stand_still_by_their_commits() -> None:
    stuck = {"stuck_since_ms": NOW_MS - 60_000}
    commits = [
        clusters.commit("stall", "t", 0, **stuck, commit_ms=NOW_MS),
        clusters.commit("stop", "t", 0, **stuck, commit_ms=NOW_MS - 60_000),
        clusters.commit("lost", "t", 1, committed_offset=5, lag=95),
        clusters.commit("grows", "t", 0, lag_records_per_s=5.0),
    ]
    partitions = [
        clusters.partition("t", 0, [1]),
        clusters.partition("t", 1, [1], log_start_offset=50),
    ]

    found = find(partitions=partitions, commits=commits)

    assert [(item.label, item.kind) for item in found] == [
        ("lost", "group-LOST"),
        ("stall", "group-STALL"),
        ("stop", "group-STOP"),
    ]
    assert found[1].since_ms == NOW_MS - 60_000
    ranks = commit_ranks(
        clusters.snapshot(commits=commits).commits, clusters.np_ints([0, 0, 50, 0])
    )
    words = words_of(ranks, GROUP_SEVERITIES).to_pylist()
    assert words == ["STALL", "STOP", "LOST", "WARN"]


def test_a_share_group_whose_start_stands_still_has_a_stuck_record() -> None:
    stuck = clusters.commit("g", "t", 0, status="STALL", member_id="2 members", lag=40,
                            committed_offset=60)  # fmt: skip
    (found,) = find(
        partitions=[clusters.partition("t", 0, [1])],
        commits=[stuck],
        groups=[clusters.group("g", group_type="share")],
    )
    assert phrase(found.title, found.facts) == "stuck record on t-0"
    assert "at offset 60; at most 40 records wait" in phrase(found.reason, found.facts)


def test_the_jobs_verdict_counts_but_for_lost_records() -> None:
    commits = [
        clusters.commit("g", "t", 0, status="REWIND"),
        clusters.commit("g", "t", 1, status="OK", committed_offset=5, lag=95),
        clusters.commit("g", "t", 2, status="OK", stuck_since_ms=NOW_MS - 60_000),
    ]

    (lost, rewound) = find(
        partitions=[clusters.partition("t", 1, [1], log_start_offset=50)], commits=commits
    )

    assert (lost.kind, rewound.kind) == ("group-LOST", "group-REWIND")


def test_without_a_verdict_there_is_no_ok() -> None:
    unpaired = {"lag": None, "end_offset": None, "lag_records_per_s": None}
    commits = [
        clusters.commit("g", "t", 0, **unpaired),
        clusters.commit("g", "t", 1, lag_records_per_s=None),
        clusters.commit("g", "t", 2, lag_records_per_s=None, lag=0),
        clusters.commit("g", "t", 3, lag_records_per_s=None, status="OK"),
    ]
    starts = clusters.np_ints([-1] * len(commits))
    ranks = commit_ranks(clusters.snapshot(commits=commits).commits, starts)
    words = words_of(ranks, GROUP_SEVERITIES).to_pylist()
    assert words == ["not-known", "not-known", "OK", "OK"]
    assert find(commits=commits) == ()


def test_a_group_between_two_commits_does_not_stand_still() -> None:
    commit = clusters.commit("g", "t", 0, stuck_since_ms=NOW_MS - 5_000, commit_ms=NOW_MS - 5_000)

    assert find(commits=[commit]) == ()


def test_a_group_is_told_once_by_its_partition_with_the_most_lag() -> None:
    commits = [
        clusters.commit("g", "t", number, lag=lag, stuck_since_ms=1, commit_ms=1)
        for number, lag in enumerate([10, 30, 20])
    ]

    (found,) = find(commits=commits)

    assert found.facts["partition"] == "t-1"


def test_stale_figures_and_bad_records() -> None:
    health = {
        "batch_id": 1, "batch_ms": 5, "records": 9, "bad_records": 1, "bad_records_total": 4,
        "lost_records_total": 2, "newest_round_ms": 1, "written_ms": NOW_MS,
    }  # fmt: skip

    found = find(
        brokers=[clusters.broker(1, sampled_ms=NOW_MS - 30_000), clusters.broker(2)],
        health=[health],
    )

    assert [(item.kind, item.label) for item in found] == [
        ("stale", "broker 1"),
        ("bad-records", "metrics job"),
        ("lost-records", "metrics job"),
    ]


def test_rows_that_were_left_out_are_named() -> None:
    row = "group billing, orders-3: committed_offset -7 is not from -1 to 9"
    health = {
        "batch_id": 1, "batch_ms": 5, "records": 9, "bad_records": 1, "bad_records_total": 4,
        "newest_round_ms": 1, "written_ms": NOW_MS, "bad_rows": [row],
    }  # fmt: skip
    (found,) = find(health=[health])
    told = phrase(found.reason, found.facts)
    assert not lacking(told, "group billing", "orders-3", "-7")


def test_a_clock_that_differs_is_named_with_its_skew() -> None:
    brokers = [
        clusters.broker(1, clock_skew_ms=0),
        clusters.broker(2, clock_skew_ms=45_000),
        clusters.broker(3, clock_skew_ms=-3_000),
        clusters.broker(4, clock_skew_ms=None),
    ]
    ahead, behind = find(brokers=brokers)
    assert (ahead.kind, ahead.label, behind.label) == ("clock", "broker 2", "broker 3")
    assert phrase(ahead.title, ahead.facts) == "clock 45 s ahead"
    assert phrase(behind.title, behind.facts) == "clock 3.0 s behind"
    assert ahead.subject == "brokers/2"


@pytest.mark.parametrize(
    ("brokers_ms", "job_ms", "told"),
    [
        ((0, 0, 0), 7_200_000, ["the metrics job's host: clock 2 h ahead"]),
        ((45_000, 45_001, 45_002), 0, ["all brokers: clock 45 s ahead"]),
        (
            (-3_000, 0, 0),
            3_000,
            ["the metrics job's host: clock 3.0 s ahead", "broker 1: clock 3.0 s behind"],
        ),
        ((45_000, 45_100, 45_200), 45_000, ["all clocks: clock 45 s ahead"]),
        ((45_000,), 45_000, ["all clocks: clock 45 s ahead"]),
        ((45_000,), 0, ["broker 1: clock 45 s ahead"]),
    ],
)
def test_a_finding_tells_whose_clock_is_off(
    brokers_ms: tuple[int, ...], job_ms: int, told: list[str]
) -> None:
    brokers = [clusters.broker(it, clock_skew_ms=ms) for it, ms in enumerate(brokers_ms, 1)]
    health = {"batch_id": 1, "batch_ms": 1, "newest_round_ms": 1, "written_ms": NOW_MS}
    found = find(brokers=brokers, health=[{**health, "clock_skew_ms": job_ms}])
    clocks = [it for it in found if it.kind == "clock"]
    assert sorted(f"{it.label}: {phrase(it.title, it.facts)}" for it in clocks) == sorted(told)
    assert all(("restart" in it.next_step) == (it.label == "all clocks") for it in clocks)


def _lacking() -> dict[str, Any]:
    return clusters.partition("t", 0, [1, 2], isr=[1])


def test_a_broker_that_is_down_is_not_to_be_balanced() -> None:
    """One of three is down and leads nothing; the plan could not help it."""
    orders = [[1 + n % 2, 2 - n % 2, 3] for n in range(18)]
    found = find(
        brokers=[clusters.broker(1), clusters.broker(2), clusters.broker(3, is_fenced=True)],
        partitions=[
            clusters.partition("t", n, order, isr=order[:2]) for n, order in enumerate(orders)
        ],
    )
    skews = [item for item in found if item.kind.startswith("skew")]
    assert {item.subject for item in skews} == {"brokers/1"}
    for item in skews:
        assert item.operation is Operation.OPEN
        assert not lacking(item.next_step, "Bring back", "broker 3")
