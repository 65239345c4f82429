"""A sum of which parts are unknown is a bound, or unknown, and a case of its own for filters."""

from typing import Any, Final

import pytest

from control.model.status import BEYOND
from control.model.watched_cluster import WatchedCluster
from control.views.cluster.all_clusters import cluster_rows
from control.views.cluster.racks import rack_rows
from control.views.cluster.what_if import losses, what_if
from control.views.snapshots.snapshot import (
    OperatorSnapshot,
    broker_page,
    build_snapshot,
    group_page,
    list_page,
    topic_page,
)
from control.views.tables.query import TableQuery
from dashboard.components.bars import broker_bars
from tests.unit.control.clusters import NOW_MS, broker, commit, group, partition, tables

TEN = [5] * 9 + [None]


def shown(lags: list[int | None], risks: list[int | None], query: str = "") -> tuple[str, ...]:
    """Lag and time to data loss of a group with these partitions; empty: it is filtered out."""
    commits = [
        commit("g", "t", number, lag=lag, retention_risk_ms=risk)
        for number, (lag, risk) in enumerate(zip(lags, risks, strict=True))
    ]
    made = tables(commits=commits, groups=[group("g")])
    page = group_page(build_snapshot(made, version=1, now_ms=NOW_MS), TableQuery(filter=query))
    return tuple(row.cells[name].text for row in page.rows for name in ("lag", "loses"))


@pytest.mark.parametrize(
    ("lags", "risks", "cells"),
    [
        ([5] * 9 + [0], [None] * 10, ("45", "n/a")),
        (TEN, [None] * 10, ("≥ 45", "n/a")),
        (TEN, [90_000_000] * 9 + [None], ("≥ 45", "≤ ≈ 1 d")),
        ([None, None], [None, None], ("n/a", "n/a")),
        ([0, None], [None, None], ("≥ 0", "n/a")),
        ([0, 0], [None, None], ("0", "–")),
        ([7, 0], [90_000_000, None], ("7", "≈ 1 d")),
    ],
)
def test_what_is_unknown_of_some_partitions_is_not_taken_for_nothing(
    lags: list[int | None], risks: list[int | None], cells: tuple[str, str]
) -> None:
    assert shown(lags, risks) == cells


@pytest.mark.parametrize(
    ("query", "passes"),
    [
        ("lag>10", False),
        ("lag<10000", False),
        ("lag!=45", False),
        ("lag:unknown", True),
        ("lag=n/a", True),
        ("lag!=unknown", False),
    ],
)
def test_filters_know_a_bound_as_unknown(query: str, passes: bool) -> None:
    assert bool(shown(TEN, [None] * 10, query)) is passes
    assert bool(shown([45], [None], query)) is (query in ("lag>10", "lag<10000", "lag!=unknown"))


RATES: Final = ("in_records_per_s", "in_bytes_per_s", "out_bytes_per_s")


def after_an_election(count: int, unknown: int) -> OperatorSnapshot:
    """Broker 1 leads all partitions, and the rates of so many of them are not known yet."""
    rows = []
    for number in range(count):
        rates = dict.fromkeys(RATES, None if number < unknown else 1_000.0)
        rows.append(partition("t", number, [1, 2], **rates))
    brokers = [broker(number, rack=f"rack-{number}") for number in (1, 2)]
    return build_snapshot(tables(brokers=brokers, partitions=rows), version=1, now_ms=NOW_MS)


def test_rates_of_few_partitions_are_not_those_of_all() -> None:
    """Wherever they are summed up: broker, rack, survivors, topic, cluster, clusters."""
    snapshot = after_an_election(4, 3)
    first, second = broker_page(snapshot).rows
    (topic,), racks = topic_page(snapshot).rows, rack_rows(broker_page(snapshot).rows)
    loss = next(it for it in losses(snapshot) if it.value == "1")
    (heir,) = what_if(snapshot, loss).survivors
    (whole,) = cluster_rows([(WatchedCluster(name="c"), snapshot)], now_ms=NOW_MS)
    head = snapshot.headline
    unknown = [first.in_bytes, first.out_bytes, topic.in_bytes, topic.out_bytes, topic.in_records]
    unknown += [racks[0].in_bytes, heir.in_bytes_after, whole.in_bytes, head.out_bytes]
    unknown += [head.in_records]
    assert [(cell.value, cell.text) for cell in unknown] == [(None, "n/a")] * len(unknown)
    assert second.in_bytes.value == racks[1].in_bytes.value == 0, "it leads nothing"
    for page, name in ((topic_page, "topic"), (broker_page, "broker")):
        keys = [row.cell(name).text for row in page(snapshot, TableQuery(filter="in<5000")).rows]
        assert keys == ([] if name == "topic" else ["2"])
        assert page(snapshot, TableQuery(filter="in:unknown")).matching == 1


@pytest.mark.parametrize(("count", "unknown", "text"), [(100, 1, "96.7 KiB/s"), (100, 2, "n/a")])
def test_one_unknown_rate_of_a_hundred_changes_no_sum(count: int, unknown: int, text: str) -> None:
    snapshot = after_an_election(count, unknown)
    (topic,), (first, _) = topic_page(snapshot).rows, broker_page(snapshot).rows
    assert [it.text for it in (topic.in_bytes, first.in_bytes, snapshot.headline.in_bytes)] == (
        [text] * 3
    )


