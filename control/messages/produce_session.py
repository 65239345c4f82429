"""A produce session: records by count and rate, progress with ack latencies, stop at any time."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from kio.schema.errors import ErrorCode

from control.kafka.connection.connections import settings_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import (
    KafkaPortError,
    NoSuchPartitionError,
    RecordTooLargeError,
    RefusedError,
)
from control.kafka.records.producer import Delivery, OutgoingRecord, ProducerOptions, RecordProducer
from control.messages.keys import KeyChooser, from_list, parse_keys
from control.messages.partitioners import KeyRule, partition_for
from control.messages.templates import Template
from control.messages.topic_limits import TopicLimits, topic_limits

PROGRESS_EVERY_S: Final = 0.25
IN_FLIGHT_MAX: Final = 2_000
LATENCIES_MAX: Final = 20_000
"""Percentiles cover the newest acknowledgements only."""
TICK_S: Final = 0.01
_OF_ONE_RECORD: Final = (ErrorCode.message_too_large, ErrorCode.invalid_record)
"""What the client refuses of a record; the others go on."""
ERRORS_MAX: Final = 5


KeyAndValue = tuple[bytes | None, bytes | None]
RecordStream = AsyncIterator[Sequence[OutgoingRecord]]
"""Records as they come, some at a time; the job fills in the partition, headers and time that they
lack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceJob:
    """Records to send. `partition` wins over `rule`; `rule` null leaves keyed records to murmur2.

    `rate` is records per second, null as fast as acknowledgements allow.
    """

    topic: str
    value: str | None = "{n}"
    """A template; null sends tombstones."""
    keys: str | None = None
    """A description of control.messages.keys."""
    key_list: tuple[bytes | None, ...] = ()
    partition: int | None = None
    rule: KeyRule | None = None
    count: int = 1
    rate: float | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp_ms: int | None = None
    options: ProducerOptions = field(default_factory=ProducerOptions)
    seed: int = 0
    records: tuple[KeyAndValue, ...] = ()
    """The lines of a file, in the place of keys, value and count; failures name theirs."""

    @property
    def total(self) -> int:
        """How many records."""
        return len(self.records) or self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Acknowledgement times in ms."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceProgress:
    """A session at one moment; the last one has `is_done`."""

    sent: int
    acked: int
    failed: int
    total: int
    elapsed_s: float
    records_per_s: float
    latencies: Latencies | None
    per_partition: dict[int, int]
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    """First and last acknowledged offset of each partition; none with acks 0."""
    histogram_ms: tuple[tuple[float, int], ...]
    """(upper edge in ms, records) with edges doubling."""
    last: Delivery | None
    errors: tuple[str, ...]
    """The first ``ERRORS_MAX``, in full."""
    errors_by_kind: dict[str, int] = field(default_factory=dict)
    """How many records failed for each reason, the most frequent first."""
    is_done: bool
    unanswered: int = 0
    """Sent, and neither acknowledged nor failed: nobody knows whether they were written."""


