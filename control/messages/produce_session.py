"""A produce session: records by count and rate, progress with ack latencies, stop at any time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from kio.schema.errors import ErrorCode

from control.kafka.connection.connections import settings_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import (
    KafkaPortError,
    NoSuchPartitionError,
    RecordTooLargeError,
    RefusedError,
    UnsendableLinesError,
)
from control.kafka.records.producer import Delivery, OutgoingRecord, ProducerOptions, RecordProducer
from control.messages.keys import KeyChooser, from_list, parse_keys
from control.messages.partitioners import KeyRule, partition_for
from control.messages.produce_progress import (
    ProduceProgress,
    Tally,
    histogram_of,
    latencies_of,
)
from control.messages.templates import Template
from control.messages.topic_limits import TopicLimits, topic_limits

PROGRESS_EVERY_S: Final = 0.25
IN_FLIGHT_MAX: Final = 2_000
TICK_S: Final = 0.01
_OF_ONE_RECORD: Final = (
    ErrorCode.message_too_large,
    ErrorCode.invalid_record,
    ErrorCode.invalid_timestamp,
)
"""What the client refuses of a record; the others go on."""
LINES_JUDGED_TO_BE_TOLD: Final = 100
"""A file is not read further after so many lines that cannot be sent."""


KeyAndValue = tuple[bytes | None, bytes | None]
RecordStream = AsyncIterator[Sequence[OutgoingRecord]]
"""Records as they come, some at a time; the job fills in the partition, headers and time that they
lack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSource:
    """Lines in the place of the records that a job makes."""

    read: Callable[[], RecordStream]
    is_file: bool = False
    """It can be read twice: all of it is judged before the first record is sent."""


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


class _JobRecords:
    """Makes the records of a job, from its first one on."""

    def __init__(self, job: ProduceJob) -> None:
        """:raises KeySpecError: keys that cannot be made.
        :raises TemplateError: a value that cannot be made.
        """
        self._job = job
        rng = np.random.default_rng(job.seed)
        self._choose_key: KeyChooser = (
            from_list(job.key_list) if job.key_list else parse_keys(job.keys, rng)
        )
        self._template = None if job.value is None else Template(job.value, rng)

    async def made(self) -> RecordStream:
        """Records of the job's keys and value, one at a time: each has the time of its turn."""
        for n in range(self._job.count):
            yield [self._made(n)]

    async def of_lines(self) -> RecordStream:
        """The lines of a form's file."""
        lines = self._job.records
        for start in range(0, len(lines), IN_FLIGHT_MAX):
            yield [self._record(*it) for it in lines[start : start + IN_FLIGHT_MAX]]

    def first(self) -> OutgoingRecord:
        """The first record, before it has its partition."""
        return self._record(*self._job.records[0]) if self._job.records else self._made(0)

    def placed(self, n: int, record: OutgoingRecord, partitions: int) -> OutgoingRecord:
        """With what the job says where the record leaves it open.

        :raises NoSuchPartitionError: the topic does not have this partition.
        """
        job, partition = self._job, record.partition
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

    def _made(self, n: int) -> OutgoingRecord:
        key = self._choose_key(n)
        if self._template is None:
            return self._record(key, None)
        now_ms = time.time_ns() // 1_000_000
        return self._record(key, self._template.render(n=n, key=key, now_ms=now_ms))

    def _record(self, key: bytes | None, value: bytes | None) -> OutgoingRecord:
        return OutgoingRecord(topic=self._job.topic, key=key, value=value)


