"""The large tables: what the grid asks becomes a query, what it gets are texts and tones."""

from pathlib import Path

import pytest

from control.views import pages
from control.views import snapshot as views
from control.views.pages import TableQuery
from dashboard.components.grid import (
    BLOCK_ROWS,
    EXAMPLES,
    count_words,
    grid_block,
    grid_row,
    rows_response,
    table_query,
)
from tests.unit.dashboard.screens import screen_on


def test_a_request_becomes_a_query() -> None:
    request = {"startRow": 200, "endRow": 300, "sortModel": [{"colId": "lag", "sort": "desc"}]}

    assert table_query(request, "topic:a") == TableQuery(
        filter="topic:a", sort="-lag", offset=200, limit=100
    )
    assert table_query({}, "") == TableQuery(limit=BLOCK_ROWS)


def test_rows_have_identity_texts_and_tones(tmp_path: Path) -> None:
    page = views.partition_page(screen_on(tmp_path).snapshot, TableQuery(limit=2))

    response = rows_response(page)

    assert response["rowCount"] == 12
    assert [row["key"] for row in response["rowData"]] == ["topic-0-0", "topic-0-1"]
    first = grid_row(page.rows[0], page.columns)
    assert first["path"] == "topics/topic-0/partitions/0"
    assert (first["status"], first["status__tone"]) == ("✔ ok", "fine")
    assert first["leader"] == "★ 101"


def test_counts_tell_how_many_match(tmp_path: Path) -> None:
    snapshot = screen_on(tmp_path).snapshot

    assert count_words(views.partition_page(snapshot)) == "12 rows"
    some = views.partition_page(snapshot, TableQuery(filter="topic-1"))
    assert count_words(some) == "4 of 12 rows"


@pytest.mark.parametrize("sort", ["", "-lag", "topic"])
def test_a_view_path_sets_filter_and_sort(sort: str) -> None:
    block = grid_block("partitions", pages.PARTITIONS, query={"q": "lag>1", "sort": sort})

    grid = block.children[2]
    sorted_columns = {item["field"]: item["sort"] for item in grid.columnDefs if "sort" in item}
    wanted = {"-lag": {"lag": "desc"}, "topic": {"topic": "asc"}, "": {}}
    assert sorted_columns == wanted[sort]
    assert block.children[1].children[1].value == "lag>1"
    assert grid.dashGridOptions["maxConcurrentDatasourceRequests"] == 1


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_example_of_each_table_is_a_filter_that_it_understands(
    kind: str, tmp_path: Path
) -> None:
    spec = {
        "topics": pages.TOPICS,
        "partitions": pages.PARTITIONS,
        "brokers": pages.BROKERS,
        "groups": pages.GROUPS,
        "lags": pages.GROUP_PARTITIONS,
    }[kind]
    snapshot = screen_on(tmp_path).snapshot
    tables = {
        "topics": snapshot.topic_table,
        "partitions": snapshot.partition_table,
        "brokers": snapshot.broker_table,
        "groups": snapshot.group_table,
        "lags": snapshot.commit_table,
    }
    page = pages.page_of(tables[kind], spec, TableQuery(filter=EXAMPLES[kind]))
    assert page.problem == ""
