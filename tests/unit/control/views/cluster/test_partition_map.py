"""Every partition as one cell: levels, what is under a pointer, and the way to the table."""

from pathlib import Path

import pytest

from control.views.cluster.partition_map import LEVELS, partition_map, table_path
from control.views.paths import parse_path
from control.views.snapshots import snapshot as views
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.filters import FilterError
from control.views.tables.query import TableQuery
from tests.unit.dashboard.page_context import context_on

CELLS = 12


@pytest.fixture
def snapshot(tmp_path: Path) -> OperatorSnapshot:
    return context_on(tmp_path / "store").snapshot  # 3 topics of 4 partitions


def test_levels_are_even_steps_of_the_logarithm(snapshot: OperatorSnapshot) -> None:
    found = partition_map(snapshot, "size_bytes")
    levels = found.levels()
    assert len(levels) == found.rows * found.columns >= CELLS
    assert (levels[0], levels[CELLS - 1]) == (1, LEVELS)
    assert list(levels[:CELLS]) == sorted(levels[:CELLS])
    assert not levels[CELLS:].any()


def test_a_cell_tells_its_partition(snapshot: OperatorSnapshot) -> None:
    found = partition_map(snapshot, "size_bytes")
    row, column = divmod(5, found.columns)
    record = found.record(row, column)
    assert record is not None
    assert record["path"] == "topics/topic-1/partitions/1"
    sizes = {row.key: row.size_bytes.text for row in views.partition_page(snapshot).rows}
    assert record["words"] == f"{sizes['topic-1-1']} bytes"
    assert found.record(found.rows, 0) is None
    assert found.record(0, found.columns) is None


@pytest.mark.parametrize("measure", ["size_bytes", "in_bytes_per_s", "lag", "isr", "isr_short_ms"])
def test_the_table_of_some_rows_holds_their_topics(
    snapshot: OperatorSnapshot, measure: str
) -> None:
    found = partition_map(snapshot, measure, filter="topic>=topic-1")
    path = parse_path(table_path(found, 0, found.rows - 1, within="partition<3"))
    page = views.partition_page(
        snapshot, TableQuery(filter=path.query["q"], sort=path.query["sort"])
    )
    assert not page.problem
    assert {row.topic.text for row in page.rows} == {"topic-1", "topic-2"}
    assert page.matching == 6


def test_nothing_and_nonsense_are_told(snapshot: OperatorSnapshot) -> None:
    nothing = partition_map(snapshot, "isr")
    assert nothing.ends is None
    assert not nothing.levels().any()
    none = partition_map(snapshot, "size_bytes", filter="partition>99")
    assert none.topics_between(0, 5) is None
    with pytest.raises(FilterError, match="no column 'colour'"):
        partition_map(snapshot, "size_bytes", filter="colour:red")
