"""Random searches of a topic, by the screens' search and by tail's follower, compared with an
oracle that reads everything."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

import pytest

from control.kafka.records.browsing import Browsed
from control.kafka.records.following import TopicFollower
from control.kafka.records.reader import Start, StartKind
from control.kafka.records.record import FetchedRecord, Isolation
from control.kafka.records.scan_progress import Scan
from control.messages.message_filters import build_filter
from control.messages.message_search import MessageSearch
from control.messages.patterns import FilterError
from control.views.tables.messages import summary
from tests.oracle.messages import judge
from tests.oracle.messages.topics import KEYS, NAMES, NO_PRODUCER, NOW_MS, Part, Written

PAGES_MAX = 10
"""Of a search: a reader of one record a page reads small topics only."""
_PIECES = ("order", "dead", "7", "a", "STRASSE", "é", "Σ", "\\n", "n", "0x", "xdead", "zz")


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
        fewest = sum(len(part.records) for part in parts) // PAGES_MAX
        query["limit"] = str(max(dice.choice((1, 7, 50)), fewest))
    return query


def tail_start(query: Mapping[str, str]) -> Start:
    since, offset = query.get("since", ""), query.get("offset", "")
    if offset:
        return Start(kind=StartKind.OFFSET, value=int(offset))
    if since.startswith("-"):
        return Start(kind=StartKind.LAST, value=int(since[1:]))
    if since.isdigit():
        return Start(kind=StartKind.TIMESTAMP, value=int(since))
    return Start(kind=StartKind.EARLIEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedTopic:
    """A topic that is read from a cluster, and what it holds."""

    settings: str
    name: str
    parts: list[Part]
    is_ordered: bool
    """The times of every partition are."""
    tells_producers: bool = True
    """The client that wrote it knows by which producer ids."""

    async def check(self, dice: Random) -> None:
        """One random search, page by page, and the same by tail's follower."""
        query, limit = random_query(dice, self.parts), dice.choice((1, 10, 200))
        isolation = dice.choice(list(Isolation))
        scan_limit = dice.choice((None, None, 1, 40))
        try:
            await self._check_search(query, limit)
            await self._check_tail(query, scan_limit, isolation)
        except BaseException as error:
            error.add_note(f"{query}, {limit} a page, {isolation}, {scan_limit}")
            raise

    async def _check_search(self, query: Mapping[str, str], limit: int) -> None:
        wanted = judge.expected(query, self.parts)
        limit = max(limit, len(wanted) // PAGES_MAX)
        search = MessageSearch.of_query(self.name, query)
        if judge.is_refused(query, self.parts):
            with pytest.raises(FilterError, match="beyond the end"):
                await self._pages(search, limit)
            return
        read = await self._pages(search, limit)
        seen: list[Written] = []
        for number, page in enumerate(read, 1):
            rows = [self._written(it) for it in page.records]
            assert rows == judge.merged(rows), "the order of a page"
            assert len(rows) <= limit
            seen += rows
            words, _ = summary(page, is_search=search.is_search)
            is_whole = len(seen) == len(wanted) and not page.rest
            assert ("all of them" in words) <= is_whole, words
            if query.get("limit"):
                assert page.progress.record_count <= number * int(query["limit"])
        assert sorted(seen) == sorted(wanted)
        if self.is_ordered:
            way = read[:: -1 if read[0].is_backward else 1]
            in_order = [self._written(it) for page in way for it in page.records]
            assert in_order == judge.in_order(wanted)

    async def _check_tail(
        self, query: Mapping[str, str], scan_limit: int | None, isolation: Isolation
    ) -> None:
        start = tail_start(query)
        there = [it for its in judge.started(query, self.parts).values() for it in its]
        if isolation is Isolation.READ_COMMITTED:
            there = judge.committed(there, self.parts)
        if start.kind is StartKind.LAST and self.is_ordered:
            there = judge.in_order(there)[-start.value :]
        wanted = [it for it in there if judge.passes(query, it)]
        scan = Scan() if scan_limit is None else Scan(records_max=scan_limit)
        rows = await self._tailed(query, start, isolation, scan)
        assert {*rows} <= {*wanted}
        is_guessed = start.kind is StartKind.LAST and not self.is_ordered
        if scan_limit is not None:
            assert scan.record_count <= scan_limit
        if scan_limit is not None and scan.record_count == scan_limit:
            return
        if is_guessed:
            assert scan.record_count >= min(start.value, len(there))
            return
        assert sorted(rows) == sorted(wanted)
        if self.is_ordered:
            assert rows == judge.in_order(wanted)

    async def _pages(self, search: MessageSearch, limit: int) -> list[Browsed]:
        found = [await search.read(self.settings, now_ms=NOW_MS, limit=limit)]
        while found[-1].rest:
            found.append(await search.go_on(self.settings, found[-1], now_ms=NOW_MS, limit=limit))
            assert len(found) < 5_000, "it goes on for ever"
        return found

    async def _tailed(
        self, query: Mapping[str, str], start: Start, isolation: Isolation, scan: Scan
    ) -> list[Written]:
        filters = MessageSearch.of_query(self.name, query).texts
        tested = build_filter(filters, until_ms=int(query["until"]) if "until" in query else None)
        looking = replace(tested.looking, isolation=isolation)
        chosen = [int(it) for it in query["partition"].split(",")] if "partition" in query else None
        following = TopicFollower(
            self.settings, self.name, partitions=chosen, looking=looking, scan=scan
        )
        async with following as follower:
            await follower.begin(start)
            items = [item async for item in follower.backlog(is_all=True)]
        return [self._written(it) for it in items if isinstance(it, FetchedRecord)]

    def _written(self, record: FetchedRecord) -> Written:
        producer = record.batch.producer_id if self.tells_producers else NO_PRODUCER
        return Written(record.partition, record.offset, record.timestamp_ms, record.key,
                       record.value, record.headers, producer)  # fmt: skip
