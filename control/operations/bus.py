"""The operations bus: two topics of one partition on the bundled cluster, commands and events."""

from __future__ import annotations

import asyncio
from typing import Final

from kio.schema.errors import ErrorCode

from control.kafka.admin import KafkaAdmin
from control.kafka.bus_topics import ensure_topic
from control.kafka.connections import settings_of
from control.kafka.errors import KafkaPortError, RefusedError, UnreachableError
from control.kafka.producer import OutgoingRecord, ProducerOptions, RecordProducer
from control.kafka.reader import RecordReader, Start, StartKind
from control.kafka.settings import KafkaSettings
from control.model.ids import TopicPartition
from control.operations.commands import OPERATIONS_TOPIC, Command, decode_command, encode_command
from control.operations.errors import CommandDecodeError
from control.operations.events import EVENTS_TOPIC, Event, decode_event, encode_event

COMMANDS: Final = TopicPartition(OPERATIONS_TOPIC, 0)
EVENTS: Final = TopicPartition(EVENTS_TOPIC, 0)
ELECTION_S: Final = 15.0
"""Longer than Kafka takes to find a broker dead and another leader."""
_OUTAGE_POLL_S: Final = 0.5
_READ_MAX: Final = 1_000_000
_RECORD_MAX: Final = 16 << 20
"""Bytes: a plan travels in one record."""
_CONFIGS: Final = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": str(_RECORD_MAX),
}


class Outage:
    """How long it is borne that the bus does not answer: a broker of it may just have died."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since_s: float | None = None

    def is_over(self) -> None:
        """It answers."""
        self._since_s = None

    async def wait_after(self, error: KafkaPortError) -> None:
        """A moment, or the error again once patience is at its end."""
        now_s = asyncio.get_running_loop().time()
        self._since_s = now_s if self._since_s is None else self._since_s
        if now_s - self._since_s >= self._patience_s:
            raise error
        await asyncio.sleep(_OUTAGE_POLL_S)


class Bus:
    """Reads and writes both topics. Use as an async context manager."""

    def __init__(self, settings: KafkaSettings | str) -> None:
        self.settings = settings_of(settings)
        self._producer: RecordProducer | None = None
        self._starting = asyncio.Lock()

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
            for name in (OPERATIONS_TOPIC, EVENTS_TOPIC):
                await ensure_topic(admin, name, configs=_CONFIGS)

    async def publish_command(self, command: Command) -> None:
        """Durable when it returns."""
        await self._send(COMMANDS, command.operation_id, encode_command(command))

    async def publish_event(self, event: Event) -> None:
        """Durable when it returns."""
        await self._send(EVENTS, event.operation_id, encode_event(event))

    async def read_commands(self) -> tuple[list[Command], int]:
        """All commands, oldest first, and the offset behind them; unreadable ones are left out."""
        commands = []
        values, next_offset = await self._read_all(COMMANDS)
        for value in values:
            try:
                commands.append(decode_command(value))
            except CommandDecodeError:
                continue
        return commands, next_offset

    async def read_events(self) -> list[Event]:
        """All events, oldest first; unreadable records are left out."""
        events = []
        values, _ = await self._read_all(EVENTS)
        for value in values:
            try:
                events.append(decode_event(value))
            except CommandDecodeError:
                continue
        return events

    async def _read_all(self, partition: TopicPartition) -> tuple[list[bytes | None], int]:
        outage = Outage(ELECTION_S)
        while True:
            try:
                async with RecordReader(self.settings) as reader:
                    start = Start(kind=StartKind.EARLIEST)
                    records = await reader.browse([partition], start, limit=_READ_MAX)
                break
            except RefusedError as error:
                if error.code is ErrorCode.unknown_topic_or_partition:
                    return [], 0
                raise
            except UnreachableError as error:
                await outage.wait_after(error)
        records.sort(key=lambda record: record.offset)
        next_offset = records[-1].offset + 1 if records else 0
        return [record.value for record in records], next_offset

    async def _send(self, partition: TopicPartition, key: str, value: bytes) -> None:
        async with self._starting:
            if self._producer is None:
                options = ProducerOptions(acks="all", is_idempotent=True, request_max=_RECORD_MAX)
                producer = RecordProducer(self.settings, options)
                self._producer = await producer.__aenter__()
        record = OutgoingRecord(
            topic=partition.topic, partition=partition.partition, key=key.encode(), value=value
        )
        await self._producer.send(record)
