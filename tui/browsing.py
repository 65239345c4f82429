"""Which messages somebody wants to see: as three fields, as a path's query, as reading them."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final

from control.kafka.following import Followed, TopicFollower
from control.kafka.reader import Browsed, Looking, RecordReader
from control.kafka.settings import KafkaSettings
from control.lab.starts import parse_start
from control.model.ids import TopicPartition, no_partition_words
from control.views.messages import matcher

LATEST: Final = "-50"
"""The last ones of all partitions together."""
FIELDS: Final = ("from", "partition", "contains")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A wish to read one topic; texts as they were typed."""

    topic: str
    start: str = LATEST
    partition: str = ""
    contains: str = ""

    @classmethod
    def of_query(cls, topic: str, query: Mapping[str, str]) -> "Wanted":
        """As a path has it."""
        return cls(
            topic=topic,
            start=query.get("offset") or query.get("since") or LATEST,
            partition=query.get("partition", ""),
            contains=query.get("q", ""),
        )

    @property
    def query(self) -> dict[str, str]:
        """For a path, which the page understands too."""
        place = {"offset" if self.start.isdecimal() else "since": self.start}
        return {
            "partition": self.partition,
            **({} if self.start == LATEST else place),
            "q": self.contains,
        }

    @property
    def fields(self) -> dict[str, str]:
        """By the names of ``FIELDS``."""
        return dict(zip(FIELDS, (self.start, self.partition, self.contains), strict=True))

    @property
    def looking(self) -> Looking:
        """For those that hold the text."""
        return Looking(matches=matcher(self.contains))

    async def read(self, settings: KafkaSettings, *, now_ms: int, limit: int) -> Browsed:
        """At most ``limit`` messages that are there now and hold the text.

        :raises ValueError: a field that cannot be.
        :raises KafkaPortError: the cluster refuses or does not answer.
        """
        start = parse_start(self.start, now_ms=now_ms)
        async with RecordReader(settings) as reader:
            keys = await self._partitions(reader)
            return await reader.browse(keys, start, limit=limit, looking=self.looking)

    async def go_on(self, settings: KafkaSettings, before: Browsed, *, limit: int) -> Browsed:
        """Further from where reading stopped before.

        :raises KafkaPortError: the cluster refuses or does not answer.
        """
        async with RecordReader(settings) as reader:
            return await reader.go_on(
                before.rest, is_backward=before.is_backward, limit=limit, looking=self.looking
            )

    async def follow(self, settings: KafkaSettings, *, now_ms: int) -> AsyncIterator[Followed]:
        """All messages from there on, for ever, and what is met on the way.

        :raises ValueError: a field that cannot be.
        :raises KafkaPortError: the cluster refuses or does not answer.
        """
        start = parse_start(self.start, now_ms=now_ms)
        async with RecordReader(settings) as reader:
            keys = await self._partitions(reader)
        partition = keys[0].partition if self.partition else None
        async with TopicFollower(
            settings, self.topic, partition=partition, looking=self.looking
        ) as follower:
            await follower.begin(start)
            async for item in follower.items():
                yield item

    async def _partitions(self, reader: RecordReader) -> tuple[TopicPartition, ...]:
        keys = await reader.partitions(self.topic)
        if not self.partition:
            return keys
        found = tuple(key for key in keys if str(key.partition) == self.partition)
        if not found:
            raise ValueError(no_partition_words(self.topic, self.partition, len(keys)))
        return found
