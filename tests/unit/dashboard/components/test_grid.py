"""The large tables as they are laid out."""

from pathlib import Path

import pytest

from control.views.snapshots.snapshot import LISTS, list_page
from control.views.tables.partitions import PARTITIONS
from control.views.tables.query import TableQuery
from dashboard.components.grid import grid_block
from dashboard.components.markup import MARKUP
from tests.unit.dashboard.page_context import context_on


@pytest.mark.parametrize("sort", ["", "-lag", "topic"])
def test_a_view_path_sets_filter_and_sort(sort: str) -> None:
    block = grid_block(PARTITIONS, query={"q": "lag>1", "sort": sort})

    grid = block.children[2]
    sorted_columns = {item["field"]: item["sort"] for item in grid.columnDefs if "sort" in item}
    wanted = {"-lag": {"max_lag": "desc"}, "topic": {"topic": "asc"}, "": {}}
    assert sorted_columns == wanted[sort]
    assert 'value="lag&gt;1"' in getattr(block.children[1].children[1], MARKUP)


@pytest.mark.parametrize("name", LISTS)
def test_the_example_of_each_table_is_a_filter_that_it_understands(
    name: str, tmp_path: Path
) -> None:
    query = TableQuery(filter=LISTS[name].kind.example)
    assert query.filter
    assert list_page(context_on(tmp_path).snapshot, name, query).problem == ""
