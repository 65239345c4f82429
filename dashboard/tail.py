"""Following a topic from the page: the browser asks again and again, here stands how far it is.

A page that no longer asks (closed, or on another view) is forgotten after ``IDLE_S``, and its
connections end.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from control.kafka.reader import FetchedRecord, RecordReader
from control.model.ids import TopicPartition
from control.views.messages import is_match

KEPT_MAX: Final = 100
"""Of the newest records; how many there were is told."""
TAILS_MAX: Final = 20
IDLE_S: Final = 15.0
WAIT_MS: Final = 200

Positions = Mapping[TopicPartition, int]


class Tail:
    """One page's place in a topic."""

    def __init__(self, reader: RecordReader, positions: Positions, wanted: str) -> None:
        self._reader = reader
        self._at = dict(positions)
        self._wanted = wanted
        self._lock = asyncio.Lock()
        self.newest: deque[FetchedRecord] = deque(maxlen=KEPT_MAX)
        """That were looked for, the newest last."""
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
            before = self.seen
            chunks = await self._reader.fetch(self._at, max_wait_ms=WAIT_MS)
            for key, chunk in sorted(chunks.items()):
                self._at[key] = chunk.next_offset
                self.seen += len(chunk.records)
                wanted = [it for it in chunk.records if is_match(it, self._wanted)]
                self.found += len(wanted)
                self.newest.extend(wanted)
        return self.seen > before

    async def close(self) -> None:
        """End its connections."""
        await self._reader.close()


class Tails:
    """Those of all pages, by a name that a page makes up. Lives on the page's event loop."""

    def __init__(self, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._tails: dict[str, Tail] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def of(
        self,
        name: str,
        open_reader: Callable[[], RecordReader],
        begin: Callable[[RecordReader], Awaitable[Positions]],
        wanted: str,
    ) -> Tail:
        """The page's own; begun where it has none.

        Raises:
            ValueError: too many follow at once.
            KafkaPortError: it cannot be begun.
        """
        tail = self._tails.get(name)
        if tail is None:
            if len(self._tails) >= TAILS_MAX:
                raise ValueError(f"{TAILS_MAX} pages follow topics already; stop one of them")
            reader = open_reader()
            try:
                tail = Tail(reader, await begin(reader), wanted)
            except BaseException:
                await reader.close()
                raise
            self._tails[name] = tail
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
