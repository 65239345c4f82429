"""Tabs read and follow topics: each over a WebSocket of its own, which owns the tab's one reader.

The browser (``assets/modules/follow.js``) opens it with the view, and closes it with the tab or the
view. Each of its messages says what to do: ``{"do": "read", "query": {"partition": "3", "q":
"text"}}``; ``more`` shows the next page of results, read from where reading stopped, ``back`` the
page before, ``stop`` ends reading there, ``follow`` follows from now on. While a tab follows,
another filter changes the filter of the reader that runs, so that no record is skipped; other
partitions end the reader before the next one begins. The answers are Dash components for the place
of the results. Who does not read them holds up the reader, not the memory.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from fastapi import WebSocket, WebSocketDisconnect
from plotly.utils import PlotlyJSONEncoder

from control.kafka.records.browsing import Skipped
from control.kafka.records.following import Followed, Notice, TopicFollower
from control.kafka.records.newest import NewestRecords
from control.kafka.records.opening import beside
from control.kafka.records.reader import Looking, Start, StartKind
from control.kafka.records.record import FetchedRecord, Gap, Passed
from control.kafka.records.scan_progress import NOTHING_SCANNED, Scan
from control.messages.decoding.decoder import Decoder
from control.messages.message_search import MessageSearch
from control.messages.patterns import FilterError
from control.messages.result_pages import ResultPages
from dashboard.cluster_actions import ClusterActionError
from dashboard.components.forms import problem
from dashboard.components.message import formats_query
from dashboard.context import PageContext

READ, MORE, BACK, STOP, FOLLOW = "read", "more", "back", "stop", "follow"
SHOWN_MAX: Final = 100
"""Records that are read at a time."""
KEPT_MAX: Final = 100
"""Of the newest records; how many there were is told."""
NOTICES_MAX: Final = 5
READERS_MAX: Final = 20
"""Over all tabs; one more is told so."""
PACE_S: Final = 0.5
"""Between two messages to a tab, however fast records come."""
RETRY_S: Final = 2.0
STOPPING_S: Final = 5.0
"""A scan that is stopped has so long to finish what it is at, and then tells what it found."""
WAIT_MS: Final = 200
LOST: Final = "the connection to the page was lost: records that came meanwhile are not shown"


_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A tab's wish to follow or search a topic."""

    search: MessageSearch
    do: str = FOLLOW
    is_again: bool = False
    """The tab followed before, over a connection that was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How a tab sees messages."""

    search: MessageSearch
    decoder: Decoder

    @property
    def formats(self) -> str:
        """For links: ``&vf=avro``."""
        return formats_query(
            {"kf": self.decoder.formats.key.value, "vf": self.decoder.formats.value.value}
        )


