"""Figures that follow from others follow from those shown, and all faces show the same.

Sums are added up here from the rows beside them, and compared with what lists, heads, `status
--json`, exports, the store and its history tell of the same random cluster.
"""

import io
import json
import os
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import partial
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.model.watched_cluster import WatchedCluster
from control.views.cluster.all_clusters import cluster_rows
from control.views.cluster.racks import rack_rows
from control.views.snapshots.snapshot import LISTS, OperatorSnapshot, build_snapshot, list_page
from control.views.tables.cells import NEVER_MS
from control.views.tables.export import export, values_of
from control.views.tables.query import TableQuery
from control.views.tables.rows import Cell, Row
from dashboard.server.table_rows import row_of
from partiscope.cli.shared.tables import write_rows
from partiscope.cli.watch.status import _document
from spark_metrics.fold.now_tables import broker_sums, group_sums
from spark_metrics.fold.sums import sums_of, with_known_rates
from spark_metrics.history.point_merge import merged_points
from spark_metrics.window.history_points import SHAPES, SPANS_MS
from tests.support.cases import examples
from tests.unit.control import clusters
from tests.unit.control.clusters import NOW_MS

BROKERS: Final = (1, 2, 3)
Tables = dict[str, pa.Table]


@st.composite
def told(draw: st.DrawFn) -> Tables:
    """Now-tables in which any figure may be unknown; leaders lead where they hold a replica."""
    maybe = st.sampled_from([True, True, True, False])
    partitions, commits = [], []
    for number in range(draw(st.integers(1, 7))):
        topic, place = f"t{number % 2}", number // 2
        replicas = list(draw(st.permutations(BROKERS)))[: draw(st.integers(1, 3))]
        rates = {
            name: draw(st.integers(0, 1_000)) * 1.0 if draw(maybe) else None
            for name in ("in_records_per_s", "in_bytes_per_s", "out_bytes_per_s")
        }
        size = draw(st.integers(0, 1_000)) if draw(maybe) else None
        partitions.append(clusters.partition(topic, place, replicas, size_bytes=size, **rates))
        for group in range(draw(st.integers(0, 3))):
            commits.append(commit(draw, f"g{group}", topic, place))
    return clusters.tables(
        brokers=[clusters.broker(it, rack="ab"[it % 2]) for it in BROKERS],
        partitions=partitions,
        commits=commits,
        groups=[clusters.group(f"g{number}") for number in range(3)],
    )


def commit(draw: st.DrawFn, group: str, topic: str, place: int) -> dict[str, Any]:
    """One without a commit, one beyond the end, one with a lag that is known or not."""
    maybe = st.sampled_from([True, True, True, True, False])
    kind = draw(st.sampled_from(["none", "beyond", *["lags"] * 6]))
    speeds = {
        name: draw(st.integers(-20, 20)) * 0.5 if draw(maybe) else None
        for name in ("lag_records_per_s", "consumed_records_per_s")
    }
    if kind == "none":
        offsets: dict[str, Any] = {"committed_offset": None, "lag": None, "member_id": "m"}
        speeds = dict.fromkeys(speeds)
    elif kind == "beyond":
        offsets = {"committed_offset": 150, "lag": 0, "status": "BEYOND"}
    else:
        lag = draw(st.integers(0, 100)) if draw(maybe) else None
        offsets = {"committed_offset": 100 - (lag or 0), "lag": lag}
        offsets |= {"time_lag_ms": draw(st.integers(0, 9_000)) if draw(maybe) else None}
    return clusters.commit(group, topic, place, end_offset=100, **speeds, **offsets)


def rows_of(snapshot: OperatorSnapshot, name: str, scope: str | None = None) -> tuple[Row, ...]:
    return list_page(snapshot, name, TableQuery(limit=1_000), scope).rows


def assert_sum(cell: Cell, parts: list[Cell], what: str) -> None:
    """The sum of these cells; unknown while one of them is (so few that one is above 1 %)."""
    known = [it.value for it in parts if isinstance(it.value, int | float)]
    if known and len(known) == len(parts):
        assert cell.value == pytest.approx(sum(known)), what
    else:
        assert cell.value is None, what
        assert cell.text in ("n/a", "–") or cell.text.startswith("≥"), what


@given(told())
@examples(25)
def test_the_figures_of_a_group_follow_from_those_of_its_partitions(now: Tables) -> None:
    snapshot = build_snapshot(now, version=1, now_ms=NOW_MS)
    for row in rows_of(snapshot, "lags"):
        assert_clears(row)
    for group in rows_of(snapshot, "groups"):
        own = [it for it in rows_of(snapshot, "lags", group.key) if it.lag.text != "–"]
        for name in ("lag", "velocity", "consumed"):
            assert_sum(group.cell(name), [it.cell(name) for it in own], f"{group.key} {name}")
        assert_clears(group)
        for name, parts in (("slowest", "clears"), ("lag_time", "lag_time")):
            values = [it.cell(parts).value for it in own]
            known = [it for it in values if isinstance(it, int | float)]
            most = max(known, default=None)
            is_whole = len(known) == len(values) or most == NEVER_MS
            assert group.cell(name).value == (most if is_whole else None), f"{group.key} {name}"