class ProduceSession:
    """Runs one job. Iterate `run()`; `stop()` ends it at once, what is in flight is awaited."""

    def __init__(
        self,
        settings: KafkaSettings | str,
        job: ProduceJob,
        *,
        source: RecordSource | None = None,
    ) -> None:
        """``source`` takes the place of the job's records, keys, value and count."""
        self._settings = settings_of(settings)
        self.job = job
        self._records = _JobRecords(job)
        if source is None and job.records:
            source = RecordSource(read=self._records.of_lines, is_file=True)
        self._source = source
        self._stopped = asyncio.Event()
        self._is_cut = False
        """It was stopped before all was sent."""
        self._judged: int | None = None
        """Lines of the file, once all of them are judged."""
        self._tally = Tally()
        self._limits: TopicLimits | None = None
        self._started = time.monotonic()

    def stop(self) -> None:
        """Stops sending."""
        self._stopped.set()

    async def run(self) -> AsyncIterator[ProduceProgress]:
        """Progress every PROGRESS_EVERY_S, and once at the end.

        :raises KafkaPortError: topic or partition unknown, cluster unreachable; `progress` tells
            what was acknowledged until then. Single refused records are counted in `failed`.
        :raises UnsendableLinesError: the topic would not take a line. Of a file nothing is sent.
        """
        self._limits = limits = await topic_limits(self._settings, self.job.topic)
        self._judged = await self._judged_count(limits)
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

    async def _judged_count(self, limits: TopicLimits) -> int | None:
        """Judge every line of a file; how many there are. None: it is no file, or was stopped.

        :raises UnsendableLinesError: the topic would not take some of them.
        """
        source = self._source
        if source is None or not source.is_file:
            return None
        refused: dict[int, KafkaPortError] = {}
        n = 0
        async for records in self._until_stopped(source.read()):
            for record in records:
                try:
                    placed = self._records.placed(n, record, limits.partitions)
                    limits.check(placed, self.job.options.compression)
                except KafkaPortError as error:
                    refused[n + 1] = error
                n += 1
            await asyncio.sleep(0)  # parsing waits for nothing: a signal must come through
            if len(refused) >= LINES_JUDGED_TO_BE_TOLD:
                break
        if refused:
            raise UnsendableLinesError(refused, is_file=True)
        self._records = _JobRecords(self.job)  # keys are drawn from the start again
        return n

    async def _send_all(self, producer: RecordProducer, partitions: int) -> None:
        in_flight: set[asyncio.Task[None]] = set()
        try:
            async with aclosing(self._outgoing()) as outgoing:
                async for n, record in outgoing:
                    try:
                        placed = self._records.placed(n, record, partitions)
                    except NoSuchPartitionError as error:
                        if self._source is None:
                            raise
                        raise UnsendableLinesError({n + 1: error}, is_file=False) from error
                    delivery = await self._enqueue(producer, n, placed)
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
        """Each record with its number when its turn has come, until the session is stopped.

        Lines that were written to a file since it was judged are left out.
        """
        n, count = 0, self._judged
        source = self._source
        batches = self._records.made() if source is None else self._until_stopped(source.read())
        async for records in batches:
            for record in records if count is None else records[: count - n]:
                if not await self._is_due(n):
                    self._is_cut = True
                    return
                yield n, record
                n += 1
            if n == count:
                return

    async def _until_stopped(self, stream: RecordStream) -> RecordStream:
        """Records of a stream, until it ends or the session is stopped."""
        stopped = asyncio.create_task(self._stopped.wait())
        coming: asyncio.Task[Sequence[OutgoingRecord] | None] | None = None
        try:
            while True:
                coming = asyncio.create_task(_next_of(stream))
                await asyncio.wait({coming, stopped}, return_when=asyncio.FIRST_COMPLETED)
                records = coming.result() if coming.done() else ()
                if records is None:
                    return
                if self._stopped.is_set():
                    self._is_cut = True
                    return
                yield records
        finally:
            for task in filter(None, (stopped, coming)):
                task.cancel()

    async def _enqueue(
        self, producer: RecordProducer, n: int, record: OutgoingRecord
    ) -> Awaitable[Delivery] | None:
        """The answer to come; None: it failed for itself alone."""
        self._tally.asked[n] = (time.monotonic(), record.partition)
        try:
            assert self._limits is not None
            self._limits.check(record, self.job.options.compression)
            delivery = await producer.enqueue(record)
        except (RecordTooLargeError, RefusedError) as error:
            del self._tally.asked[n]
            if isinstance(error, RefusedError) and error.code not in _OF_ONE_RECORD:
                raise
            self._fail(n, error)
            self._tally.refused += 1
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
        del self._tally.asked[n]

    def _fail(self, n: int, error: KafkaPortError) -> None:
        line = "" if self._source is None else f"line {n + 1:,}: "
        self._tally.fail(f"{line}{error}", error.kind)

    @property
    def _total(self) -> int:
        """How many records there are; of a pipe so far."""
        if self._judged is not None:
            return self._judged
        if self._source is None or self.job.records:
            return self.job.total
        return self._tally.sent + self._tally.refused

    def first_record(self, limits: TopicLimits) -> OutgoingRecord:
        """The first record that would be sent, to be judged beforehand.

        :raises NoSuchPartitionError: the topic does not have its partition.
        """
        return self._records.placed(0, self._records.first(), limits.partitions)

    def progress(self, *, is_done: bool = False) -> ProduceProgress:
        """Where the session stands now."""
        tally, elapsed_s = self._tally, time.monotonic() - self._started
        return ProduceProgress(
            sent=tally.sent,
            acked=tally.acked,
            failed=tally.failed,
            total=self._total,
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
            is_stopped=is_done and self._is_cut,
            unanswered=tally.unanswered,
            waiting=None
            if is_done
            else tally.waiting(
                self.job.topic,
                now_s=time.monotonic(),
                seconds_max=self._settings.request_timeout_ms / 1_000,
            ),
        )


async def _next_of(stream: RecordStream) -> Sequence[OutgoingRecord] | None:
    """None: that was all."""
    return await anext(stream, None)


async def _wait_for_event(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
