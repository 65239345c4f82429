"""Partitions in memory that answer a reader's questions as brokers do, whatever bytes they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from control.kafka.errors import KafkaPortError
from control.kafka.ports import OffsetAt, OffsetSpec
from control.kafka.records.decoding import AbortedTransaction, FetchedBytes
from control.kafka.records.fetching import Answers
from control.kafka.records.log_bounds import LogExtents
from control.kafka.records.reader import RecordReader
from control.kafka.records.record import Isolation
from control.model.ids import TopicPartition

FETCHES_MAX: Final = 5_000
"""More than any test needs: a reader that asks on for ever fails instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A batch in the log, by what the broker's index knows of it."""

    first: int
    last: int
    data: bytes


@dataclass(slots=True, kw_only=True)
class MemoryLog:
    """One partition. The index of a broker is right even where a batch is damaged."""

    batches: list[Stored] = field(default_factory=list)
    start: int = 0
    end: int = 0
    stable: int | None = None
    aborted: tuple[AbortedTransaction, ...] = ()
    markers: Mapping[AbortedTransaction, int] = field(default_factory=dict)
    """Where transactions end: a broker names none that ends before what is fetched."""
    times: Mapping[int, int] = field(default_factory=dict)
    """Offset by time, for questions by time."""
    fetches: int = 0

    def append(self, data: bytes, *, first: int, last: int) -> None:
        self.batches.append(Stored(first=first, last=last, data=data))
        self.end = max(self.end, last + 1)

    @property
    def stable_offset(self) -> int:
        return self.end if self.stable is None else self.stable

    def fetch(self, offset: int, bytes_max: int, isolation: Isolation) -> FetchedBytes:
        self.fetches += 1
        assert self.fetches < FETCHES_MAX, "the reader asks on for ever"
        is_committed = isolation is Isolation.READ_COMMITTED
        limit = self.stable_offset if is_committed else self.end
        data = b""
        for batch in self.batches:
            if offset <= batch.last and batch.first < limit:
                if data and len(data) + len(batch.data) > bytes_max:
                    break
                data += batch.data
        return FetchedBytes(
            data=data,
            end_offset=self.end,
            stable_offset=self.stable_offset,
            log_start_offset=self.start,
            aborted=tuple(it for it in self.aborted if self.markers.get(it, offset) >= offset)
            if is_committed
            else None,
        )


class MemoryCluster:
    """Fetches and offsets of partitions in memory."""

    def __init__(self, logs: Mapping[TopicPartition, MemoryLog]) -> None:
        self.logs = logs
        self.refused: dict[TopicPartition, KafkaPortError] = {}

    async def fetch(
        self,
        positions: Mapping[TopicPartition, int],
        *,
        max_wait_ms: int,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        partition_bytes: int = 1 << 20,
    ) -> Answers:
        assert max_wait_ms > 0
        answers: Answers = {}
        for key, at in positions.items():
            refused = self.refused.get(key)
            answers[key] = refused or self.logs[key].fetch(at, partition_bytes, isolation)
        return answers

    def forget_leader(self, partition: TopicPartition) -> None:
        assert partition in self.logs

    async def list_offsets(
        self,
        keys: Iterable[TopicPartition],
        at: int = OffsetSpec.LATEST,
        *,
        is_committed: bool = False,
    ) -> dict[TopicPartition, OffsetAt]:
        def offset(log: MemoryLog) -> int:
            if at == OffsetSpec.EARLIEST:
                return log.start
            if at == OffsetSpec.LATEST:
                return log.stable_offset if is_committed else log.end
            return next((o for o, stamp in sorted(log.times.items()) if stamp >= at), -1)

        return {key: OffsetAt(offset=offset(self.logs[key]), timestamp_ms=-1) for key in keys}

    async def topics(
        self, names: Iterable[str], *, leaves_out_unknown: bool = False
    ) -> tuple[Any, ...]:
        partitions = [SimpleNamespace(key=key, leader=1) for key in self.logs]
        return tuple(
            SimpleNamespace(name=name, topic_id=None, partitions=partitions) for name in names
        )

    async def close(self) -> None:
        """Nothing is open."""

    def reader(self) -> RecordReader:
        """A reader of these partitions."""
        reader = RecordReader("memory:1")
        admin: Any = SimpleNamespace(offsets=self, topics=self.topics, close=self.close)
        reader._admin, reader._fetcher = admin, self  # type: ignore[assignment]
        reader._extents = LogExtents(admin)
        return reader
