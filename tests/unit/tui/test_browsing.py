"""Which messages are wanted, as links have it."""

import pytest

from control.views.paths import parse_path
from tui.browsing import LATEST, Wanted


@pytest.mark.parametrize(
    ("query", "start"),
    [
        ("", LATEST),
        ("?partition=3&offset=1200", "1200"),
        ("?since=10m&q=wanted", "10m"),
        ("?since=earliest", "earliest"),
    ],
)
def test_links_of_both_screens_say_where_to_begin(query: str, start: str) -> None:
    path = parse_path(f"browse/orders{query}")
    wanted = Wanted.of_query("orders", path.query)
    assert wanted.start == start
    assert {name: value for name, value in wanted.query.items() if value} == path.query
