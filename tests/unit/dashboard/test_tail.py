"""Who no longer asks for a followed topic is forgotten, and too many are refused."""

import asyncio
from collections.abc import Mapping
from typing import cast

import pytest

from control.kafka.reader import PartitionChunk, RecordReader
from control.model.ids import TopicPartition
from dashboard.tail import TAILS_MAX, Positions, Tails


class QuietReader:
    """A topic in which nothing happens."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def fetch(
        self, positions: Mapping[TopicPartition, int], *, max_wait_ms: int
    ) -> dict[TopicPartition, PartitionChunk]:
        return {}

    async def close(self) -> None:
        self.closed.set()


async def begin(_: RecordReader) -> Positions:
    return {TopicPartition("quiet", 0): 0}


async def test_a_page_that_asks_no_more_is_forgotten_and_its_connections_end() -> None:
    tails, readers = Tails(idle_s=0.05), [QuietReader(), QuietReader()]

    def open_reader() -> RecordReader:
        return cast(RecordReader, readers[0] if not readers[0].closed.is_set() else readers[1])

    first = await tails.of("page", open_reader, begin, "")
    assert not await first.take()
    await asyncio.wait_for(readers[0].closed.wait(), 60)
    again = await tails.of("page", open_reader, begin, "")
    assert again is not first
    await asyncio.wait_for(readers[1].closed.wait(), 60)


async def test_more_than_a_few_are_refused_with_the_reason() -> None:
    tails = Tails()

    def open_reader() -> RecordReader:
        return cast(RecordReader, QuietReader())

    for number in range(TAILS_MAX):
        await tails.of(str(number), open_reader, begin, "")
    assert await tails.of("0", open_reader, begin, "") is not None
    with pytest.raises(ValueError, match=f"{TAILS_MAX} pages follow topics already"):
        await tails.of("one more", open_reader, begin, "")
