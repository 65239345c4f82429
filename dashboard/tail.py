"""Following a topic from the page: the browser asks again and again, here stands how far it is.

A page that no longer asks (closed, or on another view) is forgotten after ``IDLE_S``, and its
connections end.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from control.kafka.browsing import Skipped
from control.kafka.following import Notice, TopicFollower
from control.kafka.records import FetchedRecord, Gap

KEPT_MAX: Final = 100
"""Of the newest records; how many there were is told."""
NOTICES_MAX: Final = 5
TAILS_MAX: Final = 20
IDLE_S: Final = 15.0
WAIT_MS: Final = 200


class Tail:
    """One page's place in a topic."""

    def __init__(self, follower: TopicFollower) -> None:
        self._follower = follower
        self._lock = asyncio.Lock()
        self.newest: deque[FetchedRecord] = deque(maxlen=KEPT_MAX)
        """That were looked for, the newest last."""
        self.notices: deque[Notice] = deque(maxlen=NOTICES_MAX)
        """What was met on the way, the newest last."""
        self.skipped = Skipped()
        self.seen = 0
        """Records that arrived since it was begun."""
        self.found = 0
        """Of them those that were looked for."""
        self.is_told = False
        """The page shows that it follows."""
        self.ending: asyncio.TimerHandle | None = None

    async def take(self) -> bool:
        """What arrived since; True where there was something. Nothing while it is being asked.

        Raises:
            KafkaPortError: it cannot be read.
        """
        if self._lock.locked():
            return False
        async with self._lock:
            items = await self._follower.poll(WAIT_MS)
            for item in items:
                if isinstance(item, Notice):
                    self.notices.append(item)
                elif isinstance(item, Gap):
                    self.skipped.add(item)
                else:
                    self.seen += 1
                    if isinstance(item, FetchedRecord):
                        self.found += 1
                        self.newest.append(item)
        return bool(items)

    async def close(self) -> None:
        """End its connections."""
        await self._follower.close()


class Tails:
    """Those of all pages, by a name that a page makes up. Lives on the page's event loop."""

    def __init__(self, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._tails: dict[str, Tail] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def of(self, name: str, begin: Callable[[], Awaitable[TopicFollower]]) -> Tail:
        """The page's own; begun where it has none.

        Raises:
            ValueError: too many follow at once.
            KafkaPortError: it cannot be begun.
        """
        tail = self._tails.get(name)
        if tail is None:
            if len(self._tails) >= TAILS_MAX:
                raise ValueError(f"{TAILS_MAX} pages follow topics already; stop one of them")
            begun = Tail(await begin())
            tail = self._tails.setdefault(name, begun)
            if tail is not begun:  # asked twice while it was begun
                await begun.close()
        self._end_later(name, tail)
        return tail

    def _end_later(self, name: str, tail: Tail) -> None:
        if tail.ending is not None:
            tail.ending.cancel()
        tail.ending = asyncio.get_running_loop().call_later(self._idle_s, self._end, name)

    def _end(self, name: str) -> None:
        tail = self._tails.pop(name, None)
        if tail is not None:
            closing = asyncio.get_running_loop().create_task(tail.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
