"""Follows a topic for ever: what fails is told, and reading goes on.

A leader that dies, an election, a partition without a leader, a broker that hangs: the others go
on, and the partition is read again when it can be. Retention that was faster, a log that was cut
back, a topic created anew and partitions added later are told as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from kio.schema.errors import ErrorCode

from control.kafka.connection.connections import settings_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError, RefusedError
from control.kafka.ports import OffsetSpec, TopicMetadata
from control.kafka.records.decoding import FetchedBytes
from control.kafka.records.fetching import (
    FETCH_WAIT_MS,
    Answers,
    Fetcher,
    Positions,
    is_offset_out_of_range,
)
from control.kafka.records.log_bounds import LogExtent
from control.kafka.records.merge_sources import ForwardSource
from control.kafka.records.opening import beside, open_all
from control.kafka.records.reader import EVERYTHING, Looking, RecordReader, Start, StartKind
from control.kafka.records.record import FetchedRecord, Gap, Isolation, Passed
from control.kafka.records.scan_progress import Scan
from control.model.ids import TopicPartition
from control.model.units import counted

REFRESH_S: Final = 5.0
"""Between two looks at the topic's leaders and partitions."""
_TROUBLED_REFRESH_S: Final = 0.3
_RETRY_S: Final = 0.5
_REQUEST_TIMEOUT_MS: Final = 10_000
_FOR_EVER: Final = 1 << 62
_NAMED_MAX: Final = 8
_FATAL: Final = frozenset(
    {ErrorCode.topic_authorization_failed, ErrorCode.cluster_authorization_failed}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A message of a follower; `is_trouble` while something cannot be read."""

    text: str
    is_trouble: bool


Followed = FetchedRecord | Gap | Notice | Passed


class _Asked(NamedTuple):
    """Which broker is asked for what; one request at a time each."""

    leader: int
    isolation: Isolation


class TopicFollower:
    """Reads a topic, or some partitions of it, from a start on. Use as an async context manager.

    Records that are not looked for come as ``Passed``, so that they can be counted.
    """

    def __init__(
        self,
        settings: KafkaSettings | str,
        topic: str,
        *,
        partitions: Collection[int] | None = None,
        looking: Looking = EVERYTHING,
        scan: Scan | None = None,
    ) -> None:
        """`scan` counts what is read; it may limit it, and be looked at meanwhile."""
        told = settings_of(settings)
        timeout_ms = min(told.request_timeout_ms, _REQUEST_TIMEOUT_MS)
        self._reader = RecordReader(replace(told, request_timeout_ms=timeout_ms, attempts_max=2))
        self._topic = topic
        self._partitions = partitions
        self._looking = looking
        self._scan = scan or Scan()
        self._start = Start(kind=StartKind.LATEST)
        self._sources: dict[TopicPartition, ForwardSource] = {}
        self._backlog: list[ForwardSource] = []
        self._requests = _Requests(self._reader.fetcher)
        self._troubles = _Troubles()
        self._topic_id: object = None
        self._refreshed_s = time.monotonic()
        self._retry_s: dict[TopicPartition, float] = {}

    async def __aenter__(self) -> TopicFollower:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the requests and the connections."""
        await self._requests.close()
        await self._reader.close()

    async def begin(self, start: Start) -> None:
        """Find the place to begin; must be called first. Partitions that do not tell are told as
        notices, and read from their end (or the start that is asked for) when they can be.

        :raises RefusedError: there is no such topic or partition.
        :raises KafkaPortError: none of the partitions can be read.
        """
        (metadata,) = await self._reader.admin.topics([self._topic])
        self._topic_id = metadata.topic_id
        self._start = start
        keys = self._wanted(metadata)
        if not keys:
            what = f"partitions {sorted(self._partitions or ())} of {self._topic}"
            raise RefusedError(ErrorCode.unknown_topic_or_partition, what=what)
        await self._place(keys)

    async def items(self) -> AsyncIterator[Followed]:
        """Records that are there, in order of time, then those that come, until so many are
        scanned as the scan lets, else for ever."""
        async for item in self.backlog():
            yield item
        while self._scan.records_left:
            for item in await self.poll(FETCH_WAIT_MS):
                yield item

    async def backlog(self, *, is_all: bool = False) -> AsyncIterator[Followed]:
        """Gives the records that were there at the beginning, in order of time; ``poll`` goes on
        behind them.

        Partitions that cannot be read to their end are told as notices; with ``is_all`` nothing
        is read after this, so they are not waited for.
        """
        for notice in self._troubles.notices(is_waiting=not is_all):
            yield notice
        sources, self._backlog = self._backlog, []
        merge = self._reader.merge(sources, self._scan)
        try:
            async for item in merge.items():
                yield item
        finally:
            for source in sources:
                self._sources[source.partition].move_to(source.rest)
        self._troubles.update({each.partition: each.reason for each in merge.unread})
        for notice in self._troubles.notices(is_waiting=not is_all):
            yield notice

    async def poll(self, wait_ms: int) -> list[Followed]:
        """New records, in bounded parts; none if nothing came within `wait_ms`.

        :raises RefusedError: the right to read was taken away.
        """
        opened = [source for source in self._sources.values() if source.has_more_open]
        if opened:
            await beside(open_all, opened, (), Scan())
            return _taken(opened, self._scan)
        found: list[Followed] = []
        await self._maybe_refresh()
        now_s = time.monotonic()
        self._requests.send(
            source for key, source in self._sources.items() if self._retry_s.get(key, 0.0) <= now_s
        )
        for positions, answers in await self._requests.answered(wait_ms / 1000):
            found += await self._handle_answers(positions, answers)
        return [*self._troubles.notices(), *found]

    def _wanted(self, metadata: TopicMetadata) -> list[TopicPartition]:
        wanted = self._partitions
        keys = [each.key for each in metadata.partitions]
        return [key for key in keys if wanted is None or key.partition in wanted]

    async def _place(self, keys: Iterable[TopicPartition]) -> None:
        """Sources for partitions that have none yet, as far as they tell where they begin."""
        extents, unread = await self._reader.extents.tolerant(keys)
        places, no_start = await self._reader.starts(extents, self._start, self._looking)
        held: dict[TopicPartition, LogExtent] = {}
        for key, at in places.items():
            extent = extents[key]
            self._sources[key] = self._source(key, at, stable=extent.stable)
            end = self._looking.end_of(extent)
            if at < end:
                self._backlog.append(self._source(key, at, stable=extent.stable, end=end))
            if end < extent.end:
                held[key] = extent
        if held:
            self._troubles.add_notice(_held_words(held))
        self._troubles.update({each.partition: each.reason for each in (*unread, *no_start)})

    def _source(
        self, key: TopicPartition, at: int, *, stable: int = 0, end: int = _FOR_EVER
    ) -> ForwardSource:
        return ForwardSource(
            key,
            first=at,
            end=end,
            stable=_FOR_EVER if self._looking.is_committed else stable,
            matches=self._looking.accepts,
            matching=self._looking.matching,
            may_match=self._looking.may_match,
            kept_bytes=self._looking.kept_bytes,
            mask=self._reader.mask(self._topic),
        )

    async def _maybe_refresh(self) -> None:
        """Look where the leaders are, and whether there are new partitions."""
        now_s = time.monotonic()
        is_troubled = bool(self._troubles) or self._has_unled()
        if now_s - self._refreshed_s < (_TROUBLED_REFRESH_S if is_troubled else REFRESH_S):
            return
        self._refreshed_s = now_s
        try:
            (metadata,) = await self._reader.admin.topics([self._topic])
        except RefusedError as error:
            if error.code is not ErrorCode.unknown_topic_or_partition:
                raise
            self._troubles.update(dict.fromkeys(self._sources, "the topic was deleted"))
            return
        except KafkaPortError as error:
            self._troubles.update(dict.fromkeys(self._sources, str(error)))
            return
        await self._handle_metadata(metadata)

    def _has_unled(self) -> bool:
        led = self._reader.fetcher.by_leader(dict.fromkeys(self._sources, 0))
        return sum(map(len, led.values())) < len(self._sources)

    async def _handle_metadata(self, metadata: TopicMetadata) -> None:
        known, self._topic_id = self._topic_id, metadata.topic_id or self._topic_id
        if known not in (None, self._topic_id):  # brokers before Kafka 2.8 tell no id
            self._start_anew(self._wanted(metadata))
        leaders = {each.key: each.leader for each in metadata.partitions}
        wanted = self._wanted(metadata)
        self._requests.cancel_moved(leaders)
        self._reader.fetcher.set_leaders(leaders)
        without = [key for key in wanted if leaders[key] < 0]
        self._troubles.update(dict.fromkeys(without, "it has no leader"))
        new = [key for key in wanted if key not in self._sources]
        if new:
            await self._add([key for key in new if leaders[key] >= 0])

    def _start_anew(self, keys: Iterable[TopicPartition]) -> None:
        self._requests.cancel_moved({})
        self._sources = {key: self._source(key, 0) for key in keys}
        words = "was deleted and created anew: read from its start"
        self._troubles.add_notice(f"{self._topic} {words}")

    async def _add(self, keys: Sequence[TopicPartition]) -> None:
        """Partitions that are new are read from their start; those that did not tell before, from
        the place that was asked for."""
        late = [key for key in keys if key in self._troubles]
        for key in keys:
            if key not in self._troubles:
                self._sources[key] = self._source(key, 0)
                self._troubles.add_notice(f"{key} is new: read from its start")
        if late:
            if self._start.kind is StartKind.LAST:
                self._start = Start(kind=StartKind.LATEST)
            with suppress(KafkaPortError):
                await self._place(late)
                self._backlog.clear()
                self._troubles.remove(key for key in late if key in self._sources)

    async def _handle_answers(self, positions: Positions, answers: Answers) -> list[Followed]:
        fetched: list[tuple[ForwardSource, FetchedBytes]] = []
        for key in positions:
            answer = answers.get(key)
            if isinstance(answer, FetchedBytes):
                fetched.append((self._sources[key], answer))
                self._troubles.remove([key])
            elif answer is not None:
                await self._handle_error(key, answer)
        await beside(open_all, (), fetched, Scan())
        return _taken([source for source, _ in fetched], self._scan)

    async def _handle_error(self, key: TopicPartition, error: KafkaPortError) -> None:
        if isinstance(error, RefusedError) and error.code in _FATAL:
            raise error
        self._retry_s[key] = time.monotonic() + _RETRY_S
        if not is_offset_out_of_range(error):
            self._troubles.update({key: str(error)})
            return
        source = self._sources[key]
        list_offsets = self._reader.admin.offsets.list_offsets
        try:
            first = (await list_offsets([key], OffsetSpec.EARLIEST))[key].offset
            end = (await list_offsets([key], OffsetSpec.LATEST))[key].offset
        except KafkaPortError as refused:
            self._troubles.update({key: str(refused)})
            return
        if source.position < first:
            source.skip_to(first, "deleted before it could be read")
        elif source.position > end:
            words = f"its log was cut back from offset {source.position} to {end}"
            self._troubles.add_notice(f"{key}: {words}; reading goes on there")
            source.move_to(end)


def _taken(sources: Iterable[ForwardSource], scan: Scan) -> list[Followed]:
    """The items that the scan still lets."""
    found: list[Followed] = []
    for source in sources:
        while source.items and scan.records_left:
            item = source.pop_within(scan.records_left)
            scan.count(item)
            found.append(item)
    return found


class _Request(NamedTuple):
    """A fetch under way."""

    positions: Positions
    task: asyncio.Task[Answers]


class _Requests:
    """The fetches under way: a broker that hangs holds up nobody else."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._under_way: dict[_Asked, _Request] = {}

    async def close(self) -> None:
        """Cancel all of them."""
        tasks = [request.task for request in self._under_way.values()]
        self.cancel_moved({})
        await asyncio.gather(*tasks, return_exceptions=True)

    def send(self, sources: Iterable[ForwardSource]) -> None:
        """Ask the leaders of those that are not being asked for."""
        busy = {key for request in self._under_way.values() for key in request.positions}
        idle = {source.partition: source for source in sources if source.partition not in busy}
        positions = {key: source.position for key, source in idle.items()}
        for leader, some in self._fetcher.by_leader(positions).items():
            for isolation in Isolation:
                at = {key: it for key, it in some.items() if idle[key].isolation is isolation}
                asked = _Asked(leader, isolation)
                if at and asked not in self._under_way:
                    size = max(idle[key].partition_bytes for key in at)
                    self._under_way[asked] = _Request(at, self._fetch(asked, at, size))

    async def answered(self, wait_s: float) -> list[tuple[Positions, Answers]]:
        """Answers of the requests that ended first; none if nothing ended within `wait_s`."""
        tasks = {request.task: asked for asked, request in self._under_way.items()}
        if not tasks:
            await asyncio.sleep(min(wait_s, _TROUBLED_REFRESH_S))
            return []
        done, _ = await asyncio.wait(tasks, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        return [(self._under_way.pop(tasks[task]).positions, task.result()) for task in done]

    def cancel_moved(self, leaders: Mapping[TopicPartition, int]) -> None:
        """Cancels requests to brokers that have lost the leadership of one of their partitions."""
        for asked, request in list(self._under_way.items()):
            if any(leaders.get(key) != asked.leader for key in request.positions):
                request.task.cancel()
                del self._under_way[asked]

    def _fetch(self, asked: _Asked, at: Positions, partition_bytes: int) -> asyncio.Task[Answers]:
        return asyncio.create_task(
            self._fetcher.fetch_from(
                asked.leader,
                at,
                max_wait_ms=FETCH_WAIT_MS,
                isolation=asked.isolation,
                partition_bytes=partition_bytes,
            )
        )


class _Troubles:
    """Which partitions cannot be read now and why; each change is told once, in few words."""

    def __init__(self) -> None:
        self._reasons: dict[TopicPartition, str] = {}
        self._told: dict[TopicPartition, str] = {}
        self._words: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._reasons

    def add_notice(self, words: str) -> None:
        """Something that is told and over."""
        self._words.append(words)

    def update(self, reasons: Mapping[TopicPartition, str]) -> None:
        """These cannot be read."""
        self._reasons |= reasons

    def remove(self, keys: Iterable[TopicPartition]) -> None:
        """These are read again."""
        for key in keys:
            self._reasons.pop(key, None)

    def notices(self, *, is_waiting: bool = True) -> list[Notice]:
        """Changes since the last call; ``is_waiting`` says that partitions are tried again."""
        found = [Notice(text=words, is_trouble=False) for words in self._words]
        self._words.clear()
        by_reason: dict[str, list[TopicPartition]] = {}
        for key, reason in self._reasons.items():
            if key not in self._told:
                by_reason.setdefault(reason, []).append(key)
        for reason, keys in by_reason.items():
            said = f": {reason}; waiting" if is_waiting else f" not read to the end: {reason}"
            found.append(Notice(text=f"{_names(keys)}{said}", is_trouble=True))
        back = [key for key in self._told if key not in self._reasons]
        if back:
            found.append(Notice(text=f"{_names(back)}: read again", is_trouble=False))
        self._told = dict(self._reasons)
        return found


def _held_words(held: Mapping[TopicPartition, LogExtent]) -> str:
    offsets = ", ".join(str(held[key].stable) for key in sorted(held)[:_NAMED_MAX])
    hidden = counted(sum(it.end - it.stable for it in held.values()), "offset")
    words = f"a transaction is still open from offset {offsets} on"
    return f"{_names(sorted(held))}: {words}: {hidden} stay hidden until it ends"


def _names(keys: Sequence[TopicPartition]) -> str:
    numbers = sorted(key.partition for key in keys)
    shown = ", ".join(map(str, numbers[:_NAMED_MAX]))
    more = f" and {len(numbers) - _NAMED_MAX} more" if len(numbers) > _NAMED_MAX else ""
    return f"{keys[0].topic} partition{'s' if len(numbers) > 1 else ''} {shown}{more}"
