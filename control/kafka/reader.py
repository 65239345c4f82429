"""Browse and follow records: Fetch by partition, from an offset, a time or an end.

No consumer group: reading leaves no trace. Each record carries what its batch says (codec, CRC,
format, who produced it), so that one message can be shown down to its bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.protocol.records import (
    BatchHeader,
    batch_crc_is_valid,
    iter_batch_headers,
    iter_records,
)
from control.kafka import apis
from control.kafka.admin import KafkaAdmin
from control.kafka.errors import RefusedError, raise_if_refused
from control.kafka.ports import OffsetSpec
from control.kafka.settings import KafkaSettings
from control.model.ids import TopicPartition

FETCH_WAIT_MS: Final = 500
FETCH_BYTES_MAX: Final = 8 << 20
PARTITION_BYTES_MAX: Final = 1 << 20
_LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.leader_not_available,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.replica_not_available,
        ErrorCode.offset_not_available,
    }
)
CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")


class StartKind(StrEnum):
    """Where reading begins."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    LAST = "last"
    """`value` records before the end of each partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A place to begin; `value` is an offset, a time in ms or a number of records."""

    kind: StartKind
    value: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRecord:
    """A record and the batch it came in. `key` and `value` null is null, not empty."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    batch: BatchHeader
    crc_is_valid: bool

    @property
    def codec_name(self) -> str:
        """Compression of the batch."""
        return CODEC_NAMES[self.batch.codec]

    @property
    def size_bytes(self) -> int:
        """Key and value, without overhead."""
        return len(self.key or b"") + len(self.value or b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChunk:
    """What one fetch of one partition gave."""

    records: tuple[FetchedRecord, ...]
    next_offset: int
    high_watermark: int


class RecordReader:
    """Reads with connections of its own, since a waiting fetch holds up its connection.

    Use as an async context manager.
    """

    def __init__(self, settings: KafkaSettings | str) -> None:
        self._admin = KafkaAdmin.to(settings)
        self._leaders: dict[TopicPartition, int] = {}

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
        """The first offset to read in each partition, inside its log."""
        wanted = sorted(set(partitions))
        list_offsets = self._admin.offsets.list_offsets
        first, end = await asyncio.gather(
            list_offsets(wanted, OffsetSpec.EARLIEST), list_offsets(wanted, OffsetSpec.LATEST)
        )
        asked: Mapping[TopicPartition, int]
        match start.kind:
            case StartKind.EARLIEST:
                asked = {key: first[key].offset for key in wanted}
            case StartKind.LATEST:
                asked = {key: end[key].offset for key in wanted}
            case StartKind.OFFSET:
                asked = dict.fromkeys(wanted, start.value)
            case StartKind.LAST:
                asked = {key: end[key].offset - start.value for key in wanted}
            case StartKind.TIMESTAMP:
                found = await list_offsets(wanted, start.value)
                asked = {
                    key: at.offset if at.offset >= 0 else end[key].offset
                    for key, at in found.items()
                }
        return {key: min(max(asked[key], first[key].offset), end[key].offset) for key in wanted}

    async def browse(
        self, partitions: Iterable[TopicPartition], start: Start, *, limit: int
    ) -> list[FetchedRecord]:
        """At most `limit` records that are there now, in order of time."""
        keys = sorted(set(partitions))
        positions = await self.positions(keys, start)
        ends = await self._admin.offsets.list_offsets(keys)
        found: list[FetchedRecord] = []
        left = {key: at for key, at in positions.items() if at < ends[key].offset}
        while left and len(found) < limit:
            chunks = await self.fetch(left, max_wait_ms=FETCH_WAIT_MS)
            for key, chunk in chunks.items():
                found += chunk.records
                left[key] = chunk.next_offset
            left = {key: at for key, at in left.items() if at < ends[key].offset}
        found.sort(key=lambda record: (record.timestamp_ms, record.partition, record.offset))
        return found[:limit]

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
        """Every record from the positions on, for ever, as they become visible."""
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
        """One fetch from every leader concerned; a partition whose leader moved gives nothing.

        :raises RefusedError: OFFSET_OUT_OF_RANGE, an unknown topic, no right to read.
        """
        missing = [key for key in positions if key not in self._leaders]
        if missing:
            self._leaders |= await self._admin.offsets.leaders(missing)
        by_leader: dict[int, list[TopicPartition]] = {}
        for key in sorted(positions):
            by_leader.setdefault(self._leaders[key], []).append(key)
        answers = await asyncio.gather(
            *(
                self._fetch_from(leader, {key: positions[key] for key in keys}, max_wait_ms)
                for leader, keys in by_leader.items()
            )
        )
        return {key: chunk for answer in answers for key, chunk in answer.items()}

    async def _fetch_from(
        self, leader: int, positions: Mapping[TopicPartition, int], max_wait_ms: int
    ) -> dict[TopicPartition, PartitionChunk]:
        fields = _fetch_fields(positions, max_wait_ms)
        answer = await self._admin.wire.send(apis.FETCH, fields, node_id=leader)
        whole_error = getattr(answer.message, "error_code", ErrorCode.none)
        raise_if_refused(whole_error, what=f"reading from broker {leader}")
        chunks: dict[TopicPartition, PartitionChunk] = {}
        for topic in answer.message.responses:
            for partition in topic.partitions:
                key = TopicPartition(topic.topic, partition.partition_index)
                if partition.error_code in _LEADER_MOVED:
                    self._leaders.pop(key, None)
                    await asyncio.sleep(0.1)
                    continue
                raise_if_refused(partition.error_code, what=f"reading {key}")
                chunks[key] = _chunk_of(key, positions[key], partition)
        return chunks


def is_offset_out_of_range(error: RefusedError) -> bool:
    """Whether the log no longer (or not yet) holds the offset."""
    return error.code is ErrorCode.offset_out_of_range


def _fetch_fields(positions: Mapping[TopicPartition, int], max_wait_ms: int) -> dict[str, Any]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for key, offset in positions.items():
        topics.setdefault(key.topic, []).append(
            {
                "partition": key.partition,
                "current_leader_epoch": -1,
                "fetch_offset": offset,
                "last_fetched_epoch": -1,
                "log_start_offset": -1,
                "partition_max_bytes": PARTITION_BYTES_MAX,
            }
        )
    return {
        "replica_id": -1,
        "max_wait": max_wait_ms,
        "min_bytes": 1,
        "max_bytes": FETCH_BYTES_MAX,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": tuple({"topic": t, "partitions": tuple(p)} for t, p in topics.items()),
        "forgotten_topics_data": (),
        "rack_id": "",
    }


def _chunk_of(key: TopicPartition, position: int, partition: Any) -> PartitionChunk:
    """Records from `position` on; the batch that holds it may begin earlier."""
    data = memoryview(bytes(partition.records or b""))
    next_offset = position
    records: list[FetchedRecord] = []
    for header, start in iter_batch_headers(data):
        next_offset = max(next_offset, header.last_offset + 1)
        if header.is_control:
            continue
        batch = data[start : start + header.size_bytes]
        is_valid = batch_crc_is_valid(batch, header)
        records += (
            FetchedRecord(
                topic=key.topic,
                partition=key.partition,
                offset=record.offset,
                timestamp_ms=record.timestamp,
                key=record.key,
                value=record.value,
                headers=record.headers,
                batch=header,
                crc_is_valid=is_valid,
            )
            for record in iter_records(batch)
            if record.offset >= position
        )
    return PartitionChunk(
        records=tuple(records), next_offset=next_offset, high_watermark=partition.high_watermark
    )
