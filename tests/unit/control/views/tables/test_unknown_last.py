"""Whatever a table is sorted by, rows of which it is not known come last, in both directions."""

from typing import Final

import pytest

from control.model.ids import ClusterId
from control.model.status import UNJUDGED
from control.views.snapshots.snapshot import (
    LISTS,
    OperatorSnapshot,
    build_snapshot,
    list_page,
)
from control.views.tables.query import TableQuery
from control.views.tables.rows import Cell
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.store_builder import CLUSTER, Row, StoreBuilder, SyntheticSizes, synthetic_rows

NOW_MS: Final = 1_795_000_000_000
KEPT: Final = frozenset(
    [
        "cluster",
        "topic",
        "partition",
        "broker",
        "group_id",
        "read_ms",
        "replicas",
        "isr",
        "leader",
        "is_fenced",
    ]
)
SCOPES: Final = {"lags": "group-1"}


def _with_gaps() -> dict[str, list[Row]]:
    """Of every other thing nothing is known but its name; one has no leader."""
    now = synthetic_rows(SyntheticSizes(topics=4, partitions=4, groups=4), at_ms=NOW_MS)
    for kind, rows in now.items():
        for row in rows[::2] if kind != "health" else ():
            for name in row.keys() - KEPT:
                row[name] = None
    now["partitions"][1]["leader"] = -1
    return now


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> OperatorSnapshot:
    store = tmp_path_factory.mktemp("gaps")
    StoreBuilder(store).write(_with_gaps())
    now = AggregatesReader(str(store)).now()
    assert now is not None
    return build_snapshot(
        now.tables, version=now.version, now_ms=NOW_MS, cluster=ClusterId(CLUSTER)
    )


def _is_unknown(cell: Cell) -> bool:
    return cell.text in {"n/a", "–", "", "never", "none", *UNJUDGED}


@pytest.mark.parametrize("way", ["", "-"], ids=["up", "down"])
@pytest.mark.parametrize("name", LISTS)
def test_unknown_comes_last(snapshot: OperatorSnapshot, name: str, way: str) -> None:
    found = 0
    for column in LISTS[name].kind.columns:
        query = TableQuery(sort=f"{way}{column.id}", limit=1_000)
        sorted_page = list_page(snapshot, name, query, SCOPES.get(name))
        assert not sorted_page.problem, f"{column.id} is shown and cannot be sorted by"
        if column.id == "clears":  # "never" is known there
            continue
        unknown = [_is_unknown(row.cell(column.id)) for row in sorted_page.rows]
        assert unknown == sorted(unknown), f"{way}{column.id}"
        found += 0 < sum(unknown) < len(unknown)
    assert found or name == "topics"