class ProduceSession:
    """Runs one job. Iterate `run()`; `stop()` ends it at once, what is in flight is awaited."""

    def __init__(
        self, settings: KafkaSettings | str, job: ProduceJob, *, stream: RecordStream | None = None
    ) -> None:
        """``stream`` takes the place of the job's records, keys, value and count."""
        self._settings = settings_of(settings)
        self.job = job
        self._stream = stream
        rng = np.random.default_rng(job.seed)
        self._choose_key: KeyChooser = (
            from_list(job.key_list) if job.key_list else parse_keys(job.keys, rng)
        )
        self._template = None if job.value is None else Template(job.value, rng)
        self._stopped = asyncio.Event()
        self._tally = _Tally()
        self._limits: TopicLimits | None = None
        self._started = time.monotonic()

    def stop(self) -> None:
        """Stops sending."""
        self._stopped.set()

    async def run(self) -> AsyncIterator[ProduceProgress]:
        """Progress every PROGRESS_EVERY_S, and once at the end.

        :raises KafkaPortError: topic or partition unknown, cluster unreachable; `progress` tells
            what was acknowledged until then. Single refused records are counted in `failed`.
        """
        self._limits = limits = await topic_limits(self._settings, self.job.topic)
        self._started = time.monotonic()
        options = limits.options(self.job.options)
        async with RecordProducer(self._settings, options) as producer:
            sending = asyncio.create_task(self._send_all(producer, limits.partitions))
            try:
                while not sending.done():
                    await asyncio.wait([sending], timeout=PROGRESS_EVERY_S)
                    if not sending.done():
                        yield self.progress()
                await sending
            finally:
                self.stop()
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        yield self.progress(is_done=True)

    async def run_to_end(self) -> ProduceProgress:
        """The last progress."""
        last: ProduceProgress | None = None
        async for progress in self.run():
            last = progress
        assert last is not None
        return last

    async def _send_all(self, producer: RecordProducer, partitions: int) -> None:
        in_flight: set[asyncio.Task[None]] = set()
        try:
            async with aclosing(self._outgoing()) as outgoing:
                async for n, record in outgoing:
                    delivery = await self._enqueue(producer, n, self._placed(n, record, partitions))
                    if delivery is None:
                        continue
                    task = asyncio.create_task(self._settle(n, delivery))
                    in_flight.add(task)
                    task.add_done_callback(in_flight.discard)
                    if len(in_flight) >= IN_FLIGHT_MAX:
                        await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if in_flight:
                await asyncio.wait(in_flight)

    async def _outgoing(self) -> AsyncGenerator[tuple[int, OutgoingRecord], None]:
        """Each record with its number when its turn has come, until the session is stopped."""
        n = 0
        async for records in self._stream_until_stopped():
            for record in records:
                if not await self._is_due(n):
                    return
                yield n, record
                n += 1
        if self._stream is None:
            for n in range(self.job.total):
                if not await self._is_due(n):
                    return
                key, value = self._key_and_value(n)
                yield n, OutgoingRecord(topic=self.job.topic, key=key, value=value)

    async def _stream_until_stopped(self) -> RecordStream:
        """Records of a stream, until it ends or the session is stopped."""
        if self._stream is None:
            return
        stopped = asyncio.create_task(self._stopped.wait())
        coming: asyncio.Task[Sequence[OutgoingRecord] | None] | None = None
        try:
            while True:
                coming = asyncio.create_task(_next_of(self._stream))
                await asyncio.wait({coming, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done() or (records := coming.result()) is None:
                    return
                yield records
        finally:
            for task in filter(None, (stopped, coming)):
                task.cancel()

    async def _enqueue(
        self, producer: RecordProducer, n: int, record: OutgoingRecord
    ) -> Awaitable[Delivery] | None:
        """The answer to come; None: it failed for itself alone."""
        try:
            assert self._limits is not None
            self._limits.check(record, self.job.options.compression)
            delivery = await producer.enqueue(record)
        except RecordTooLargeError as error:
            self._fail(n, error)
            return None
        except RefusedError as error:
            if error.code not in _OF_ONE_RECORD:
                raise
            self._fail(n, error)
            return None
        self._tally.sent += 1
        self._tally.unanswered += 1
        return delivery

    async def _is_due(self, n: int) -> bool:
        """Sleeps until record `n` is due (short sleeps are saved up to TICK_S); False: stopped."""
        if self.job.rate is not None:
            ahead_s = self._started + n / self.job.rate - time.monotonic()
            if ahead_s > TICK_S:
                await _wait_for_event(self._stopped, ahead_s)
        return not self._stopped.is_set()

    async def _settle(self, n: int, delivery: Awaitable[Delivery]) -> None:
        try:
            landed = await delivery
        except KafkaPortError as error:
            self._fail(n, error)
        else:
            self._tally.count(landed)
        self._tally.unanswered -= 1

    def _fail(self, n: int, error: KafkaPortError) -> None:
        line = f"line {n + 1:,}: " if self.job.records or self._stream else ""
        self._tally.fail(f"{line}{error}", error.kind)

    def _key_and_value(self, n: int) -> KeyAndValue:
        if self.job.records:
            return self.job.records[n]
        key = self._choose_key(n)
        if self._template is None:
            return key, None
        return key, self._template.render(n=n, key=key, now_ms=int(time.time() * 1000))

    def _placed(self, n: int, record: OutgoingRecord, partitions: int) -> OutgoingRecord:
        """With what the job says where the record leaves it open.

        :raises NoSuchPartitionError: the topic does not have this partition.
        """
        job, partition = self.job, record.partition
        key = self._choose_key(n) if record.key is None else record.key
        if partition is None:
            partition = job.partition
        if partition is None and job.rule is not None:
            partition = partition_for(job.rule, key, partitions)
        elif partition is not None and not 0 <= partition < partitions:
            raise NoSuchPartitionError(job.topic, partition, count=partitions)
        return replace(
            record,
            key=key,
            partition=partition,
            headers=record.headers or job.headers,
            timestamp_ms=job.timestamp_ms if record.timestamp_ms is None else record.timestamp_ms,
        )

    def first_record(self, limits: TopicLimits) -> OutgoingRecord:
        """The first record that would be sent, to be judged beforehand.

        :raises NoSuchPartitionError: the topic does not have its partition.
        """
        key, value = self._key_and_value(0)
        record = OutgoingRecord(topic=self.job.topic, key=key, value=value)
        return self._placed(0, record, limits.partitions)

    def progress(self, *, is_done: bool = False) -> ProduceProgress:
        """Where the session stands now."""
        tally, elapsed_s = self._tally, time.monotonic() - self._started
        return ProduceProgress(
            sent=tally.sent,
            acked=tally.acked,
            failed=tally.failed,
            total=tally.sent + tally.failed if self._stream else self.job.total,
            elapsed_s=elapsed_s,
            records_per_s=tally.acked / elapsed_s if elapsed_s > 0 else 0.0,
            latencies=latencies_of(tally.latencies),
            per_partition=dict(sorted(tally.per_partition.items())),
            offsets=dict(sorted(tally.offsets.items())),
            histogram_ms=histogram_of(tally.latencies),
            last=tally.last,
            errors=tuple(tally.errors),
            errors_by_kind=dict(tally.kinds.most_common()),
            is_done=is_done,
            unanswered=tally.unanswered,
        )


@dataclass(slots=True)
class _Tally:
    """Counts and latencies of a session's records."""

    sent: int = 0
    acked: int = 0
    failed: int = 0
    unanswered: int = 0
    last: Delivery | None = None
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES_MAX))
    per_partition: Counter[int] = field(default_factory=Counter)
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def count(self, landed: Delivery) -> None:
        """One more was acknowledged."""
        self.acked += 1
        self.last = landed
        self.latencies.append(landed.latency_ms)
        self.per_partition[landed.partition] += 1
        if landed.offset >= 0:
            first, last = self.offsets.get(landed.partition, (landed.offset, landed.offset))
            self.offsets[landed.partition] = min(first, landed.offset), max(last, landed.offset)

    def fail(self, words: str, kind: str) -> None:
        """One more will not be acknowledged."""
        self.failed += 1
        self.kinds[kind] += 1
        if len(self.errors) < ERRORS_MAX:
            self.errors.append(words)


def latencies_of(values_ms: Any) -> Latencies | None:
    """Percentiles of acknowledgement times; null when there are none."""
    if not values_ms:
        return None
    p50, p95, p99 = np.percentile(np.fromiter(values_ms, dtype=np.float64), (50, 95, 99))
    return Latencies(p50_ms=float(p50), p95_ms=float(p95), p99_ms=float(p99), max_ms=max(values_ms))


def histogram_of(values_ms: Any) -> tuple[tuple[float, int], ...]:
    """Counts in buckets whose upper edges double from 0.25 ms."""
    if not values_ms:
        return ()
    values = np.fromiter(values_ms, dtype=np.float64)
    buckets = np.maximum(0, np.ceil(np.log2(np.maximum(values, 1e-3) / 0.25))).astype(int)
    counts = np.bincount(buckets)
    return tuple((0.25 * 2.0**i, int(count)) for i, count in enumerate(counts))


async def _next_of(stream: RecordStream) -> Sequence[OutgoingRecord] | None:
    """None: that was all."""
    return await anext(stream, None)


async def _wait_for_event(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
