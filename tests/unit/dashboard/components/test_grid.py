"""The large tables as they are laid out."""

import pytest

from control.views import pages
from dashboard.components.grid import grid_block


@pytest.mark.parametrize("sort", ["", "-lag", "topic"])
def test_a_view_path_sets_filter_and_sort(sort: str) -> None:
    block = grid_block("partitions", pages.PARTITIONS, query={"q": "lag>1", "sort": sort})

    grid = block.children[2]
    sorted_columns = {item["field"]: item["sort"] for item in grid.columnDefs if "sort" in item}
    wanted = {"-lag": {"lag": "desc"}, "topic": {"topic": "asc"}, "": {}}
    assert sorted_columns == wanted[sort]
    assert block.children[1].children[1].value == "lag>1"
