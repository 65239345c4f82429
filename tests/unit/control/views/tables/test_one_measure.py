"""One head stands for one measure in every table, chart and card; what it sums over comes after."""

import runpy
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

from control.views.cluster import partition_map
from control.views.snapshots.snapshot import (
    LISTS,
    OperatorSnapshot,
    build_snapshot,
    list_page,
    partition_page,
    topic_page,
)
from control.views.tables.column import Column
from control.views.tables.query import TableQuery
from dashboard.components import bars, heat_box
from tests.unit.control.clusters import NOW_MS, commit, group, partition, tables
from tui.screens.maps import map as map_screen

SCRIPTS: Final = Path(__file__).parents[5] / "scripts"
NAMES: Final = ("id", "ids", "text", "time")
"""Units of columns that measure nothing."""


@pytest.fixture(scope="module")
def columns() -> list[tuple[str, Column]]:
    """Every column of every table, with the table's name."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(SCRIPTS))
        others = runpy.run_path(str(SCRIPTS / "column_reference.py"))["OTHERS"]
    kinds = [*(it.kind for it in LISTS.values()), *others]
    return [(kind.name, it) for kind in kinds for it in (*kind.columns, *kind.unlisted)]


def test_one_head_is_one_measure(columns: list[tuple[str, Column]]) -> None:
    measures = defaultdict(set)
    for _, it in columns:
        if it.unit.name not in NAMES:
            measures[it.title].add((it.unit.name, it.help.partition(";")[0]))
    several = {title: found for title, found in measures.items() if len(found) > 1}
    assert not several


def test_an_id_of_a_measure_is_one_measure(columns: list[tuple[str, Column]]) -> None:
    """Exports, ``sort=`` and ``--json`` have ids where screens have heads."""
    large = {it.kind.name for it in LISTS.values()}
    measures = defaultdict(set)
    for table, it in columns:
        if table in large and it.unit.name not in NAMES:
            measures[it.id].add(it.help.partition(";")[0])
    several = {name for name, found in measures.items() if len(found) > 1}
    # Of partitions the leader's, of brokers and topics all; a count of replicas, and how many each
    # partition has.
    assert several <= {"size_bytes", "replicas"}


def test_maps_and_bars_have_the_heads_of_the_columns(columns: list[tuple[str, Column]]) -> None:
    heads = {it.title for _, it in columns}
    words = [*partition_map.MEASURES.values(), *bars.MEASURES.values()]
    words += heat_box.MEASURES.values()
    words += [it for it, _ in map_screen.MEASURES.values()]
    others = {"total lag", "out of sync", "short ISR"}
    assert {it for it in words if it not in heads} <= others


def two_groups() -> OperatorSnapshot:
    """The first lags 30 in a topic of two partitions, the second 25 in one of them."""
    commits = [
        commit("first", "t", 0, lag=10),
        commit("first", "t", 1, lag=20),
        commit("second", "t", 0, lag=25),
        commit("second", "u", 0, lag=None),
        commit("third", "u", 0, lag=3),
        commit("third", "u", 1, committed_offset=None, lag=None, member_id="m"),
    ]
    partitions = [partition(topic, number, [1]) for topic in "tuv" for number in (0, 1)]
    rows = tables(
        commits=commits,
        partitions=partitions,
        groups=[group(name) for name in ("first", "second", "third")],
    )
    return build_snapshot(rows, version=1, now_ms=NOW_MS)


def test_the_max_lag_is_that_of_one_group_in_what_the_row_is_about() -> None:
    snapshot = two_groups()
    found = {row.key: row.max_lag for row in partition_page(snapshot).rows}
    found |= {row.key: row.max_lag for row in topic_page(snapshot).rows}
    assert {key: (cell.value, cell.text) for key, cell in found.items()} == {
        "t-0": (25, "25"),
        "t-1": (20, "20"),
        "t": (30, "30"),
        "u-0": (None, "≥ 3"),
        "u-1": (None, "–"),
        "u": (None, "≥ 3"),
        "v-0": (None, "–"),
        "v-1": (None, "–"),
        "v": (None, "–"),
    }
    groups = {row.key: row.groups.value for row in topic_page(snapshot).rows}
    assert groups == {"t": 2, "u": 2, "v": 0}
    of_partitions = {row.key: row.groups.value for row in partition_page(snapshot).rows}
    assert [of_partitions[it] for it in ("t-0", "t-1", "u-0", "u-1")] == [2, 1, 2, 0]


@pytest.mark.parametrize("name", ["topics", "partitions"])
@pytest.mark.parametrize("words", ["lag>=25", "max_lag>=25"])
def test_the_max_lag_goes_by_its_short_name_too(name: str, words: str) -> None:
    page = list_page(two_groups(), name, TableQuery(filter=words, sort="-lag", columns="lag"))
    assert not page.problem
    assert page.matching == 1
    assert [it.id for it in page.columns] == [page.every_column[0].id, "max_lag"]
