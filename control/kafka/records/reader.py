"""Browse and follow records: Fetch by partition, from an offset, a time or an end.

No consumer group: reading leaves no trace. Each record carries what its batch says (codec, CRC,
format, who produced it), so that one message can be shown down to its bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.connections import settings_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError
from control.kafka.records.browsing import Bounds, Browsed, Merge, Rest, collect
from control.kafka.records.decoding import FetchedBytes
from control.kafka.records.fetching import (
    BATCH_BYTES_MAX,
    FETCH_WAIT_MS,
    PARTITION_BYTES_MAX,
    Fetcher,
    is_offset_out_of_range,
)
from control.kafka.records.log_bounds import LogExtent, LogExtents
from control.kafka.records.masks import mask_of
from control.kafka.records.merge_sources import BackwardSource, ForwardSource, Source
from control.kafka.records.record import (
    KEPT_BYTES,
    FetchedRecord,
    Isolation,
    Mask,
    Matches,
    Matching,
    MayMatch,
    Transaction,
    Unread,
)
from control.kafka.records.scan_progress import Scan
from control.model.ids import TopicPartition

__all__ = [
    "Bounds",
    "Browsed",
    "FetchedRecord",
    "Looking",
    "PartitionChunk",
    "RecordReader",
    "Start",
    "StartKind",
    "is_offset_out_of_range",
]
_ALL: Final = 1 << 62
BEHIND_MAX: Final = 100_000
"""So many offsets behind the first record at or after an end in time are read for earlier ones."""


class StartKind(StrEnum):
    """Where reading begins."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    LAST = "last"
    """The newest `value` records of all partitions together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A place to begin; `value` is an offset, a time in ms or a number of records."""

    kind: StartKind
    value: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChunk:
    """Records that one fetch of one partition gave."""

    records: tuple[FetchedRecord, ...]
    next_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """The wanted records, and how much of each is kept; None: all of it.

    `may_match` tells of a whole batch, before it is opened, whether it may hold what is looked for.
    `read_committed` ends before the first open transaction, and leaves out aborted ones.
    """

    matches: Matches | None = None
    matching: Matching | None = None
    may_match: MayMatch | None = None
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    kept_bytes: int | None = KEPT_BYTES

    @property
    def accepts(self) -> Matches | None:
        """The test that a record must pass to be shown."""
        return self._is_match if self.is_committed else self.matches

    @property
    def is_choosy(self) -> bool:
        """Whether some records may be left out."""
        return self.accepts is not None or self.matching is not None

    @property
    def is_committed(self) -> bool:
        """Whether only records of committed transactions are read."""
        return self.isolation is Isolation.READ_COMMITTED

    def _is_match(self, record: FetchedRecord) -> bool:
        if record.transaction is Transaction.ABORTED:
            return False
        return self.matches is None or self.matches(record)

    def end_of(self, extent: LogExtent) -> int:
        """Where reading a log ends."""
        return extent.stable if self.is_committed else extent.end


EVERYTHING: Final = Looking()


def raise_unread(unread: Iterable[Unread]) -> None:
    """Where all partitions must be read.

    :raises KafkaPortError: one cannot be.
    """
    for each in unread:
        raise KafkaPortError(
            f"{each.partition} cannot be read",
            reason=each.reason,
            next_step="leave this partition out, or wait until it has a leader",
        )


