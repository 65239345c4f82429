"""Tabs follow topics: each over a WebSocket of its own, which owns the tab's one reader.

The browser (``assets/modules/follow.js``) opens it when following begins, and closes it with the
tab, the view or the button. Each of its messages says what to follow: ``{"partition": "3", "q":
"text"}``. Another text changes the filter of the reader that runs, so that no record is skipped;
another partition ends the reader before the next one begins. The answers are Dash components for
the place of the results. Who does not read them holds up the reader, not the memory.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from fastapi import WebSocket, WebSocketDisconnect
from plotly.utils import PlotlyJSONEncoder

from control.kafka.browsing import Skipped
from control.kafka.following import Followed, Notice, TopicFollower
from control.kafka.reader import Looking
from control.kafka.records import FetchedRecord, Gap
from control.views.messages import matcher
from dashboard.components.forms import problem
from dashboard.desk import DeskError

KEPT_MAX: Final = 100
"""Of the newest records; how many there were is told."""
NOTICES_MAX: Final = 5
READERS_MAX: Final = 20
"""Over all tabs; one more is told so."""
PACE_S: Final = 0.5
"""Between two messages to a tab, however fast records come."""
RETRY_S: Final = 2.0
WAIT_MS: Final = 200
LOST: Final = "the connection to the page was lost: records that came meanwhile are not shown"


_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A tab's wish to follow a topic."""

    partition: str = ""
    """Empty: all of them."""
    wanted: str = ""
    """What key, value or a header must contain."""
    is_again: bool = False
    """The tab followed before, over a connection that was lost."""


class Tail:
    """News of a topic for one tab: the newest records, and how many there were."""

    def __init__(self, wanted: str = "") -> None:
        self.wanted = wanted
        self._matches = matcher(wanted)
        self.newest: deque[FetchedRecord] = deque(maxlen=KEPT_MAX)
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
        return Looking(matches=lambda record: self._matches is None or self._matches(record))

    def look_for(self, wanted: str) -> bool:
        """From now on; of the records that are shown those stay that have it. Whether it is new."""
        if wanted == self.wanted:
            return False
        self.wanted = wanted
        self._matches = matches = matcher(wanted)
        kept = [each for each in self.newest if matches is None or matches(each)]
        self.newest = deque(kept, maxlen=KEPT_MAX)
        self.found = len(kept)
        self.seen = len(kept)
        return True

    def take(self, items: Iterable[Followed]) -> bool:
        """Takes new records; answers whether there were any."""
        is_any = False
        for item in items:
            is_any = True
            if isinstance(item, Notice):
                self.notices.append(item)
            elif isinstance(item, Gap):
                self.skipped.add(item)
            else:
                self.seen += 1
                if isinstance(item, FetchedRecord):
                    self.found += 1
                    self.newest.append(item)
        return is_any


Begin = Callable[[str, Looking], Awaitable[TopicFollower]]
"""A reader of a partition (empty: all) that reads from now on. Raises a ``DeskError``."""
Draw = Callable[[Tail], Any]


class Readers:
    """Those of all tabs: at most so many."""

    def __init__(self, most: int = READERS_MAX) -> None:
        self._most = most
        self._count = 0

    async def serve(self, socket: WebSocket, begin: Begin, draw: Draw) -> None:
        """Follow for one tab until its connection ends."""
        await socket.accept()
        tab = _Tab(socket, begin, draw)
        if self._count >= self._most:
            words = f"{self._most} tabs follow topics already; stop or close one of them"
            await tab.tell(problem(ValueError(words)), is_over=True)
            await socket.close()
            return
        self._count += 1
        try:
            await tab.run()
        finally:
            self._count -= 1


class _Tab:
    """One connection, and its reader while it has one."""

    def __init__(self, socket: WebSocket, begin: Begin, draw: Draw) -> None:
        self._socket = socket
        self._begin = begin
        self._draw = draw
        self._asked = Asked()
        self._is_changed = asyncio.Event()

    async def run(self) -> None:
        """Until the tab ends the connection, or says what is no question of it."""
        tasks = [asyncio.create_task(work()) for work in (self._listen, self._follow)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if not isinstance(error := task.exception(), WebSocketDisconnect):
                    _log.warning("a tab's following ends: %s: %s", type(error).__name__, error)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(RuntimeError):  # the tab has closed it
                await self._socket.close()

    async def tell(self, shown: Any, *, is_over: bool = False) -> None:
        """Show this in the place of the results."""
        told = {"children": shown, "is_over": is_over}
        words = await asyncio.to_thread(json.dumps, told, cls=PlotlyJSONEncoder)
        await self._socket.send_text(words)

    async def _listen(self) -> None:
        while True:
            self._asked = asked_of(await self._socket.receive_text())
            self._is_changed.set()

    async def _follow(self) -> None:
        await self._is_changed.wait()
        while True:
            self._is_changed.clear()
            try:
                await self._read(self._asked)
            except DeskError as error:
                await self.tell(problem(error))
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._is_changed.wait(), RETRY_S)

    async def _read(self, asked: Asked) -> None:
        """Until another partition is asked for."""
        tail = Tail(asked.wanted)
        if asked.is_again:
            tail.notices.append(Notice(text=LOST, is_trouble=False))
        follower = await self._begin(asked.partition, tail.looking)
        try:
            await self._pass_on(follower, tail, asked.partition)
        finally:
            await follower.close()

    async def _pass_on(self, follower: TopicFollower, tail: Tail, partition: str) -> None:
        loop = asyncio.get_running_loop()
        is_new, due_s = True, loop.time()
        while self._asked.partition == partition:
            is_new |= tail.look_for(self._asked.wanted)
            if is_new and loop.time() >= due_s:
                await self.tell(await asyncio.to_thread(self._draw, tail))
                is_new, due_s = False, loop.time() + PACE_S
            is_new |= tail.take(await follower.poll(WAIT_MS))


def asked_of(text: str) -> Asked:
    """The wish in a tab's message.

    Raises:
        ValueError: it is none.
    """
    told = json.loads(text)
    if not isinstance(told, dict):
        raise ValueError("a tab says what it follows as a JSON object")
    partition, wanted = (str(told.get(name) or "").strip() for name in ("partition", "q"))
    return Asked(partition=partition, wanted=wanted, is_again=bool(told.get("again")))
