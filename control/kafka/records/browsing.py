"""Merges the partitions of a topic in order of time: the first records, or the last.

A merge is settled when no partition can still have an earlier record (backwards: a later one): the
next record of each is known, or there is none. Within a partition the order is that of offsets.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from heapq import merge as merge_sorted
from operator import attrgetter
from typing import Final

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.errors import KafkaPortError
from control.kafka.ports import OffsetSpec
from control.kafka.records.decoding import FetchedBytes
from control.kafka.records.fetching import (
    FETCH_WAIT_MS,
    PARTITION_BYTES_MAX,
    Answers,
    Fetcher,
    is_offset_out_of_range,
)
from control.kafka.records.merge_sources import BackwardSource, Source
from control.kafka.records.opening import beside, open_all
from control.kafka.records.record import FetchedRecord, Gap, Isolation, Item, Unread
from control.kafka.records.scan_progress import NOTHING_SCANNED, Progress, Scan
from control.model.ids import TopicPartition

READ_RECORDS_MAX: Final = 20_000
READ_BYTES_MAX: Final = 128 << 20
GAPS_TOLD_MAX: Final = 100
STALLED_S: Final = 10.0
"""A partition that gives nothing for so long, though it should, is left out."""
SILENT_S: Final = 2.0
"""A leader that answers with nothing for so long, though there should be records, is asked for
those behind them."""
_STALLED_PAUSE_S: Final = 0.05
_TOGETHER_BYTES: Final = 32 << 20
_PARTITION_BYTES_MIN: Final = 64 << 10
_TURN_ITEMS: Final = 2_000
"""Taken between two turns of the event loop."""

Rest = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far one request reads; what is beyond is told, and read on request."""

    records: int = READ_RECORDS_MAX
    bytes: int = READ_BYTES_MAX


@dataclass(slots=True)
class Skipped:
    """Counts what could not be read, and keeps the first gaps."""

    gaps: list[Gap] = field(default_factory=list)
    gap_count: int = 0
    record_count: int = 0
    unread: list[Unread] = field(default_factory=list)

    def add(self, gap: Gap) -> None:
        """Count one; the first ones are kept."""
        self.record_count += gap.count
        before = self.gaps[-1] if self.gaps else None
        if before is not None and _continues(before, gap):
            self.gaps[-1] = replace(before, last_offset=gap.last_offset)
            return
        self.gap_count += 1
        if len(self.gaps) < GAPS_TOLD_MAX:
            self.gaps.append(gap)


