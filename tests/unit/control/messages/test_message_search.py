"""Searches for messages: as links have them, and with what is wrong in them."""

import pytest

from broker.protocol.records import NewRecord, build_batch
from control.kafka.records.following import Notice
from control.messages.message_search import MessageSearch
from control.messages.patterns import FilterError
from control.model.ids import TopicPartition
from control.views.paths import parse_path
from control.views.tables.messages import summary
from tests.support.memory_log import MemoryCluster, MemoryLog
from tests.support.phrases import lacking


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


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets 10 to 12 of one partition, 0 to 3 of another."""
    parts = {}
    for number, (start, end) in enumerate(((10, 13), (0, 4))):
        log = MemoryLog(start=start)
        records = [NewRecord(value=b"v", timestamp=at) for at in range(start, end)]
        log.append(build_batch(records, base_offset=start), first=start, last=end - 1)
        parts[TopicPartition("orders", number)] = log
    cluster = MemoryCluster(parts)
    for where in ("control.messages.message_search", "control.kafka.records.following"):
        monkeypatch.setattr(f"{where}.RecordReader", lambda _: cluster.reader())


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("query", "places", "words"),
    [
        ("offset=2", 5, ("offset 2 is before", "orders-0 (10 to 13)")),
        ("offset=11", 2, ("offset 11 is beyond the end", "orders-1 (0 to 4)")),
        ("offset=7&q=v", 3, ("beyond", "orders-1 (0 to 4)", "before", "orders-0 (10 to 13)")),
        ("offset=4", 3, ("before", "orders-0")),
        ("offset=10&partition=0", 3, ()),
        ("since=earliest", 7, ()),
        ("since=-5", 5, ()),
    ],
)
async def test_an_offset_outside_a_log_is_told_where_reading_begins(
    query: str, places: int, words: tuple[str, ...]
) -> None:
    search = MessageSearch.of_query("orders", parse_path(f"browse/orders?{query}").query)
    found = await search.read("memory:1", now_ms=0, limit=10)
    _, told = summary(found, is_search=search.is_search)
    assert len(told) == bool(words)
    assert lacking(" ".join(told), *words) == []
    followed = search.follow("memory:1", now_ms=0)
    first = await anext(followed)
    await followed.aclose()  # type: ignore[attr-defined]  # an async generator
    assert isinstance(first, Notice) == bool(words)
    if isinstance(first, Notice):
        assert lacking(first.text, *words) == []
    assert len(found.records) == places


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("offset=14", ("offset 14 is beyond", "orders-0 (10 to 13), orders-1 (0 to 4)")),
        ("offset=5&partition=1", ("orders-1 (0 to 4)", "write an offset")),
        ("offset=1700000000", ("2023-11-14T22:13:20Z", "write the time @1700000000")),
        ("offset=1700000000000", ("2023-11-14T22:13:20Z", "write the time @1700000000000")),
        ("offset=9223372036854775807", ("orders-0 (10 to 13)",)),
    ],
)
async def test_an_offset_that_no_log_has_is_refused(query: str, words: tuple[str, ...]) -> None:
    search = MessageSearch.of_query("orders", parse_path(f"browse/orders?{query}").query)
    with pytest.raises(FilterError) as refused:
        await search.read("memory:1", now_ms=1_790_000_000_000, limit=10)
    assert lacking(str(refused.value), *words) == []
    with pytest.raises(FilterError):
        await anext(search.follow("memory:1", now_ms=1_790_000_000_000))