class RecordReader:
    """Reads with connections of its own, since a waiting fetch holds up its connection.

    Use as an async context manager.
    """

    def __init__(self, settings: KafkaSettings | str, *, is_masked: bool = True) -> None:
        """Masking rules hold, unless it reads for nobody's eyes."""
        self._admin = KafkaAdmin.to(settings)
        self._settings = settings_of(settings)
        self._is_masked = is_masked
        self._fetcher = Fetcher(self._admin)
        self._extents = LogExtents(self._admin)

    @property
    def admin(self) -> KafkaAdmin:
        """For questions beside reading."""
        return self._admin

    def mask(self, topic: str) -> Mask | None:
        """Takes out of a topic's records what is masked for who acts now; None: nothing is."""
        return mask_of(self._settings, topic) if self._is_masked else None

    @property
    def extents(self) -> LogExtents:
        """Where logs begin and end."""
        return self._extents

    @property
    def fetcher(self) -> Fetcher:
        """For fetches from one broker."""
        return self._fetcher

    async def __aenter__(self) -> RecordReader:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._admin.close()

    async def partitions(self, topic: str) -> tuple[TopicPartition, ...]:
        """All partitions of a topic.

        :raises RefusedError: there is no such topic.
        """
        (metadata,) = await self._admin.topics([topic])
        return tuple(partition.key for partition in metadata.partitions)

    async def positions(
        self, partitions: Iterable[TopicPartition], start: Start
    ) -> dict[TopicPartition, int]:
        """The first offset to read in each partition, inside its log.

        :raises KafkaPortError: one of them cannot be read.
        """
        wanted = sorted(set(partitions))
        found, unread = await self.starts(await self._extents.strict(wanted), start)
        raise_unread(unread)
        return found

    async def browse(
        self,
        partitions: Iterable[TopicPartition],
        start: Start,
        *,
        limit: int,
        looking: Looking = EVERYTHING,
        bounds: Bounds | None = None,
        scan: Scan | None = None,
        until_ms: int | None = None,
    ) -> Browsed:
        """At most `limit` records that are there now and looked for, in order of time.

        From `StartKind.LAST` the newest `value` of them, else the first from the start on. A
        partition that cannot be read is named in the answer; the others are read. Where nothing
        from `until_ms` on is looked for, the newest of long logs are sought before that time.

        :raises KafkaPortError: none of them can be read.
        """
        keys = sorted(set(partitions))
        extents, unread = await self._extents.tolerant(keys)
        behind_count = 0
        if start.kind is StartKind.LAST:
            at, behind_count = await self._ends(extents, until_ms)
            limit = min(limit, start.value)
        else:
            at, without_start = await self.starts(extents, start)
            unread += without_start
        is_backward = start.kind is StartKind.LAST
        sources = _sources(self, extents, at, looking, is_backward=is_backward)
        found = await self._read(sources, limit, bounds, scan or Scan())
        found.skipped.unread[:0] = unread
        since_ms = start.value if start.kind is StartKind.TIMESTAMP else None
        return replace(found, since_ms=since_ms, behind_count=behind_count)

    async def go_on(
        self,
        browsed_rest: Rest,
        *,
        is_backward: bool,
        limit: int,
        looking: Looking = EVERYTHING,
        bounds: Bounds | None = None,
        scan: Scan | None = None,
    ) -> Browsed:
        """Further from where ``browse`` stopped, in its direction.

        :raises KafkaPortError: none of the partitions can be read.
        """
        extents, unread = await self._extents.tolerant(sorted(browsed_rest))
        at = {key: browsed_rest[key] for key in extents}
        sources = _sources(self, extents, at, looking, is_backward=is_backward)
        found = await self._read(sources, limit, bounds, scan or Scan())
        found.skipped.unread[:0] = unread
        return found

    async def read_through(
        self, partition: TopicPartition, start: Start
    ) -> AsyncIterator[FetchedRecord]:
        """Every record of one partition that is there now, in order, a fetch at a time."""
        at = (await self.positions([partition], start))[partition]
        end = (await self.positions([partition], Start(kind=StartKind.LATEST)))[partition]
        while at < end:
            chunks = await self.fetch({partition: at}, max_wait_ms=FETCH_WAIT_MS)
            for chunk in chunks.values():
                at = chunk.next_offset
                for record in chunk.records:
                    yield record

    async def follow(self, positions: Mapping[TopicPartition, int]) -> AsyncIterator[FetchedRecord]:
        """Every record from the positions on, for ever, as they become visible; ends with an error
        where one of them cannot be read (``TopicFollower`` goes on)."""
        at = dict(positions)
        while True:
            chunks = await self.fetch(at, max_wait_ms=FETCH_WAIT_MS)
            for key, chunk in sorted(chunks.items()):
                at[key] = chunk.next_offset
                for record in chunk.records:
                    yield record

    async def fetch(
        self, positions: Mapping[TopicPartition, int], *, max_wait_ms: int
    ) -> dict[TopicPartition, PartitionChunk]:
        """One fetch from every leader concerned; a partition whose leader moved gives nothing, and
        what cannot be read is passed over.

        :raises KafkaPortError: OFFSET_OUT_OF_RANGE, an unknown topic, no right to read.
        """
        answers = await self._fetcher.fetch(positions, max_wait_ms=max_wait_ms)
        if len(answers) < len(positions):
            await asyncio.sleep(0.1)
        chunks: dict[TopicPartition, PartitionChunk] = {}
        for key, answer in answers.items():
            if not isinstance(answer, FetchedBytes):
                raise answer
            chunks[key] = await self._chunk(key, positions[key], answer)
        return chunks

    async def _chunk(self, key: TopicPartition, at: int, fetched: FetchedBytes) -> PartitionChunk:
        source = ForwardSource(key, first=at, end=_ALL, stable=0, mask=self.mask(key.topic))
        source.handle_fetched(fetched)
        if 0 < source.partition_bytes - PARTITION_BYTES_MAX <= BATCH_BYTES_MAX:
            answers = await self._fetcher.fetch(
                {key: at}, max_wait_ms=FETCH_WAIT_MS, partition_bytes=source.partition_bytes
            )
            if isinstance(answer := answers.get(key), FetchedBytes):
                source.handle_fetched(answer)
        while source.has_more_open:
            source.open_more()
        return PartitionChunk(
            records=tuple(item for item in source.items if isinstance(item, FetchedRecord)),
            next_offset=source.position,
            high_watermark=fetched.end_offset,
        )

    async def starts(
        self,
        extents: Mapping[TopicPartition, LogExtent],
        start: Start,
        looking: Looking = EVERYTHING,
    ) -> tuple[dict[TopicPartition, int], list[Unread]]:
        """Where to begin within what there is, and which partitions do not tell."""
        unread: list[Unread] = []
        asked: Mapping[TopicPartition, int]
        match start.kind:
            case StartKind.LAST:
                return await self._last_positions(extents, start.value, looking)
            case StartKind.EARLIEST:
                asked = {key: extent.first for key, extent in extents.items()}
            case StartKind.OFFSET:
                asked = dict.fromkeys(extents, start.value)
            case StartKind.TIMESTAMP:
                found, unread = await self._extents.list_offsets(extents, start.value)
                asked = {
                    key: at.offset if at.offset >= 0 else extents[key].end
                    for key, at in found.items()
                }
            case _:
                asked = {key: looking.end_of(extent) for key, extent in extents.items()}
        places = {
            key: min(max(at, extents[key].first), extents[key].end) for key, at in asked.items()
        }
        return places, unread

    async def _last_positions(
        self, extents: Mapping[TopicPartition, LogExtent], count: int, looking: Looking
    ) -> tuple[dict[TopicPartition, int], list[Unread]]:
        """Where the newest `count` records of all partitions together begin: those that its
        isolation lets be seen."""
        at = {key: looking.end_of(extent) for key, extent in extents.items()}
        if not count:
            return at, []
        seen = Looking(isolation=looking.isolation, kept_bytes=0)
        sources = _sources(self, extents, at, seen, is_backward=True)
        found = await self._read(sources, count, Bounds(records=_ALL, bytes=_ALL), Scan())
        unread = found.skipped.unread
        missing = {each.partition for each in unread}
        places = {
            key: found.rest.get(key, extents[key].first) for key in extents if key not in missing
        }
        return places, unread

    def merge(self, sources: Sequence[Source], scan: Scan | None = None) -> Merge:
        """Several partitions in order of time."""
        return Merge(self._admin, self._fetcher, sources, scan)

    async def _ends(
        self, extents: Mapping[TopicPartition, LogExtent], until_ms: int | None
    ) -> tuple[dict[TopicPartition, int], int]:
        """Where reading back begins, and how many offsets that leaves out: none, unless very many
        are behind the first record at or after that time."""
        ends = {key: extent.end for key, extent in extents.items()}
        if until_ms is None or not extents:
            return ends, 0
        found, _ = await self._extents.list_offsets(extents, until_ms)
        first = {key: min(at.offset, ends[key]) for key, at in found.items() if at.offset >= 0}
        behind_count = sum(ends[key] - at for key, at in first.items())
        return (ends, 0) if behind_count <= BEHIND_MAX else (ends | first, behind_count)

    async def _read(
        self, sources: Sequence[Source], limit: int, bounds: Bounds | None, scan: Scan
    ) -> Browsed:
        merge = self.merge(sources, scan)
        return await collect(merge, sources, limit=limit, bounds=bounds or Bounds(), scan=scan)


def _sources(
    reader: RecordReader,
    extents: Mapping[TopicPartition, LogExtent],
    at: Mapping[TopicPartition, int],
    looking: Looking,
    *,
    is_backward: bool,
) -> list[Source]:
    """A source for each partition, that reads from its offset on, or back from it."""
    direction: type[Source] = BackwardSource if is_backward else ForwardSource
    is_seen = looking.is_choosy or looking.kept_bytes != 0
    masks = {topic: reader.mask(topic) if is_seen else None for topic in {it.topic for it in at}}
    sources = []
    for key, offset in sorted(at.items()):
        extent = extents[key]
        end = looking.end_of(extent)
        if is_backward:
            end = min(end, offset)
        sources.append(
            direction(
                key,
                first=extent.first if is_backward else offset,
                end=end,
                stable=extent.stable,
                matches=looking.accepts,
                matching=looking.matching,
                may_match=looking.may_match,
                kept_bytes=looking.kept_bytes,
                mask=masks[key.topic],
            )
        )
    return sources
