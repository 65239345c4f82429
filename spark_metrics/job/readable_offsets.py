"""Offsets from which the metrics topic can be read: past batches that its log holds damaged.

A client refuses a batch whose checksum does not fit, and Spark would ask for it for ever.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from spark_metrics.job.kafka_source import SourceSettings

FETCH_MS: Final = 500
"""How long an answer is waited for; a partition without one is at its end."""
BATCH_RECORDS_MAX: Final = 10_000
"""No batch that a source writes has more."""
PROBED_RECORDS_MAX: Final = 200_000
_UNREADABLE: Final = (KafkaError, ValueError, RuntimeError, AssertionError)
"""What a client raises of bytes that are no batch, or cannot be opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableOffsets:
    """Where each partition is to be read from, and what is passed over."""

    starts: Mapping[int, int]
    """The offset after the last damage of each partition."""
    damaged: Sequence[tuple[int, int, int]] = ()
    """Partition, the first offset that cannot be read, and the next one that can be."""
    good: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """Ranges of offsets before the last damage that can be read; each end is not in it."""

    def ranges(self) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
        """Begins and ends, of all partitions, that together are all good ranges."""
        for number in range(max(map(len, self.good.values()), default=0)):
            of = {
                it: self.good.get(it, ())[number : number + 1] or ((start, start),)
                for it, start in self.starts.items()
            }
            yield {it: of[it][0][0] for it in of}, {it: of[it][0][1] for it in of}


def find_readable(
    source: SourceSettings, next_offsets: Mapping[int, int], *, is_stopped: Callable[[], bool]
) -> ReadableOffsets | None:
    """The offsets from which a reader that has read so far can go on; None: nobody answers."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        return asyncio.run(_find(source, next_offsets, is_stopped))
    except (KafkaError, OSError, TimeoutError):
        return None


async def _find(
    source: SourceSettings, next_offsets: Mapping[int, int], is_stopped: Callable[[], bool]
) -> ReadableOffsets:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=source.bootstrap,
        enable_auto_commit=False,
        # A batch at a time: of two that come together the good one would be refused as well.
        max_partition_fetch_bytes=1,
        **source.client.of_aiokafka(),
    )
    await consumer.start()
    try:
        metadata = await consumer._client.fetch_all_metadata()
        numbers = sorted(metadata.partitions_for_topic(source.topic) or ())
        partitions = [TopicPartition(source.topic, number) for number in numbers]
        first = await consumer.beginning_offsets(partitions)
        last = await consumer.end_offsets(partitions)
        starts: dict[int, int] = {}
        damaged: list[tuple[int, int, int]] = []
        good: dict[int, list[tuple[int, int]]] = {}
        for place in partitions:
            begin = min(max(next_offsets.get(place.partition, 0), first[place]), last[place])
            damages = await _damages(consumer, place, begin, last[place], is_stopped)
            starts[place.partition] = damages[-1][1] if damages else begin
            damaged += [(place.partition, bad, end) for bad, end in damages]
            begins = [begin, *(end for _, end in damages)]
            ranges = [(start, bad) for start, (bad, _) in zip(begins, damages, strict=False)]
            good[place.partition] = [(start, end) for start, end in ranges if start < end]
        return ReadableOffsets(starts=starts, damaged=damaged, good=good)
    finally:
        await consumer.stop()


async def _damages(
    consumer: Any, place: TopicPartition, begin: int, end: int, is_stopped: Callable[[], bool]
) -> list[tuple[int, int]]:
    """The first offset of each damage, and the next one that can be read."""
    damages: list[tuple[int, int]] = []
    at = begin
    consumer.assign([place])
    while at < min(end, begin + PROBED_RECORDS_MAX) and not is_stopped():
        following = await _read(consumer, place, at)
        if following is not None:
            at = following
            continue
        bad, tried = at, range(at + 1, min(end, at + BATCH_RECORDS_MAX) + 1)
        at = end
        for offset in tried:
            if offset == end or await _read(consumer, place, offset) is not None:
                at = offset
                break
        damages.append((bad, at))
    return damages


async def _read(consumer: Any, place: TopicPartition, offset: int) -> int | None:
    """The offset after what can be read from there; None: it is damaged."""
    consumer.seek(place, offset)
    try:
        fetched = await consumer.getmany(place, timeout_ms=FETCH_MS)
    except _UNREADABLE:
        return None
    records = fetched.get(place, ())
    return records[-1].offset + 1 if records else offset + 1
