"""A table as a file holds every row that passes the filter, figures as numbers."""

import csv
import io
import json
from pathlib import Path

import pytest

from control.views.snapshots import snapshot as views
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from control.views.snapshots.store import StoreReader
from control.views.tables.export import ExportError, export, exported
from control.views.tables.query import LIMIT_MAX, Page, TableQuery
from tests.support.store_builder import StoreBuilder, SyntheticSizes
from tests.unit.control.clusters import NOW_MS, commit, group, tables

PARTITIONS = LIMIT_MAX + 5


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> OperatorSnapshot:
    store = tmp_path_factory.mktemp("export") / "store"
    StoreBuilder(store).write_synthetic(
        SyntheticSizes(topics=1, partitions=PARTITIONS, groups=1), history_s=1
    )
    found = StoreReader(str(store)).now()
    assert found is not None
    return build_snapshot(found.tables, version=found.version, now_ms=1)


def page_of(snapshot: OperatorSnapshot, query: TableQuery) -> Page:
    return views.partition_page(snapshot, query)


def test_csv_holds_all_rows_beyond_one_page_in_order(snapshot: OperatorSnapshot) -> None:
    words = "".join(
        export(lambda q: page_of(snapshot, q), TableQuery(sort="-partition"), format="csv")
    )
    rows = list(csv.DictReader(io.StringIO(words)))

    assert [int(row["partition"]) for row in rows] == list(range(PARTITIONS))[::-1]
    assert rows[0]["topic"] == "topic-0"
    first = views.partition_page(snapshot, TableQuery(sort="-partition", limit=1)).rows[0]
    assert float(rows[0]["size_bytes"]) == first.size_bytes.value


def test_json_is_one_document_of_what_the_filter_leaves(snapshot: OperatorSnapshot) -> None:
    words = "".join(
        export(lambda q: page_of(snapshot, q), TableQuery(filter="partition<2"), format="json")
    )

    assert [record["partition"] for record in json.loads(words)] == [0, 1]


def test_nothing_that_passes_is_an_empty_document(snapshot: OperatorSnapshot) -> None:
    query = TableQuery(filter="partition<0")

    assert json.loads("".join(export(lambda q: page_of(snapshot, q), query, format="json"))) == []
    lines = "".join(export(lambda q: page_of(snapshot, q), query, format="csv")).splitlines()
    assert len(lines) == 1


def test_a_wrong_filter_or_format_is_told(snapshot: OperatorSnapshot, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no column 'colour'"):
        export(lambda q: page_of(snapshot, q), TableQuery(filter="colour:red"), format="csv")
    with pytest.raises(ExportError, match="xml"):
        export(lambda q: page_of(snapshot, q), TableQuery(), format="xml")


def test_every_column_of_every_table_is_exported(snapshot: OperatorSnapshot) -> None:
    for page in (
        views.broker_page(snapshot),
        views.topic_page(snapshot),
        views.partition_page(snapshot),
        views.group_page(snapshot),
        views.group_partition_page(snapshot, group="group-0"),
    ):
        table = exported(page)
        assert table.column_names[: len(page.columns)] == [column.id for column in page.columns]
        first, row = table.slice(0, 1).to_pylist()[0], page.rows[0]
        for column in page.columns:
            if column.is_number and isinstance(first[column.id], int | float):
                assert first[column.id] == pytest.approx(row.cell(column.id).value), column.id


def test_a_group_without_a_verdict_says_why() -> None:
    waiting = commit("waits", "t", 0, lag=None, end_offset=None, lag_records_per_s=None)
    made = tables(
        commits=[waiting, commit("fine", "t", 0, status="OK")],
        groups=[group("fine"), group("never"), group("waits")],
    )
    snapshot = build_snapshot(made, version=1, now_ms=NOW_MS)
    rows = {row["group"]: row for row in exported(views.group_page(snapshot)).to_pylist()}
    assert {name: row["status"] for name, row in rows.items()} == {
        **{"fine": "OK", "never": None, "waits": None}
    }
    why = {name: row["status_unknown_because"] for name, row in rows.items()}
    assert why["fine"] is None
    assert "committed nothing" in str(why["never"])
    assert "end offset" in str(why["waits"])
    (row,) = exported(views.group_partition_page(snapshot, group="waits")).to_pylist()
    assert row["status"] is None
    assert why["waits"] == f"t-0: {row['status_unknown_because']}"


def test_a_name_is_no_formula_of_a_spreadsheet() -> None:
    name = '=HYPERLINK("http://a.example","b")'
    found = tables(groups=[group(name)], commits=[commit(name, "t", 0)])
    snapshot = build_snapshot(found, version=1, now_ms=NOW_MS)

    def told(format: str) -> str:  # noqa: A002
        return "".join(export(lambda q: views.group_page(snapshot, q), TableQuery(), format=format))

    (row,) = csv.DictReader(io.StringIO(told("csv")))
    assert row["group"] == f"'{name}"
    assert json.loads(told("json"))[0]["group"] == name


def test_lists_are_ids_and_endless_times_are_unknown(snapshot: OperatorSnapshot) -> None:
    query = TableQuery(filter="partition=0", columns="replicas,status")
    words = "".join(export(lambda q: page_of(snapshot, q), query, format="csv"))
    assert words.splitlines() == ["topic,replicas,status", "topic-0,101 102 103,ok"]
    brokers = views.broker_page(snapshot).found
    assert brokers is not None
    text = "".join(export(lambda q: views.broker_page(snapshot, q), TableQuery(), format="json"))
    assert "Infinity" not in text


def test_a_column_that_is_not_there_is_named(snapshot: OperatorSnapshot) -> None:
    with pytest.raises(ExportError, match="no column 'colour'; there are topic"):
        export(lambda q: page_of(snapshot, q), TableQuery(columns="lag,colour"), format="csv")