def test_bytes_are_a_least_while_some_are_unknown() -> None:
    sizes = {0: 60, 1: None}
    rows = [partition("t", number, [1, 2], size_bytes=size) for number, size in sizes.items()]
    rows.append(partition("u", 0, [3], size_bytes=70))
    brokers = [broker(number) for number in (1, 2, 3)]
    snapshot = build_snapshot(tables(brokers=brokers, partitions=rows), version=1, now_ms=NOW_MS)
    first, second = topic_page(snapshot).rows
    assert [it.size_bytes.text for it in (first, second)] == ["≥ 120 B", "70 B"]
    bytes_of = [row.size_bytes for row in broker_page(snapshot).rows]
    assert [(cell.value, cell.text) for cell in bytes_of] == [
        (None, "≥ ≈ 60 B"),
        (None, "≥ ≈ 60 B"),
        (70, "≈ 70 B"),
    ]
    assert (snapshot.headline.size_bytes.value, snapshot.headline.size_bytes.text) == (
        None,
        "≥ 190 B",
    )
    heat = snapshot.heat_map("size_bytes")
    assert heat.words(str) == [["≥ 60.0", ""], ["≥ 60.0", ""], ["", "70.0"]]
    told = str(broker_bars(broker_page(snapshot).rows, "size_bytes"))
    assert "mean 70 B" in told, "what is unknown is not 0"


def paced(*commits: dict[str, Any], query: str = "") -> dict[str, str]:
    """Cells of the one group; empty: it is filtered out."""
    rows = [commit("g", "t", number, **known) for number, known in enumerate(commits)]
    made = build_snapshot(tables(commits=rows, groups=[group("g")]), version=1, now_ms=NOW_MS)
    page = group_page(made, TableQuery(filter=query))
    return {name: cell.text for row in page.rows for name, cell in row.cells.items()}


def test_a_group_is_told_by_all_of_its_partitions() -> None:
    known = {"lag": 100, "lag_records_per_s": -20.0, "time_lag_ms": 5_000}
    unknown = {"lag": 100, "lag_records_per_s": None, "time_lag_ms": None}
    unknown |= {"consumed_records_per_s": None}
    names = ("lag", "lag_time", "velocity", "clears", "slowest", "consumed")
    both, half = paced(known, known), paced(known, unknown)
    assert [both[it] for it in names] == ["200", "≈ 5.0 s", "−40 /s", "≈ 5.0 s", "≈ 5.0 s", "20 /s"]
    assert [half[it] for it in names] == ["200", "≥ ≈ 5.0 s", *["n/a"] * 4]
    assert paced(known, unknown, query="time:unknown trend:unknown clears:unknown")
    assert not paced(known, unknown, query="time<1h")


def test_its_trend_is_the_sum_of_those_of_all_partitions() -> None:
    """Not of those in the worst status alone: it caught up, and was said to fall behind."""
    grows = {"lag": 100, "lag_records_per_s": 10.0, "status": "WARN"}
    shrinks = {"lag": 100, "lag_records_per_s": -30.0, "status": "OK"}
    told = paced(grows, shrinks)
    assert [told[it] for it in ("status", "velocity", "clears", "slowest")] == [
        "WARN",
        "−20 /s",
        "≈ 10 s",
        "never",
    ]


def test_a_commit_beyond_the_end_adds_no_lag() -> None:
    beyond = {"committed_offset": 500, "end_offset": 100, "lag": 0, "status": BEYOND}
    told = paced({"lag": 7, "lag_records_per_s": 2.0}, beyond)
    assert (told["lag"], told["velocity"]) == ("7", "+2.0 /s")
    alone = paced(beyond)
    assert {alone[it] for it in ("lag", "lag_time", "velocity", "clears", "loses")} == {"–"}


def test_no_time_lag_is_told_where_the_job_knows_none() -> None:
    """Neither lag over the present rate, nor the time since watching began."""
    still = commit("g", "t", 0, lag=400, time_lag_ms=None, stuck_since_ms=NOW_MS - 90_000)
    rows = tables(commits=[still], groups=[group("g")], partitions=[partition("t", 0, [1])])
    snapshot = build_snapshot(rows, version=1, now_ms=NOW_MS)
    (row,), (whole,) = list_page(snapshot, "lags").rows, group_page(snapshot).rows
    assert [it.lag_time.text for it in (row, whole)] == ["n/a", "n/a"]
    assert row.lag_time.value is None


def test_offsets_of_64_bits_are_told_to_the_last_digit() -> None:
    end = 2**62
    told = {"committed_offset": 10, "end_offset": end, "lag": end - 10, "lost_records": 3}
    rows = tables(
        commits=[commit("g", "t", 0, **told), commit("g", "t", 1, lag=5)],
        groups=[group("g")],
        partitions=[partition("t", 0, [1], high_watermark=end, log_start_offset=13)],
    )
    snapshot = build_snapshot(rows, version=1, now_ms=NOW_MS)
    (whole,), (topic,) = group_page(snapshot).rows, topic_page(snapshot).rows
    row = next(it for it in list_page(snapshot, "lags").rows if it.partition.value == 0)
    (held,) = list_page(snapshot, "partitions").rows
    assert [row.lag.text, row.readable.text, row.end.text, held.records.text] == [
        f"{it:,}" for it in (end - 10, end - 13, end, end - 13)
    ]
    assert (whole.lag.value, topic.max_lag.value) == (end - 5, end - 5)
