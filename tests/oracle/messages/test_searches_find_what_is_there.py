"""Random searches of random topics, by the screens' search and by tail's follower, compared with
an oracle that reads everything."""

from collections.abc import Callable, Iterable, Mapping
from random import Random

import pytest

from control.kafka.records.browsing import Browsed
from control.kafka.records.decoding import AbortedTransaction
from control.kafka.records.following import TopicFollower
from control.kafka.records.reader import Looking, Start, StartKind
from control.kafka.records.record import FetchedRecord, Isolation
from control.kafka.records.scan_progress import Scan
from control.messages.message_filters import build_filter
from control.messages.message_search import MessageSearch
from control.model.ids import TopicPartition
from control.views.tables.messages import summary
from tests.oracle.messages import judge
from tests.oracle.messages.topics import KEYS, NAMES, NOW_MS, Part, Written, random_topic
from tests.support.memory_log import MemoryCluster, MemoryLog, Stored

ORDINARY = 100
SOAK = 2_000
CHUNK = 100
TOPIC = "orders"
_PIECES = ("order", "dead", "7", "a", "STRASSE", "é", "Σ", "\\n", "n", "0x", "xdead", "zz")


def cluster_of(parts: Iterable[Part]) -> MemoryCluster:
    logs = {}
    for number, part in enumerate(parts):
        markers = {
            AbortedTransaction(producer_id=producer, first_offset=first): marker
            for producer, first, marker in part.aborted
        }
        logs[TopicPartition(TOPIC, number)] = MemoryLog(
            batches=[Stored(first=f, last=last, data=data) for f, last, data in part.batches],
            start=part.start,
            end=part.end,
            stable=part.stable,
            aborted=tuple(markers),
            markers=markers,
            times={it.offset: it.timestamp_ms for it in part.records},
        )
    return MemoryCluster(logs)


def told(data: bytes | None, dice: Random) -> str:
    """A filter that finds it, or nearly."""
    if data is None:
        return "null"
    if not data:
        return '""'
    is_bytes = dice.random() < 0.3
    text = "0x" + data.hex() if is_bytes else data.decode(errors="surrogateescape")
    match dice.randrange(5):
        case 0:
            at = dice.randint(0, len(text))
            return text[:at] + "*"
        case 1:
            at = dice.randint(0, len(text))
            return text[:at] + "*" + text[min(len(text), at + dice.randint(0, 3)) :]
        case 2:
            return f'"{text}"'
    return text


def random_filters(dice: Random) -> dict[str, str]:
    makers: dict[str, Callable[[], str]] = {
        "key": lambda: told(dice.choice(KEYS), dice),
        "header": lambda: dice.choice(
            (
                dice.choice(NAMES),
                "*",
                f"{dice.choice((*NAMES, '*'))}={told(dice.choice(KEYS), dice)}",
            )
        ),
        "q": lambda: dice.choice(
            (dice.choice(_PIECES), dice.choice(_PIECES).swapcase(), "0xdead", "adBE", "ff")
        ),
        "regex": lambda: (
            dice.choice(_PIECES)
            + dice.choice((".*", ".", "$", ""))
            + dice.choice((dice.choice(_PIECES), ""))
        ),
        "path": lambda: "$.n",
        "cel": lambda: f"value.n > {dice.choice((0, 3, 6))}",
    }
    names = dice.sample(sorted(makers), dice.choice((0, 1, 1, 1, 2)))
    return {name: made for name in names if (made := makers[name]())}


def random_query(dice: Random, parts: list[Part]) -> dict[str, str]:
    query = random_filters(dice)
    match dice.randrange(5):
        case 0:
            query["since"] = "earliest"
        case 1:
            query["offset"] = str(dice.randint(0, max(part.end for part in parts)))
        case 2:
            query["since"] = str(NOW_MS + dice.randint(-9_000, 9_000))
        case 3:
            query["since"] = f"-{dice.choice((1, 5, 1_000))}"
    if dice.random() < 0.5:
        query["until"] = str(NOW_MS + dice.randint(-6_000, 9_000))
    if dice.random() < 0.3:
        chosen = dice.sample(range(len(parts)), dice.randint(1, len(parts)))
        query["partition"] = ",".join(map(str, sorted(chosen)))
    if dice.random() < 0.4:
        query["limit"] = str(dice.choice((1, 7, 50)))
    return query


def written(record: FetchedRecord) -> Written:
    return Written(record.partition, record.offset, record.timestamp_ms, record.key, record.value,
                   record.headers, record.batch.producer_id)  # fmt: skip


