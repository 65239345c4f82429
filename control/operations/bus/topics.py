"""The operations bus: two topics of one partition on the bundled cluster, commands and events.

Both are compacted. Of a move's progress, which is told once a second, only the newest counts: all
of it has one key per operation. Every other event has its own key, and stays. A reassignment's key
is its operation id, and each later act on it has a key of its own, so compaction keeps both.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Final

from kio.schema.errors import ErrorCode

from control.kafka.admin.bus_topics import ensure_topic
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.connections import settings_of
from control.kafka.connection.retry import PASSING_CODES
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError, NoBusError, RefusedError, UnreachableError
from control.kafka.records.producer import OutgoingRecord, ProducerOptions, RecordProducer
from control.kafka.records.reader import FetchedRecord, RecordReader, Start, StartKind
from control.model.ids import TopicPartition
from control.move.commands import (
    OPERATIONS_TOPIC,
    Command,
    ReassignCommand,
    encode_command,
)
from control.move.events import (
    EVENTS_TOPIC,
    Event,
    EventKind,
    encode_event,
)
from control.move.state import OperationState, take_event
from control.operations.bus.chain import LINK
from control.operations.bus.proof import proof_headers
from control.operations.bus.unreadable import Unreadable

COMMANDS: Final = TopicPartition(OPERATIONS_TOPIC, 0)
EVENTS: Final = TopicPartition(EVENTS_TOPIC, 0)
ELECTION_S: Final = 15.0
"""Longer than Kafka takes to find a broker dead and another leader."""
_OUTAGE_POLL_S: Final = 0.5
_RECORD_MAX: Final = 16 << 20
"""Bytes: a plan travels in one record."""
_KEPT: Final = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": str(_RECORD_MAX),
}
COMPACTED: Final = {
    **_KEPT,
    "cleanup.policy": "compact",
    "segment.bytes": str(_RECORD_MAX + (1 << 20)),
    "min.cleanable.dirty.ratio": "0.1",
}
_CONFIGS: Final = {OPERATIONS_TOPIC: COMPACTED, EVENTS_TOPIC: COMPACTED}
"""A segment is compacted once another one follows it, and holds one record at least."""
PROGRESS: Final = b"/progress"
"""How the keys of events end that tell progress."""

_PASSING: Final = PASSING_CODES | {
    ErrorCode.out_of_order_sequence_number,
    ErrorCode.unknown_producer_id,
    ErrorCode.invalid_producer_epoch,
    ErrorCode.not_enough_replicas,
    ErrorCode.not_enough_replicas_after_append,
    ErrorCode.network_exception,
}
"""Refusals of a record that say nothing of it, and are over once the bus has its leaders."""


class BusUnreachableError(UnreachableError):
    """The bus did not acknowledge a record; whether it has it shows only when it is read."""


class Outage:
    """How long it is borne that the bus does not answer: a broker of it may just have died."""

    def __init__(
        self, patience_s: float, tell: Callable[[KafkaPortError | None], None] = lambda _: None
    ) -> None:
        """``tell`` hears why it begins, and None at its end."""
        self._patience_s = patience_s
        self._tell = tell
        self._since_s: float | None = None

    def is_over(self) -> None:
        """It answers."""
        if self._since_s is not None:
            self._since_s = None
            self._tell(None)

    async def wait_after(self, error: KafkaPortError) -> None:
        """A moment, or the error again once patience is at its end."""
        if isinstance(error, UnreachableError) and error.is_for_good:
            raise error
        now_s = asyncio.get_running_loop().time()
        if self._since_s is None:
            self._since_s = now_s
            self._tell(error)
        if now_s - self._since_s >= self._patience_s:
            raise error
        await asyncio.sleep(_OUTAGE_POLL_S)


def is_outage(error: KafkaPortError) -> bool:
    """Whether it passes once the bus answers, or has its leaders."""
    if isinstance(error, RefusedError):
        return error.code in _PASSING
    return isinstance(error, UnreachableError) and not error.is_for_good


class Bus:
    """Reads and writes both topics. Use as an async context manager."""

    def __init__(self, settings: KafkaSettings | str | None, *, whose: str = "") -> None:
        """``settings`` None: everything is refused, since none is known of the cluster at
        ``whose``."""
        self._settings = None if settings is None else settings_of(settings)
        self._whose = whose
        self.unreadable = Unreadable()
        self._producer: RecordProducer | None = None
        self._starting = asyncio.Lock()

    @property
    def settings(self) -> KafkaSettings:
        """How it is reached.

        :raises NoBusError: none is known.
        """
        if self._settings is None:
            raise NoBusError(self._whose or "this cluster")
        return self._settings

    async def __aenter__(self) -> Bus:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the producer, if there is one."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.__aexit__()

    async def ensure_topics(self) -> None:
        """Create both topics where they lack, on up to three brokers."""
        async with KafkaAdmin.to(self.settings) as admin:
            for name, configs in _CONFIGS.items():
                await ensure_topic(admin, name, configs=configs)

    async def publish_command(self, command: Command) -> None:
        """Durable when it returns; one that was read without proof gets none."""
        key, value = _key_of_command(command), encode_command(command)
        await self.send(COMMANDS, key, value, is_proven=not command.is_foreign)

    async def publish_event(self, event: Event) -> None:
        """Durable when it returns."""
        await self.send(EVENTS, _key_of(event), encode_event(event))

    async def read_commands(self, *, of: str | None = None) -> tuple[list[Command], int]:
        """All commands, or those of one operation, oldest first, and the offset behind the last;
        unreadable ones are left out."""
        commands, next_offset = list[Command](), 0
        async for record in self.read_from(COMMANDS):
            next_offset = record.offset + 1
            if of is not None and operation_of(record) != of:
                continue
            if (command := self.unreadable.command(record)) is not None:
                commands.append(command)
        return commands, next_offset

    async def each_event(self) -> AsyncIterator[Event]:
        """All events that are there now, oldest first; unreadable records are left out."""
        async for record in self.read_from(EVENTS):
            if (event := self.unreadable.event(record)) is not None:
                yield event

    async def read_states(self, *, of: str | None = None) -> dict[str, OperationState]:
        """States by the events of all operations, or of one; of several progress events in a row
        only the newest is decoded."""
        states: dict[str, OperationState] = {}
        progress: dict[str, FetchedRecord] = {}
        async for record in self.read_from(EVENTS):
            if of is not None and operation_of(record) != of:
                continue
            key = record.key or b""
            if key.endswith(PROGRESS):
                progress[key.removesuffix(PROGRESS).decode(errors="replace")] = record
                continue
            if (event := self.unreadable.event(record)) is not None:
                self._take(states, progress.pop(event.operation_id, None))
                take_event(states, event)
        for newest in progress.values():
            self._take(states, newest)
        return states

    def _take(self, states: dict[str, OperationState], record: FetchedRecord | None) -> None:
        event = None if record is None else self.unreadable.event(record)
        if event is not None:
            take_event(states, event)

    async def ends(self) -> dict[TopicPartition, int]:
        """The offsets behind the last records of both topics; a topic that lacks is left out."""
        outage = Outage(ELECTION_S)
        while True:
            try:
                async with RecordReader(self.settings) as reader:
                    return {
                        partition: end
                        for partition in (EVENTS, COMMANDS)
                        if (end := await _end_of(reader, partition)) is not None
                    }
            except UnreachableError as error:
                await outage.wait_after(error)

    async def read_from(
        self, partition: TopicPartition, offset: int = 0
    ) -> AsyncIterator[FetchedRecord]:
        """In order, to the end as it was at the beginning; after an outage from where it was."""
        outage, start = Outage(ELECTION_S), Start(kind=StartKind.EARLIEST)
        if offset:
            start = Start(kind=StartKind.OFFSET, value=offset)
        while True:
            try:
                async with RecordReader(self.settings) as reader:
                    async for record in reader.read_through(partition, start):
                        outage.is_over()
                        start = Start(kind=StartKind.OFFSET, value=record.offset + 1)
                        yield record
                return
            except RefusedError as error:
                if error.code is ErrorCode.unknown_topic_or_partition:
                    return
                raise
            except UnreachableError as error:
                await outage.wait_after(error)

    async def send(
        self,
        partition: TopicPartition,
        key: bytes,
        value: bytes | None,
        *,
        is_proven: bool = True,
    ) -> None:
        """Write a record, durable when it returns; without a value compaction drops its key.

        :raises BusUnreachableError: nobody acknowledged it.
        :raises RefusedError: the bus does not take this record.
        :raises ProofKeyError: this installation has no key."""
        headers = proof_headers(partition.topic, key, value or b"") if is_proven else ()
        record = OutgoingRecord(
            topic=partition.topic,
            partition=partition.partition,
            key=key,
            value=value,
            headers=headers,
        )
        try:
            producer = await self._started()
            try:
                await producer.send(record)
            except KafkaPortError:
                await self._forget(producer)
                raise
        except RefusedError as error:
            if error.code not in _PASSING:
                raise
            raise _unreachable(error) from error
        except UnreachableError as error:
            raise _unreachable(error) from error

    async def _started(self) -> RecordProducer:
        async with self._starting:
            if self._producer is None:
                options = ProducerOptions(acks="all", is_idempotent=True, request_max=_RECORD_MAX)
                producer = RecordProducer(self.settings, options)
                self._producer = await producer.__aenter__()
            return self._producer

    async def _forget(self, producer: RecordProducer) -> None:
        """After a batch that was given up aiokafka's idempotent producer counts on, and the broker
        refuses all that follows as out of order: the next record needs another producer."""
        if self._producer is producer:
            self._producer = None
            await producer.__aexit__()


async def _end_of(reader: RecordReader, partition: TopicPartition) -> int | None:
    latest = Start(kind=StartKind.LATEST)
    try:
        return (await reader.positions([partition], latest))[partition]
    except RefusedError as error:
        if error.code is ErrorCode.unknown_topic_or_partition:
            return None
        raise


def operation_of(record: FetchedRecord) -> str:
    """The operation that a record of either topic is about, by its key: what follows a slash tells
    what of it."""
    return (record.key or b"").partition(b"/")[0].decode(errors="replace")


def _key_of_command(command: Command) -> bytes:
    """Key by which compaction keeps one command. Each act has its own: a copy of an old one that
    somebody writes must not take the place of a newer one."""
    if isinstance(command, ReassignCommand):
        return command.operation_id.encode()
    return f"{command.operation_id}/{command.action.value}/{command.submitted_ms}".encode()


def _key_of(event: Event) -> bytes:
    if event.kind is EventKind.PROGRESS:
        return event.operation_id.encode() + PROGRESS
    if event.kind is EventKind.JOURNAL and LINK in event.data:  # every link stays
        return f"{event.operation_id}/{event.data[LINK]['number']}".encode()
    if event.kind is EventKind.JOURNAL:  # compaction keeps the outcome alone
        return event.operation_id.encode()
    return f"{event.operation_id}/{secrets.token_hex(8)}".encode()


def _unreachable(error: KafkaPortError) -> BusUnreachableError:
    return BusUnreachableError(error.title, reason=error.reason, next_step=error.next_step)
