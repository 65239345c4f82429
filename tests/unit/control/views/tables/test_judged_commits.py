"""Commits as the job judged them reach the lists once, under their own names."""

from pathlib import Path

import pytest

from control.views.snapshots.snapshot import build_snapshot, group_page, list_page
from control.views.tables.query import TableQuery
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows
from tests.unit.control.clusters import NOW_MS, commit, group, partition, tables

AT_MS = 1_700_000_000_000


def test_the_jobs_time_lag_and_status_are_shown(tmp_path: Path) -> None:
    rows = synthetic_rows(SyntheticSizes(), at_ms=AT_MS)
    for row in rows["commits"]:
        row |= {"status": "REWIND", "time_lag_ms": 4_321, "lost_records": 0}
    StoreBuilder(tmp_path).write(rows)
    now = AggregatesReader(str(tmp_path)).now()
    assert now is not None
    snapshot = build_snapshot(now.tables, version=1, now_ms=AT_MS, cluster=None)
    table = snapshot.commit_table
    assert table.column_names.count("status") == 1
    assert set(table["status"].to_pylist()) == {"REWIND"}
    assert set(table["lag_ms"].to_pylist()) == {4_321}


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        # Together they lag 110 and shrink by 10 a second, and neither is clear after 11 s.
        ([(100, -1.5), (10, -8.5)], ["≈ 11 s", "≈ 1 m 7 s"]),
        ([(100, -20.0), (10, 0.0)], ["≈ 5.5 s", "never"]),
        ([(100, -20.0), (10, None)], ["n/a", "n/a"]),
        ([(100, 20.0), (10, None)], ["n/a", "never"]),
        ([(0, 0.0), (0, None)], ["now", "now"]),
    ],
)
def test_a_group_clears_by_its_sums_and_its_slowest_partition_by_itself(
    told: list[tuple[int, float | None]], shown: list[str]
) -> None:
    names = ("lag", "lag_records_per_s")
    commits = [
        commit("g", "t", number, status="WARN", **dict(zip(names, figures, strict=True)))
        for number, figures in enumerate(told)
    ]
    made = tables(commits=commits, groups=[group("g")])
    snapshot = build_snapshot(made, version=1, now_ms=NOW_MS)
    (row,) = group_page(snapshot).rows
    assert [row.clears.text, row.slowest.text] == shown


def test_nothing_waits_only_where_that_is_known_of_all_partitions() -> None:
    read = commit("g", "t", 0, committed_offset=100, end_offset=100, lag=0, status="OK")
    unknown = commit("g", "t", 1, committed_offset=0, end_offset=None, lag=None, status="WARN")
    for commits, lag in (([read], 0), ([read, unknown], None)):
        made = tables(commits=commits, groups=[group("g")])
        (row,) = group_page(build_snapshot(made, version=1, now_ms=NOW_MS)).rows
        assert row.lag.value == lag


def test_the_lag_of_a_share_group_is_a_bound_unless_its_broker_tells_it() -> None:
    commits = [
        commit("told", "t", 0, lag=7, told_lag=7),
        commit("told", "t", 1, lag=0, told_lag=0),
        commit("bound", "t", 0, lag=10),
        commit("bound", "t", 1, lag=7, told_lag=7),
        commit("classic", "t", 0, lag=10),
    ]
    groups = [group(name, group_type="share") for name in ("told", "bound")]
    groups.append(group("classic", group_type="classic"))
    made = build_snapshot(tables(commits=commits, groups=groups), version=1, now_ms=NOW_MS)
    shown = {row.group.text: row.lag.text for row in group_page(made).rows}
    assert shown == {"told": "7", "bound": "≤ 17", "classic": "10"}
    lags = [row.lag.text for row in list_page(made, "lags", TableQuery(), "bound").rows]
    assert lags == ["≤ 10", "7"]


def test_what_no_consumer_gets_is_not_there_to_read_nor_to_lose() -> None:
    told = commit("g", "t", 0, committed_offset=100, end_offset=101, lag=1, status="OK")
    log = {"log_start_offset": 101, "high_watermark": 101, "readable_offset": 100}
    made = tables(partitions=[partition("t", 0, [1], **log)], commits=[told], groups=[group("g")])
    snapshot = build_snapshot(made, version=1, now_ms=NOW_MS)
    assert snapshot.commit_table.select(["status", "readable", "waiting"]).to_pylist() == [
        {"status": "OK", "readable": 0, "waiting": 0}
    ]
    (row,) = group_page(snapshot).rows
    assert (row.cells["lag"].text, row.cells["loses"].text) == ("1", "–")
    assert snapshot.findings == ()


@pytest.mark.parametrize(
    ("error_ms", "shown"), [(30_000, "≈ 12 m ± 30 s"), (999, "≈ 12 m"), (None, "≈ 12 m")]
)
def test_a_time_lag_tells_how_far_it_may_be_off(error_ms: int | None, shown: str) -> None:
    figures = {"time_lag_ms": 720_000, "time_lag_error_ms": error_ms, "lag": 9, "status": "OK"}
    made = tables(commits=[commit("g", "t", 0, **figures)], groups=[group("g")])
    snapshot = build_snapshot(made, version=1, now_ms=NOW_MS)
    (row,) = list_page(snapshot, "lags", TableQuery(), "g").rows
    assert row.cells["lag_time"].text == shown
