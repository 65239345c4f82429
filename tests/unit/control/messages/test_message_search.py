"""Searches for messages: as links have them, and with what is wrong in them."""

import pytest

from control.messages.judged_records import FilterError
from control.messages.message_search import MessageSearch
from control.views.paths import parse_path


@pytest.mark.parametrize(
    ("query", "start"),
    [
        ("", ""),
        ("?partition=3&offset=1200", "1200"),
        ("?since=10m&q=wanted", "10m"),
        ("?since=earliest&until=18:05&limit=5000", "earliest"),
        ("?regex=a%2Bb&key=k*&header=a%3Db&path=%24.a&cel=size+%3E+3", ""),
    ],
)
def test_links_of_both_screens_say_what_is_searched(query: str, start: str) -> None:
    path = parse_path(f"browse/orders{query}")
    search = MessageSearch.of_query("orders", path.query)
    assert search.start == start
    assert {name: value for name, value in search.query.items() if value} == path.query


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("since=yesterday", "start", "'yesterday' is none of"),
        ("until=soon", "until", "'soon' is no time"),
        ("limit=many", "limit", "'many' is no number of records"),
        ("partition=1-x", "partition", "'1-x' is no partition; write 3 or 0-3,7"),
        ("partition=9-2", "partition", "'9-2' is no range"),
        ("regex=a(b[c", "regex", "missing ]: [c at character 4"),
    ],
)
async def test_what_is_wrong_is_named_before_a_cluster_is_asked(
    query: str, field: str, words: str
) -> None:
    search = MessageSearch.of_query("orders", parse_path(f"browse/orders?{query}").query)
    with pytest.raises(FilterError) as error:
        await search.read("127.0.0.1:1", now_ms=0, limit=1)
    assert error.value.field == field
    assert words in error.value.words
