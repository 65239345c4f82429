"""How far a scan of partitions has come, and the switch that ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from control.kafka.records.record import FetchedRecord, Gap, Item, Passed
from control.model.ids import TopicPartition

NO_LIMIT: Final = 1 << 62
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a scan, and of those that went on from it: what was scanned, of how much.

    Offsets count also where no record has them; `at_ms` is the time of the last record scanned.
    """

    partition_count: int = 0
    partitions_done: int = 0
    offset_count: int = 0
    offsets_done: int = 0
    record_count: int = 0
    read_bytes: int = 0
    found_count: int = 0
    at_ms: int | None = None

    @property
    def part(self) -> float:
        """Between 0 and 1."""
        return self.offsets_done / self.offset_count if self.offset_count else 1.0

    @property
    def estimated_bytes(self) -> int:
        """The bytes of all that is to be scanned, if the rest is like the scanned part."""
        return int(self.read_bytes / self.part) if self.part else 0


NOTHING_SCANNED: Final = Progress()


class Scanned(Protocol):
    """The state of a scan in one partition."""

    partition: TopicPartition
    read_bytes: int

    @property
    def offset_count(self) -> int:
        """To be scanned in all."""
        ...

    @property
    def offsets_left(self) -> int:
        """Not scanned yet."""
        ...


class Scan:
    """One run over some partitions; another task may look at it and stop it."""

    def __init__(self, before: Progress = NOTHING_SCANNED, *, records_max: int = NO_LIMIT) -> None:
        """`before` is what was scanned by those from which it goes on; it ends by itself at
        `records_max`."""
        self.records_max = records_max
        self.record_count = 0
        self.found_count = 0
        self.records: Sequence[FetchedRecord] = ()
        """Found so far, in the order in which they were scanned."""
        self.at_ms: int | None = None
        self._before = before
        self._sources: Sequence[Scanned] = ()
        self._stopped = asyncio.Event()

    @property
    def is_stopped(self) -> bool:
        """Whether somebody wants it to end."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """End it within the time that a few records take."""
        self._stopped.set()

    @property
    def records_left(self) -> int:
        """To be scanned at most."""
        return self.records_max - self.record_count

    def count(self, item: Item) -> None:
        """It was scanned."""
        if isinstance(item, Gap):
            return
        self.at_ms = item.timestamp_ms
        self.record_count += item.record_count if isinstance(item, Passed) else 1
        self.found_count += isinstance(item, FetchedRecord)

    def begin(self, sources: Sequence[Scanned]) -> None:
        """These are scanned."""
        self._sources = sources

    @property
    def progress(self) -> Progress:
        """As it is now."""
        before, sources = self._before, self._sources
        left = [source.offsets_left for source in sources]
        own_count = sum(source.offset_count for source in sources)
        partition_count = before.partition_count or len(sources)
        partitions_left = sum(map(bool, left)) if sources else partition_count
        return Progress(
            partition_count=partition_count,
            partitions_done=partition_count - partitions_left,
            offset_count=before.offset_count or own_count,
            offsets_done=before.offsets_done + own_count - sum(left),
            record_count=before.record_count + self.record_count,
            read_bytes=before.read_bytes + sum(source.read_bytes for source in sources),
            found_count=before.found_count + self.found_count,
            at_ms=before.at_ms if self.at_ms is None else self.at_ms,
        )

    async def unless_stopped(self, asked: Awaitable[_Answer]) -> _Answer | None:
        """The answer; None, and the question is cancelled, where it is stopped before."""
        question = asyncio.ensure_future(asked)
        stopped = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait((question, stopped), return_when=asyncio.FIRST_COMPLETED)
            return question.result() if question.done() else None
        finally:
            stopped.cancel()
            question.cancel()
