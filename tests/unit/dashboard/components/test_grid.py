"""The large tables as they are laid out."""

from pathlib import Path

import pytest

from control.views.tables import query as table_query
from control.views.tables.query import TableQuery
from dashboard.components.grid import EXAMPLES, grid_block
from dashboard.components.markup import MARKUP
from tests.unit.dashboard.page_context import context_on


@pytest.mark.parametrize("sort", ["", "-lag", "topic"])
def test_a_view_path_sets_filter_and_sort(sort: str) -> None:
    block = grid_block("partitions", table_query.PARTITIONS, query={"q": "lag>1", "sort": sort})

    grid = block.children[2]
    sorted_columns = {item["field"]: item["sort"] for item in grid.columnDefs if "sort" in item}
    wanted = {"-lag": {"lag": "desc"}, "topic": {"topic": "asc"}, "": {}}
    assert sorted_columns == wanted[sort]
    assert 'value="lag&gt;1"' in getattr(block.children[1].children[1], MARKUP)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_example_of_each_table_is_a_filter_that_it_understands(
    kind: str, tmp_path: Path
) -> None:
    spec = {
        "topics": table_query.TOPICS,
        "partitions": table_query.PARTITIONS,
        "brokers": table_query.BROKERS,
        "groups": table_query.GROUPS,
        "lags": table_query.GROUP_PARTITIONS,
    }[kind]
    snapshot = context_on(tmp_path).snapshot
    tables = {
        "topics": snapshot.topic_table,
        "partitions": snapshot.partition_table,
        "brokers": snapshot.broker_table,
        "groups": snapshot.group_table,
        "lags": snapshot.commit_table,
    }
    page = table_query.page_of(tables[kind], spec, TableQuery(filter=EXAMPLES[kind]))
    assert page.problem == ""