@given(told())
@examples(25)
def test_sums_are_those_of_the_rows_beside_them(now: Tables) -> None:
    snapshot = build_snapshot(now, version=1, now_ms=NOW_MS)
    partitions, brokers = rows_of(snapshot, "partitions"), rows_of(snapshot, "brokers")
    rates = ("in_bytes", "out_bytes")
    for topic in rows_of(snapshot, "topics"):
        own = [it for it in partitions if it.topic.value == topic.key]
        assert_sums(topic, own, (*rates, "in_records"))
    for broker in brokers:
        own = [it for it in partitions if it.leader.value == broker.broker.value]
        assert broker.leaders.value == len(own)
        assert_sums(broker, own, rates if own else ())
    for rack in rack_rows(brokers):
        own = [it for it in brokers if it.rack.text == rack.key]
        assert_sums(rack, own, ("replicas", "leaders", "size_bytes", *rates))
    head = snapshot.headline
    for name, cell in (("in_bytes", head.in_bytes), ("out_bytes", head.out_bytes)):
        assert_sum(cell, [it.cell(name) for it in partitions], f"cluster {name}")
    assert_sum(head.in_records, [it.in_records for it in partitions], "cluster records")
    assert_sum(head.size_bytes, [it.size_bytes for it in brokers], "cluster bytes")
    skews = [it.skew.value for it in brokers if isinstance(it.skew.value, float)]
    if len(skews) == len(brokers):
        assert sum(skews) == pytest.approx(0, abs=1e-6), "shares add up to the whole"


def assert_sums(row: Row, parts: list[Row], names: Sequence[str]) -> None:
    """Cells of a row that sum up those of others."""
    for name in names:
        assert_sum(row.cell(name), [it.cell(name) for it in parts], f"{row.key} {name}")


def assert_clears(row: Row) -> None:
    """Lag over the trend beside it."""
    lag, trend, clears = row.lag.value, row.velocity.value, row.clears.value
    if lag == 0:
        assert clears == 0
    elif isinstance(lag, int | float) and isinstance(trend, int | float):
        assert clears == pytest.approx(lag / -trend * 1_000 if trend < -1 else NEVER_MS)
    else:
        assert clears is None


@given(told())
@examples(15)
def test_page_exports_and_status_tell_the_same(now: Tables) -> None:
    snapshot = build_snapshot(now, version=1, now_ms=NOW_MS)
    document = _document(snapshot, NOW_MS)
    head = snapshot.headline
    (whole,) = cluster_rows([(WatchedCluster(name="c"), snapshot)], now_ms=NOW_MS)
    assert (document["in_bytes_per_s"], document["out_bytes_per_s"]) == (
        head.in_bytes.value,
        head.out_bytes.value,
    )
    assert (whole.in_bytes, whole.out_bytes) == (head.in_bytes, head.out_bytes)
    for name in LISTS:
        page = list_page(snapshot, name, TableQuery(limit=1_000))
        exported = values_of(page)
        page_of = partial(list_page, snapshot, name)
        assert json.loads("".join(export(page_of, TableQuery(), format="json"))) == exported
        if name in ("brokers", "groups"):
            assert document[name] == exported
        for row, values in zip(page.rows, exported, strict=True):
            shown = row_of(row, page.columns)
            for column in page.columns:
                cell = row.cell(column.id)
                assert shown[column.id] == cell.shaped(is_number=column.is_number)
                if column.unit.name in ("count", "bytes per second", "records per second", "bytes"):
                    assert values[column.id] == cell.value, (name, column.id)
                if column.unit.name == "milliseconds":
                    known = None if cell.value == NEVER_MS else cell.value
                    assert values[column.id] == known, (name, column.id)


@given(told())
@examples(15)
def test_the_store_and_its_history_tell_the_sums_of_the_page(now: Tables) -> None:
    snapshot = build_snapshot(now, version=1, now_ms=NOW_MS)
    sums = sums_of(now["partitions"], now["replicas"], now["commits"])
    groups, brokers = group_sums(sums), broker_sums(sums)
    names = {"lag": "lag", "velocity": "lag_records_per_s", "consumed": "consumed_records_per_s",
             "lag_time": "time_lag_ms"}  # fmt: skip
    for row in rows_of(snapshot, "groups"):
        stored = groups.get(("c", row.key))
        for column, name in names.items():
            told = None if stored is None else stored[name]
            if row.lag_time.value != 0 or column != "lag_time":
                assert told == row.cell(column).value, (row.key, name)
    for row in rows_of(snapshot, "brokers"):
        held = next((it for key, it in brokers.items() if str(key.broker) == row.key), {})
        for column, name in (("in_bytes", "in_bytes_per_s"), ("out_bytes", "out_bytes_per_s")):
            assert held.get(name, 0.0) == row.cell(column).value, (row.key, name)
    topics = with_known_rates(sums.topics, ("cluster", "topic"), "partitions")
    at = topics.append_column("at_ms", pa.array([NOW_MS] * topics.num_rows))
    at = at.append_column("readings", pa.array([1] * topics.num_rows))
    shape = SHAPES["topic_history"]
    for bucket in SPANS_MS.values():
        points = {
            it["topic"]: it for it in merged_points(at, shape, bucket, shape.schema).to_pylist()
        }
        for row in rows_of(snapshot, "topics"):
            for column, name in (
                ("in_bytes", "in_bytes_per_s"),
                ("in_records", "in_records_per_s"),
            ):
                assert points[row.key][name] == row.cell(column).value, (row.key, bucket)


@given(told())
@examples(5)
def test_the_command_line_writes_what_the_page_shows(now: Tables) -> None:
    snapshot = build_snapshot(now, version=1, now_ms=NOW_MS)
    for name in LISTS:
        page = list_page(snapshot, name, TableQuery(limit=1_000))
        for row in page.rows:
            written = io.StringIO()
            with patch.dict(os.environ, COLUMNS="9999"), redirect_stdout(written):
                write_rows(page.columns, [row])
            line = written.getvalue().splitlines()[-1]
            lacking = [text for it in page.columns if (text := row.cell(it.id).text) not in line]
            assert lacking == [], line
