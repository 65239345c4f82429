"""The map of partitions on the page: a byte a cell, what is under the pointer, its table."""

import base64
from pathlib import Path
from urllib.parse import unquote

import pytest

from control.views.cluster.partition_map import PartitionMap, partition_map
from dashboard.figures.partition_map import cells_figure
from dashboard.pages.map import POINT_AT, table_link, under_pointer
from tests.unit.dashboard.page_context import context_on, words_of


@pytest.fixture
def found(tmp_path: Path) -> PartitionMap:
    return partition_map(context_on(tmp_path / "store").snapshot, "size_bytes")


def test_the_figure_has_one_byte_a_cell(found: PartitionMap) -> None:
    data = cells_figure(found, "dark")["data"][0]
    assert data["z"]["shape"] == f"{found.rows}, {found.columns}"
    assert base64.b64decode(data["z"]["bdata"]) == found.levels().tobytes()
    places = data["colorbar"]["tickvals"]
    assert places == sorted(places) or len(places) == 3
    assert all(words.endswith("B") for words in data["colorbar"]["ticktext"])


def test_what_is_under_the_pointer_is_told_and_can_be_acted_on(found: PartitionMap) -> None:
    told = under_pointer(found, {"points": [{"x": 1, "y": 0}]})
    assert words_of(told).startswith("topic-0-1 ")
    assert "leader 102" in words_of(told)
    assert getattr(told, "data-path") == "topics/topic-0/partitions/1"
    assert under_pointer(found, {"points": [{"x": 1, "y": 99}]}) == POINT_AT


def test_rows_in_sight_lead_to_their_table(found: PartitionMap) -> None:
    everything = table_link(found, {})
    assert words_of(everything).startswith("topic-0 to topic-2")
    zoomed = {"yaxis.range[0]": 0.4, "yaxis.range[1]": -0.5}
    href = unquote(table_link(found, zoomed).href)
    assert href.startswith('/partitions?q=topic>="topic-0" topic<="topic-1"&sort=-size_bytes')
