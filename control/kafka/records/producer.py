"""Sending records: aiokafka's producer with explicit partitions and our errors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    BrokerResponseError,
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
    kafka_errors,
)
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from kio.schema.errors import ErrorCode

from control.kafka.connection.connections import settings_of
from control.kafka.connection.handshake import reason_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.connection.wire import address_that_answers, answers_soon, explain_unreachable
from control.kafka.errors import KafkaPortError, RefusedError, UnreachableError

ACKS: Final = {"0": 0, "1": 1, "all": "all"}
COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""By the numbers that record batches have for them."""
REQUEST_MAX: Final = 1 << 20
_NULL: Final = object()
"""A null value; the client library refuses one without a key, and Kafka does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRecord:
    """A record to send. A null value is a tombstone; a null partition leaves the choice to the
    producer's own rule (murmur2 of the key, else random). A null timestamp means now, -1 none."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Where a record landed; offset -1 with acks 0, where nobody tells."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    latency_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    """acks is "0", "1" or "all"; compression one of COMPRESSIONS."""

    acks: str = "all"
    compression: str = "none"
    is_idempotent: bool = False
    linger_ms: int = 0
    request_max: int = REQUEST_MAX
    """Bytes; the topic's max.message.bytes counts as well."""
    batch_max: int = 1 << 14
    """Bytes of records that are sent together; one larger than that goes by itself."""


def batch_bytes(record: OutgoingRecord, compression: str = "none") -> int:
    """The size of a batch that holds this record alone: what ``max.message.bytes`` is about."""
    size = sum(map(len, filter(None, (record.key, record.value))))
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=COMPRESSIONS.index(compression),
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=size + (1 << 20),
    )
    at_ms = record.timestamp_ms or 0
    builder.append(0, at_ms, record.key, record.value, list(record.headers))
    return len(builder.build())


class InvalidRecordError(BrokerResponseError):  # type: ignore[misc]  # aiokafka has no types
    """The client library does not know this answer, and would call it an unknown error."""

    errno = int(ErrorCode.invalid_record)
    message = ErrorCode.invalid_record.name.upper()


kafka_errors[InvalidRecordError.errno] = InvalidRecordError


class RecordProducer:
    """A started producer. Use as an async context manager."""

    def __init__(
        self, settings: KafkaSettings | str, options: ProducerOptions | None = None
    ) -> None:
        self._settings = settings_of(settings)
        self._options = options or ProducerOptions()
        self._producer: Any = None

    async def __aenter__(self) -> RecordProducer:
        async with answers_soon(self._settings):
            bootstrap = await address_that_answers(self._settings)
        options = self._options
        compression = None if options.compression == "none" else options.compression
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            client_id=self._settings.client_id,
            metadata_max_age_ms=self._settings.metadata_age_ms_max,
            request_timeout_ms=self._settings.request_timeout_ms,
            acks="all" if options.is_idempotent else ACKS[options.acks],
            compression_type=compression,
            enable_idempotence=options.is_idempotent,
            linger_ms=options.linger_ms,
            max_request_size=options.request_max,
            max_batch_size=options.batch_max,
            value_serializer=lambda value: None if value is _NULL else value,
            **self._settings.security_options(),
        )
        try:
            async with answers_soon(self._settings):
                await self._producer.start()
        except UnreachableError:
            await self._producer.stop()
            raise
        except (KafkaError, OSError, TimeoutError, AssertionError) as error:
            await self._producer.stop()
            await explain_unreachable(self._settings)
            raise _translated(error, self._settings.bootstrap) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.stop()

    async def send(self, record: OutgoingRecord) -> Delivery:
        """Send and wait for the acknowledgement.

        :raises RefusedError: the record is too large, the topic unknown, too few replicas.
        :raises UnreachableError: no acknowledgement in time.
        """
        return await (await self.enqueue(record))

    async def enqueue(self, record: OutgoingRecord) -> Awaitable[Delivery]:
        """Hand over to the current batch; await the answer for the delivery."""
        started = time.monotonic()
        try:
            acked = await self._producer.send(
                record.topic,
                value=_NULL if record.value is None else record.value,
                key=record.key,
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
                headers=list(record.headers),
            )
        except (KafkaError, OSError, TimeoutError, AssertionError) as error:
            raise _translated(error, self._settings.bootstrap) from error
        bootstrap = self._settings.bootstrap
        return _PendingDelivery(record, acked, bootstrap=bootstrap, started=started)


class _PendingDelivery:
    """The answer to come for one record; whoever gives up may drop it."""

    __slots__ = ("_acked", "_bootstrap", "_record", "_started")

    def __init__(
        self, record: OutgoingRecord, acked: asyncio.Future[Any], *, bootstrap: str, started: float
    ) -> None:
        self._record = record
        self._acked = acked
        self._bootstrap = bootstrap
        self._started = started

    def __await__(self) -> Generator[Any, None, Delivery]:
        try:
            metadata = yield from self._acked
        except (KafkaError, OSError, TimeoutError) as error:
            raise _translated(error, self._bootstrap) from error
        latency_ms = (time.monotonic() - self._started) * 1000
        if metadata is None:
            partition = -1 if self._record.partition is None else self._record.partition
            return Delivery(
                topic=self._record.topic,
                partition=partition,
                offset=-1,
                timestamp_ms=-1,
                latency_ms=latency_ms,
            )
        return Delivery(
            topic=self._record.topic,
            partition=metadata.partition,
            offset=metadata.offset,
            timestamp_ms=-1 if metadata.timestamp is None else metadata.timestamp,
            latency_ms=latency_ms,
        )


def _translated(error: BaseException, bootstrap: str) -> KafkaPortError:
    if isinstance(error, AssertionError):
        return RefusedError(
            ErrorCode.unknown_topic_or_partition, what="sending", message=str(error)
        )
    if isinstance(error, NodeNotReadyError):
        return UnreachableError(
            f"{bootstrap} did not take the record",
            reason="the leader of its partition takes no connection",
            next_step="start that broker, or wait until another one leads: `partiscope doctor`",
        )
    errno = getattr(error, "errno", None)
    is_refusal = isinstance(error, KafkaError) and not isinstance(error, KafkaConnectionError)
    if is_refusal and isinstance(errno, int) and errno > 0:
        message = str(error.args[0]) if error.args else None
        return RefusedError(ErrorCode(errno), what="sending", message=message)
    return UnreachableError(
        f"{bootstrap} did not take the record",
        reason=reason_of(error),
        next_step="check that the brokers run and the address is right: `partiscope doctor`",
    )
