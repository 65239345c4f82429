"""One search for messages of a topic, as an operator writes it: in fields, flags or a path."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

from control.kafka.connection.connections import settings_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import NoSuchPartitionError
from control.kafka.records.following import Followed, Notice, TopicFollower
from control.kafka.records.opening import beside
from control.kafka.records.reader import (
    Bounds,
    Browsed,
    Looking,
    RecordReader,
    Start,
    StartKind,
)
from control.kafka.records.scan_progress import Scan
from control.messages.decoding.decoder import Decoder, decoder_of
from control.messages.decoding.formats import format_of
from control.messages.decoding.remembered import RememberedFormats
from control.messages.message_filters import (
    NO_FILTERS,
    FilterTexts,
    MessageFilter,
    build_filter,
)
from control.messages.patterns import FilterError
from control.messages.starts import outside_start_words, parse_start
from control.model.ids import TopicPartition, partition_numbers
from control.model.moments import TimeError, parse_moment

SCAN_RECORDS: Final = 100_000
"""Scanned at a time, unless another number is asked for."""
LATEST: Final = "-100"
"""The last ones of all partitions together."""
_NO_BOUND: Final = 1 << 62
_TIME_FORM: Final = "the time @{}"
FORMAT_NAMES: Final = {"kf": "key_format", "vf": "value_format"}
_QUERY_NAMES: Final = {
    "q": "text",
    "regex": "regex",
    "key": "key",
    "header": "header",
    "path": "json_path",
    "cel": "cel",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSearch:
    """A search of one topic; texts are as written, empty: no such condition."""

    topic: str
    start: str = ""
    until: str = ""
    partition: str = ""
    limit: str = ""
    key_format: str = ""
    value_format: str = ""
    texts: FilterTexts = NO_FILTERS

    @classmethod
    def of_query(cls, topic: str, query: Mapping[str, str]) -> MessageSearch:
        """As a path has it; a number is an offset there, and a time behind ``since``."""
        since = query.get("since", "")
        since = f"@{since}" if since.isdecimal() else since
        return cls(
            topic=topic,
            start=query.get("offset", "").replace(",", "") or since,
            until=query.get("until", ""),
            partition=query.get("partition", ""),
            limit=query.get("limit", ""),
            **{its: query.get(name, "") for name, its in FORMAT_NAMES.items()},
            texts=FilterTexts(
                **{its: text for name, its in _QUERY_NAMES.items() if (text := query.get(name))}
            ),
        )

    @property
    def query(self) -> dict[str, str]:
        """For a path, which all screens understand; all names, empty where nothing is asked."""
        is_offset = self.start.isdecimal()
        return {
            "partition": self.partition,
            "offset": self.start if is_offset else "",
            "since": "" if is_offset else self.start,
            "until": self.until,
            "limit": self.limit,
            **{name: getattr(self, its) for name, its in FORMAT_NAMES.items()},
            **{name: getattr(self.texts, its) or "" for name, its in _QUERY_NAMES.items()},
        }

    @property
    def is_search(self) -> bool:
        """Whether some records may be left out."""
        return bool(self.texts or self.until)

    @property
    def scan_max(self) -> int:
        """Records that are scanned at a time.

        :raises FilterError: it is no number.
        """
        return self._bounds().records

    def decoder(self, settings: KafkaSettings | str) -> Decoder:
        """Reads keys and values as the search says, else as was chosen for the topic.

        :raises FilterError: there is no such format.
        """
        cluster_id = settings_of(settings).cluster_id or ""
        names = {"key": self.key_format, "value": self.value_format}
        for part, name in names.items():
            try:
                format_of(name)
            except ValueError as error:
                raise FilterError(f"{part}_format", str(error)) from error
        formats = RememberedFormats().chosen(cluster_id, self.topic, **names)
        return decoder_of(settings, self.topic, formats)

    def chosen_decoder(self, settings: KafkaSettings | str) -> Decoder:
        """``decoder``; formats that the search names are remembered for the topic.

        :raises FilterError: there is no such format.
        """
        decoder = self.decoder(settings)
        if self.key_format or self.value_format:
            cluster_id = settings_of(settings).cluster_id or ""
            with suppress(OSError):  # the search names them all the same
                RememberedFormats().keep(cluster_id, self.topic, decoder.formats)
        return decoder

    def tested(self, decoder: Decoder, *, now_ms: int) -> MessageFilter:
        """The test of its filters and of its end in time.

        :raises FilterError: a field that cannot be.
        """
        return build_filter(self.texts, decoder, until_ms=self._until_ms(now_ms))

    async def read(
        self, settings: KafkaSettings | str, *, now_ms: int, limit: int, scan: Scan | None = None
    ) -> Browsed:
        """At most `limit` messages that are there now and pass.

        :raises FilterError: a field that cannot be, or an offset that no log has.
        :raises KafkaPortError: the cluster refuses or does not answer.
        """
        start, bounds = self._start(now_ms), self._bounds()
        until_ms = self._until_ms(now_ms)
        async with (
            self._looking(settings, now_ms) as (tested, looking),
            RecordReader(settings) as reader,
        ):
            keys = await self.partitions(reader)
            outside = await _outside(reader, keys, start, now_ms)
            found = await reader.browse(
                keys,
                start,
                limit=limit,
                looking=looking,
                bounds=bounds,
                scan=scan,
                until_ms=until_ms,
            )
        return replace(_told(found, tested), outside_words=outside)

    async def go_on(
        self,
        settings: KafkaSettings | str,
        before: Browsed,
        *,
        now_ms: int,
        limit: int,
        scan: Scan | None = None,
    ) -> Browsed:
        """Further from where reading stopped before.

        :raises KafkaPortError: the cluster refuses or does not answer.
        """
        bounds = self._bounds()
        async with (
            self._looking(settings, now_ms) as (tested, looking),
            RecordReader(settings) as reader,
        ):
            found = await reader.go_on(
                before.rest,
                is_backward=before.is_backward,
                limit=limit,
                looking=looking,
                bounds=bounds,
                scan=scan or Scan(before.progress),
            )
        return replace(_told(found, tested), behind_count=before.behind_count)

    async def follow(
        self, settings: KafkaSettings | str, *, now_ms: int
    ) -> AsyncIterator[Followed]:
        """All messages that pass from there on, for ever, and what is met on the way.

        :raises FilterError: a field that cannot be, or an offset that no log has.
        :raises KafkaPortError: the cluster refuses or does not answer.
        """
        start = self._start(now_ms)
        async with RecordReader(settings) as reader:
            keys = await self.partitions(reader)
            outside = await _outside(reader, keys, start, now_ms)
        if outside:
            yield Notice(text=outside, is_trouble=False)
        numbers = [key.partition for key in keys] if self.partition else None
        async with (
            self._looking(settings, now_ms) as (_, looking),
            TopicFollower(settings, self.topic, partitions=numbers, looking=looking) as follower,
        ):
            await follower.begin(start)
            async for item in follower.items():
                yield item

    async def partitions(self, reader: RecordReader) -> tuple[TopicPartition, ...]:
        """Those that are searched.

        :raises NoSuchPartitionError: the topic has no such partition.
        :raises RefusedError: there is no such topic.
        """
        return chosen_partitions(await reader.partitions(self.topic), self.partition)

    def _start(self, now_ms: int) -> Start:
        try:
            return parse_start(self.start or LATEST, now_ms=now_ms)
        except ValueError as error:
            raise FilterError("start", str(error)) from error

    def _until_ms(self, now_ms: int) -> int | None:
        try:
            return parse_moment(self.until, now_ms=now_ms) if self.until else None
        except TimeError as error:
            raise FilterError("until", str(error)) from error

    def _bounds(self) -> Bounds:
        words = self.limit.replace(",", "").replace("_", "")
        if not words:
            return Bounds(records=SCAN_RECORDS, bytes=_NO_BOUND)
        if not words.isdecimal() or not int(words):
            raise FilterError("limit", f"{self.limit!r} is no number of records")
        return Bounds(records=int(words), bytes=_NO_BOUND)

    @asynccontextmanager
    async def _looking(
        self, settings: KafkaSettings | str, now_ms: int
    ) -> AsyncIterator[tuple[MessageFilter, Looking]]:
        _numbers(self.partition)
        # In a thread: the first use of a library loads it.
        decoder = await asyncio.to_thread(self.decoder, settings)
        with await beside(self.tested, decoder, now_ms=now_ms) as tested:
            yield tested, tested.looking


def chosen_partitions(keys: Sequence[TopicPartition], partition: str) -> tuple[TopicPartition, ...]:
    """The asked partitions of a topic.

    :raises NoSuchPartitionError: one of them is not there.
    """
    wanted = set(_numbers(partition))
    if not wanted:
        return tuple(keys)
    found = tuple(key for key in keys if key.partition in wanted)
    missing = sorted(wanted - {key.partition for key in found})
    if missing:
        topic = keys[0].topic if keys else ""
        raise NoSuchPartitionError(topic, missing[0], count=len(keys))
    return found


async def _outside(
    reader: RecordReader, keys: Sequence[TopicPartition], start: Start, now_ms: int
) -> str:
    if start.kind is not StartKind.OFFSET:
        return ""
    extents, _ = await reader.extents.tolerant(keys)
    return outside_start_words(start, extents, now_ms=now_ms, time_form=_TIME_FORM)


def _numbers(partition: str) -> tuple[int, ...]:
    try:
        return partition_numbers(partition)
    except ValueError as error:
        raise FilterError("partition", str(error)) from error


def _told(found: Browsed, tested: MessageFilter) -> Browsed:
    return replace(
        found, unjudged_count=tested.unjudged_count, unjudged_reason=tested.unjudged_reason
    )