class Tail:
    """News of a topic for one tab: the newest records, and how many there were."""

    def __init__(self, search: MessageSearch, decoder: Decoder, *, now_ms: int) -> None:
        self._tested = search.tested(decoder, now_ms=now_ms)
        self.newest = NewestRecords(count_max=KEPT_MAX)
        """That were looked for, the newest last."""
        self.notices: deque[Notice] = deque(maxlen=NOTICES_MAX)
        """What was met on the way, the newest last."""
        self.skipped = Skipped()
        self.seen = 0
        """Records that arrived since it was begun."""
        self.found = 0
        """Of them those that were looked for."""

    @property
    def looking(self) -> Looking:
        """For the reader: its test is always the present one."""
        return Looking(matching=self._passing)

    def _passing(self, records: Sequence[FetchedRecord]) -> list[bool]:
        offsets = {(it.partition, it.offset) for it in self._tested.passing(records)}
        return [(it.partition, it.offset) in offsets for it in records]

    def close(self) -> None:
        """Nobody looks any more."""
        self._tested.close()

    def look_for(self, search: MessageSearch, decoder: Decoder, *, now_ms: int) -> None:
        """From now on; of the records that are shown those stay that pass.

        One that cannot be used is told, and the former stays.
        """
        try:
            tested = search.tested(decoder, now_ms=now_ms)
            kept = tested.passing([*self.newest])
        except FilterError as error:
            words = f"{error}; the filter before stays in use"
            self.notices.append(Notice(text=words, is_trouble=True))
            return
        before, self._tested = self._tested, tested
        before.close()
        self.newest.clear()
        for each in kept:
            self.newest.append(each)
        self.found = len(kept)
        self.seen = len(kept)

    def take(self, items: Iterable[Followed]) -> bool:
        """Takes new records; answers whether there were any."""
        is_any = False
        for item in items:
            is_any = True
            if isinstance(item, Notice):
                self.notices.append(item)
            elif isinstance(item, Gap):
                self.skipped.add(item)
            elif isinstance(item, Passed):
                self.seen += item.record_count
            else:
                self.seen += 1
                self.found += 1
                self.newest.append(item)
        return is_any


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How a view shows what a tab is told."""

    followed: Callable[[Tail, Seen], Any]
    scanning: Callable[[Scan, Seen], Any]
    found: Callable[[ResultPages, Seen], Any]


class Readers:
    """Those of all tabs: at most so many run at a time."""

    def __init__(self, context: PageContext, drawing: Drawing, most: int = READERS_MAX) -> None:
        self.context = context
        self.drawing = drawing
        self._most = most
        self._count = 0

    async def serve(self, socket: WebSocket, topic: str) -> None:
        """Read for one tab until its connection ends."""
        await socket.accept()
        await _Tab(self, socket, topic).run()

    @contextmanager
    def running(self) -> Iterator[None]:
        """One of them runs.

        :raises TooManyReadersError: there are too many.
        """
        if self._count >= self._most:
            words = f"{self._most} tabs follow topics already; stop or close one of them"
            raise TooManyReadersError(words)
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1


class TooManyReadersError(ValueError):
    """As many tabs read or follow as may."""


class _Tab:
    """One connection, and its reader while it has one."""

    def __init__(self, readers: Readers, socket: WebSocket, topic: str) -> None:
        self._readers = readers
        self._context, self._drawing = readers.context, readers.drawing
        self._socket = socket
        self._topic = topic
        self._asked: Asked | None = None
        self._backs = 0
        """Presses of BACK that were not followed yet."""
        self._is_changed = asyncio.Event()
        self._scan: Scan | None = None
        self._pages = ResultPages()

    async def run(self) -> None:
        """Until the tab ends the connection, or says what is no question of it."""
        tasks = [asyncio.create_task(work()) for work in (self._listen, self._serve)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if not isinstance(error := task.exception(), WebSocketDisconnect):
                    _log.warning("a tab's reading ends: %s: %s", type(error).__name__, error)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(RuntimeError, WebSocketDisconnect):  # the tab has closed it
                await self._socket.close()

    async def _tell(self, shown: Any, **more: bool) -> None:
        """Show this in the place of the results."""
        told = {"children": shown, **more}
        words = await asyncio.to_thread(json.dumps, told, cls=PlotlyJSONEncoder)
        await self._socket.send_text(words)

    async def _listen(self) -> None:
        while True:
            asked = asked_of(await self._socket.receive_text(), self._topic)
            if self._scan is not None:
                self._scan.stop()
            if asked.do != STOP:
                self._backs = self._backs + 1 if asked.do == BACK else 0
                self._asked = asked
                self._is_changed.set()

    async def _serve(self) -> None:
        while True:
            await self._is_changed.wait()
            self._is_changed.clear()
            asked = self._asked
            assert asked is not None
            try:
                with self._readers.running():
                    await (self._follow(asked) if asked.do == FOLLOW else self._read(asked))
            except TooManyReadersError as error:
                await self._tell(problem(error), is_over=True)
            except ClusterActionError as error:
                await self._tell(problem(error))
                if asked.do == FOLLOW:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._is_changed.wait(), RETRY_S)
                    self._is_changed.set()

    async def _read(self, asked: Asked) -> None:
        """Scan until enough is found, the limit is reached, or the tab asks for something else.
        Pages that were read are shown again without reading."""
        pages = self._pages
        if asked.do == READ:
            pages.clear()
        is_kept = pages.next() if asked.do == MORE else asked.do == BACK
        backs, self._backs = self._backs, 0
        for _ in range(backs):
            pages.previous()
        if is_kept and pages.shown is not None:
            await self._show_page(await asyncio.to_thread(self._seen, asked.search))
            return
        before = pages.newest
        scan = self._scan = Scan(NOTHING_SCANNED if before is None else before.progress)
        settings, now_ms = self._context.actions.records(self._topic), self._context.now_ms()
        search = asked.search
        seen = await asyncio.to_thread(self._seen, search)
        if before is None:
            reading = search.read(settings, now_ms=now_ms, limit=SHOWN_MAX, scan=scan)
        else:
            reading = search.go_on(settings, before, now_ms=now_ms, limit=SHOWN_MAX, scan=scan)
        task = asyncio.create_task(reading)
        try:
            while not (await asyncio.wait([task], timeout=PACE_S))[0]:
                if scan.is_stopped:
                    if (await asyncio.wait([task], timeout=STOPPING_S))[0]:
                        break
                    raise ValueError("stopped before the cluster answered; read again")
                drawn = await asyncio.to_thread(self._drawing.scanning, scan, seen)
                await self._tell(drawn, is_running=True)
            found = task.result()
        finally:
            task.cancel()
            self._scan = None
        pages.add(found)
        await self._show_page(seen)

    async def _show_page(self, seen: Seen) -> None:
        pages = self._pages
        drawn = await asyncio.to_thread(self._drawing.found, pages, seen)
        await self._tell(drawn, has_more=pages.has_next, has_previous=pages.has_previous)

    async def _follow(self, asked: Asked) -> None:
        """Until something else is asked for."""
        seen = await asyncio.to_thread(self._seen, asked.search)
        now_ms = self._context.now_ms()
        tail = await beside(Tail, asked.search, seen.decoder, now_ms=now_ms)
        if asked.is_again:
            tail.notices.append(Notice(text=LOST, is_trouble=False))
        with closing(tail):
            follower = await self._begun(asked.search, tail.looking)
            try:
                await self._pass_on(follower, tail, asked, seen)
            finally:
                await follower.close()

    async def _begun(self, search: MessageSearch, looking: Looking) -> TopicFollower:
        async with self._context.actions.reader(self._topic) as reader:
            keys = await search.partitions(reader)
        numbers = [key.partition for key in keys] if search.partition else None
        follower = self._context.actions.follower(self._topic, numbers, looking)
        try:
            await follower.begin(Start(kind=StartKind.LATEST))
        except BaseException:
            await follower.close()
            raise
        return follower

    def _seen(self, search: MessageSearch) -> Seen:
        """In a thread. Chosen formats are remembered for the topic.

        :raises FilterError: there is no such format.
        """
        decoder = search.chosen_decoder(self._context.actions.bootstrap)
        return Seen(search=search, decoder=decoder)

    async def _pass_on(self, follower: TopicFollower, tail: Tail, begun: Asked, seen: Seen) -> None:
        loop = asyncio.get_running_loop()
        is_new, due_s = True, loop.time()
        while (asked := self._asked) is not None and _is_same_reader(asked, begun):
            self._is_changed.clear()
            if asked.search != seen.search:
                seen = await asyncio.to_thread(self._seen, asked.search)
                now_ms, is_new = self._context.now_ms(), True
                await beside(tail.look_for, seen.search, seen.decoder, now_ms=now_ms)
            if is_new and loop.time() >= due_s:
                await self._tell(await asyncio.to_thread(self._drawing.followed, tail, seen))
                is_new, due_s = False, loop.time() + PACE_S
            is_new |= tail.take(await follower.poll(WAIT_MS))


def _is_same_reader(asked: Asked, begun: Asked) -> bool:
    return asked.do == FOLLOW and asked.search.partition == begun.search.partition


def asked_of(text: str, topic: str) -> Asked:
    """The wish in a tab's message.

    Raises:
        ValueError: it is none.
    """
    told = json.loads(text)
    if not isinstance(told, dict) or not isinstance(told.get("query", {}), dict):
        raise ValueError("a tab says what it wants as a JSON object")
    query = {name: str(value or "").strip() for name, value in told.get("query", {}).items()}
    do = told.get("do", FOLLOW)
    if do not in (READ, MORE, BACK, STOP, FOLLOW):
        raise ValueError(f"a tab asks for {do!r}: no such request exists")
    search = MessageSearch.of_query(topic, query)
    return Asked(search=search, do=do, is_again=bool(told.get("again")))