async def pages(search: MessageSearch, limit: int) -> list[Browsed]:
    found = [await search.read("memory:1", now_ms=NOW_MS, limit=limit)]
    while found[-1].rest:
        found.append(await search.go_on("memory:1", found[-1], now_ms=NOW_MS, limit=limit))
        assert len(found) < 5_000, "it goes on for ever"
    return found


async def check_search(
    parts: list[Part], query: Mapping[str, str], limit: int, *, is_ordered: bool
) -> None:
    wanted = judge.expected(query, parts)
    search = MessageSearch.of_query(TOPIC, query)
    read = await pages(search, limit)
    seen: list[Written] = []
    for number, page in enumerate(read, 1):
        rows = [written(it) for it in page.records]
        assert rows == judge.merged(rows), "the order of a page"
        assert len(rows) <= limit
        seen += rows
        words, _ = summary(page, is_search=search.is_search)
        is_whole = len(seen) == len(wanted) and not page.rest
        assert ("all of them" in words) <= is_whole, words
        if query.get("limit"):
            assert page.progress.record_count <= number * int(query["limit"])
    assert sorted(seen) == sorted(wanted)
    if is_ordered:
        way = read[:: -1 if read[0].is_backward else 1]
        assert [written(it) for page in way for it in page.records] == judge.in_order(wanted)


def tail_start(query: Mapping[str, str]) -> Start:
    since, offset = query.get("since", ""), query.get("offset", "")
    if offset:
        return Start(kind=StartKind.OFFSET, value=int(offset))
    if since.startswith("-"):
        return Start(kind=StartKind.LAST, value=int(since[1:]))
    if since.isdigit():
        return Start(kind=StartKind.TIMESTAMP, value=int(since))
    return Start(kind=StartKind.EARLIEST)


async def check_tail(
    parts: list[Part],
    query: Mapping[str, str],
    scan_limit: int | None,
    isolation: Isolation,
    *,
    is_ordered: bool,
) -> None:
    start = tail_start(query)
    filters = MessageSearch.of_query(TOPIC, query).texts
    until_ms = int(query["until"]) if "until" in query else None
    tested = build_filter(filters, until_ms=until_ms)
    looking = Looking(
        matches=tested.matches,
        may_match=tested.may_match,
        isolation=isolation,
    )
    chosen = [int(it) for it in query["partition"].split(",")] if "partition" in query else None
    scan = Scan() if scan_limit is None else Scan(records_max=scan_limit)
    there = [it for its in judge.started(query, parts).values() for it in its]
    if isolation is Isolation.READ_COMMITTED:
        there = judge.committed(there, parts)
    if start.kind is StartKind.LAST and is_ordered:
        there = judge.in_order(there)[-start.value :]
    wanted = [it for it in there if judge.passes(query, it)]
    rows = []
    following = TopicFollower("memory:1", TOPIC, partitions=chosen, looking=looking, scan=scan)
    async with following as follower:
        await follower.begin(start)
        async for item in follower.backlog(is_all=True):
            if isinstance(item, FetchedRecord):
                rows.append(written(item))
    assert {*rows} <= {*wanted}
    is_guessed = start.kind is StartKind.LAST and not is_ordered
    if scan_limit is not None:
        assert scan.record_count <= scan_limit
    if scan_limit is not None and scan.record_count == scan_limit:
        return
    if is_guessed:
        assert scan.record_count >= min(start.value, len(there))
        return
    assert sorted(rows) == sorted(wanted)
    if is_ordered:
        assert rows == judge.in_order(wanted)


async def check(seed: int, patch: pytest.MonkeyPatch) -> None:
    dice = Random(seed)
    is_ordered = dice.random() < 0.5
    parts = random_topic(dice, is_ordered=is_ordered)
    cluster = cluster_of(parts)
    patch.setattr("control.messages.message_search.RecordReader", lambda _: cluster.reader())
    patch.setattr("control.kafka.records.following.RecordReader", lambda _: cluster.reader())
    for _ in range(5):
        query, limit = random_query(dice, parts), dice.choice((1, 10, 200))
        isolation = dice.choice(list(Isolation))
        scan_limit = dice.choice((None, None, 1, 40))
        try:
            await check_search(parts, query, limit, is_ordered=is_ordered)
            await check_tail(parts, query, scan_limit, isolation, is_ordered=is_ordered)
        except BaseException as error:
            error.add_note(f"seed {seed}: {query}, {limit} a page, {isolation}, {scan_limit}")
            raise


@pytest.mark.parametrize("first", range(0, ORDINARY // 5, 5))
async def test_a_search_finds_what_is_there(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + 5):
        await check(seed, monkeypatch)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(ORDINARY, ORDINARY + SOAK // 5, CHUNK))
async def test_every_search_finds_what_is_there(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(first, first + CHUNK):
        await check(seed, monkeypatch)