def _continues(before: Gap, gap: Gap) -> bool:
    """Whether it is one gap, over which reading leapt several times."""
    place = (before.topic, before.partition, before.last_offset + 1, before.reason)
    is_uncounted = before.records is None and gap.records is None
    return is_uncounted and place == (gap.topic, gap.partition, gap.first_offset, gap.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Browsed:
    """Records in order of time, oldest first; within a partition in order of offsets.

    `read_count` records were looked at, `read_bytes` fetched. `rest` is where each partition that
    was not read to its end goes on (backwards: before which offset); empty: all was read, but for
    `behind_count` offsets: those behind the first record at or after the time that ends a search.
    `since_ms` is the time that was asked for, where one was. `progress` counts what earlier reads
    have scanned, too, where this one goes on from them. Of `unjudged_count` records the filters
    could not say whether they pass; `unjudged_reason` is why, of the first. `outside_words` says
    which logs do not have the offset where it was to begin.
    """

    records: tuple[FetchedRecord, ...]
    read_count: int
    read_bytes: int
    skipped: Skipped
    rest: Rest
    is_backward: bool
    since_ms: int | None = None
    behind_count: int = 0
    progress: Progress = NOTHING_SCANNED
    was_stopped: bool = False
    unjudged_count: int = 0
    unjudged_reason: str = ""
    outside_words: str = ""


class Merge:
    """Items of several sources, in order; not for use by two at once."""

    def __init__(
        self,
        admin: KafkaAdmin,
        fetcher: Fetcher,
        sources: Sequence[Source],
        scan: Scan | None = None,
    ) -> None:
        self._scan = scan or Scan()
        self._scan.begin(sources)
        self._admin = admin
        self._fetcher = fetcher
        self._sources = sources
        self._sign = -1 if any(isinstance(it, BackwardSource) for it in sources) else 1
        self._progress_s = dict.fromkeys((it.partition for it in sources), time.monotonic())
        self._reasons: dict[TopicPartition, str] = {}
        self._heap: list[tuple[int, int, int, int]] = []
        self._hungry: set[int] = set(range(len(sources)))
        self.unread: list[Unread] = []
        """Partitions that were given up."""

    @property
    def read_bytes(self) -> int:
        """Fetched so far."""
        return sum(source.read_bytes for source in self._sources)

    async def items(self) -> AsyncIterator[Item]:
        """All of them, gaps as soon as they are met, until the scan is stopped or at its limit."""
        turn = 0
        while self._scan.records_left:
            async for gap in self._settle():
                yield gap
            if self._scan.is_stopped or not self._heap:
                return
            *_, slot = heappop(self._heap)
            item = self._sources[slot].pop_within(self._scan.records_left)
            self._scan.count(item)
            self._hungry.add(slot)
            turn += 1
            if turn % _TURN_ITEMS == 0:
                await asyncio.sleep(0)
            yield item

    async def _settle(self) -> AsyncIterator[Gap]:
        """Until the next item of every source is known."""
        while self._hungry and not self._scan.is_stopped:
            waiting: list[Source] = []
            for slot in sorted(self._hungry):
                source = self._sources[slot]
                while source.items and isinstance(source.head(), Gap):
                    gap = source.pop()
                    assert isinstance(gap, Gap)
                    yield gap
                if source.items:
                    self._push(slot, source.head())
                elif source.is_at_end:
                    self._hungry.discard(slot)
                else:
                    waiting.append(source)
            if waiting:
                await self._feed(waiting)

    def _push(self, slot: int, head: Item) -> None:
        assert not isinstance(head, Gap)
        self._hungry.discard(slot)
        key = self._sources[slot].partition
        sign = self._sign
        place = (sign * head.timestamp_ms, sign * key.partition, sign * head.offset, slot)
        heappush(self._heap, place)

    async def _feed(self, waiting: Sequence[Source]) -> None:
        opened = [source for source in waiting if source.has_more_open]
        fetched: list[tuple[Source, FetchedBytes]] = []
        for isolation in Isolation:
            asked = [s for s in waiting if not s.has_more_open and s.isolation is isolation]
            if asked:
                answers = await self._scan.unless_stopped(self._fetch(asked, isolation))
                fetched += await self._usable(asked, answers or {})
        await beside(open_all, opened, fetched, self._scan)
        now_s = time.monotonic()
        taken = {source.partition for source, _ in fetched if not source.is_stalled}
        self._progress_s |= dict.fromkeys((*taken, *(it.partition for it in opened)), now_s)
        answered = {source.partition for source, _ in fetched}
        for source in waiting:
            waited_s = now_s - self._progress_s[source.partition]
            if source.partition in answered and waited_s > SILENT_S:
                source.leap("its leader gives nothing there")
            elif waited_s > STALLED_S:
                self._give_up(source, self._reasons.get(source.partition, "it has no leader"))
        if not taken and not opened and not self._scan.is_stopped:
            await asyncio.sleep(_STALLED_PAUSE_S)

    async def _fetch(self, asked: Sequence[Source], isolation: Isolation) -> Answers:
        # Who waited longest is asked first: only the first is sure to get a whole batch.
        in_turn = sorted(asked, key=lambda source: self._progress_s[source.partition])
        share = max(_TOGETHER_BYTES // len(asked), _PARTITION_BYTES_MIN)
        wanted = max(source.partition_bytes for source in asked)
        most = min(share, PARTITION_BYTES_MAX) if wanted == PARTITION_BYTES_MAX else wanted
        positions = {source.partition: source.position for source in in_turn}
        try:
            return await self._fetcher.fetch(
                positions,
                max_wait_ms=FETCH_WAIT_MS,
                isolation=isolation,
                partition_bytes=most,
            )
        except KafkaPortError as error:
            return dict.fromkeys(positions, error)

    async def _usable(
        self, asked: Sequence[Source], answers: Answers
    ) -> list[tuple[Source, FetchedBytes]]:
        usable = []
        for source in asked:
            answer = answers.get(source.partition)
            if isinstance(answer, FetchedBytes):
                usable.append((source, answer))
            elif answer is not None and is_offset_out_of_range(answer):
                await self._skip_deleted(source)
            elif answer is not None:
                self._reasons[source.partition] = str(answer)
                self._fetcher.forget_leader(source.partition)
        return usable

    async def _skip_deleted(self, source: Source) -> None:
        """Retention was faster, or the log ends earlier than it did."""
        try:
            found = await self._admin.offsets.list_offsets([source.partition], OffsetSpec.EARLIEST)
        except KafkaPortError as error:
            self._reasons[source.partition] = str(error)
            return
        first = found[source.partition].offset
        if first > source.position:
            source.skip_to(first, "deleted before it could be read")
            self._progress_s[source.partition] = time.monotonic()
        else:
            self._give_up(source, "its log ends earlier than when reading began")

    def _give_up(self, source: Source, reason: str) -> None:
        source.give_up(reason)
        self.unread.append(Unread(partition=source.partition, reason=reason))


def _in_order(records: Iterable[FetchedRecord]) -> tuple[FetchedRecord, ...]:
    """By time, as far as the order of offsets within each partition lets."""
    rows: dict[int, list[FetchedRecord]] = {}
    for record in records:
        rows.setdefault(record.partition, []).append(record)
    ordered = [rows[number] for number in sorted(rows)]
    return tuple(merge_sorted(*ordered, key=attrgetter("timestamp_ms")))


async def collect(
    merge: Merge, sources: Sequence[Source], *, limit: int, bounds: Bounds, scan: Scan
) -> Browsed:
    """The first `limit` records that are looked for, within the bounds."""
    records: list[FetchedRecord] = []
    scan.records = records
    skipped = Skipped()
    is_backward = any(isinstance(source, BackwardSource) for source in sources)
    scan.records_max = bounds.records
    if limit > 0:
        async for item in merge.items():
            if isinstance(item, Gap):
                skipped.add(item)
                continue
            if isinstance(item, FetchedRecord):
                records.append(item)
            if merge.read_bytes >= bounds.bytes or len(records) >= limit:
                break
    skipped.unread += merge.unread
    rest = {
        source.partition: source.rest
        for source in sources
        if source.unread is None and (source.items or not source.is_at_end)
    }
    return Browsed(
        records=_in_order(reversed(records) if is_backward else records),
        read_count=scan.record_count,
        read_bytes=merge.read_bytes,
        skipped=skipped,
        rest=rest,
        is_backward=is_backward,
        progress=scan.progress,
        was_stopped=scan.is_stopped and bool(rest),
    )
