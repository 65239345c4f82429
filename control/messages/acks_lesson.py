"""The lesson of acks: the same records with acks 0, 1 and all, while their leader is killed.

Three partitions of a topic of its own are led by the broker that is killed, one for each kind of
acknowledgement. Afterwards they are read: what was acknowledged, and what is there.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError
from control.kafka.ports import NewTopic
from control.kafka.records.producer import (
    ACKS,
    Delivery,
    OutgoingRecord,
    ProducerOptions,
    RecordProducer,
)
from control.kafka.records.reader import RecordReader, Start, StartKind
from control.model.ids import TopicPartition
from control.model.units import counted

TOPIC_PREFIX: Final = "acks-lesson-"
REPLICAS: Final = 3
BEFORE_S: Final = 1.0
AFTER_S: Final = 2.0
RECORDS_PER_S: Final = 400
_TICK_S: Final = 0.01
_ANSWERS_S: Final = 30.0
_IN_SYNC_S: Final = 60.0
_POLL_S: Final = 0.3

StartAgain = Callable[[], Awaitable[None]]
Outage = Callable[[], AbstractAsyncContextManager[StartAgain]]
"""Keeps the broker stopped for as long as its context lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcksResult:
    """The fate of the records of one kind of acknowledgement."""

    acks: str
    sent: int
    acknowledged: int
    """With acks 0 the client takes every record as acknowledged that it has sent off."""
    survived: int
    """Of all sent, each counted once."""
    lost: int
    """Acknowledged, and not there."""
    written_twice: int
    """Sent anew without an answer, though the first attempt had been written."""

    @property
    def words(self) -> str:
        """``acks 1: 1,200 sent, 1,180 acknowledged, 1,178 survived; 2 acknowledged ones lost``."""
        lost = f"{self.lost:,} acknowledged ones are lost" if self.lost else "nothing lost"
        twice = f", {self.written_twice:,} written twice" if self.written_twice else ""
        return (
            f"acks {self.acks}: {self.sent:,} sent, {self.acknowledged:,} acknowledged, "
            f"{self.survived:,} survived; {lost}{twice}"
        )


@dataclass(slots=True)
class _Sent:
    """Records of one kind of acknowledgement, by number."""

    acks: str
    sent: int = 0
    acknowledged: set[int] = field(default_factory=set)


class LessonError(Exception):
    """The cluster is not one to learn this on; the text says why."""


async def place_lesson(admin: KafkaAdmin, broker: int) -> tuple[int, ...]:
    """The replicas that every partition of the lesson gets, the broker to kill first.

    :raises LessonError: too few brokers, or no such broker.
    """
    ids = sorted(each.id for each in (await admin.describe_cluster()).brokers)
    if broker not in ids:
        raise LessonError(f"no broker {broker} runs; there are {', '.join(map(str, ids))}")
    others = [each for each in ids if each != broker]
    if len(others) < REPLICAS - 1:
        found = counted(len(ids), "broker")
        raise LessonError(f"it needs {REPLICAS} brokers, so that two go on; {found} run")
    return (broker, *others[: REPLICAS - 1])


async def teach_acks(
    settings: KafkaSettings, broker: int, outage: Outage, *, stopped_s: float
) -> tuple[AcksResult, ...]:
    """Send while the broker is stopped for so long, wait until all replicas are in sync again, and
    read what is there. The topic is deleted in the end, and those that were left over.

    :raises LessonError: too few brokers.
    :raises OutageRefusedError: the broker cannot be stopped.
    :raises KafkaPortError: the cluster does not answer.
    """
    topic = f"{TOPIC_PREFIX}{secrets.token_hex(4)}"
    async with KafkaAdmin.to(settings) as admin:
        replicas = await place_lesson(admin, broker)
        await _delete_lessons(admin)
        assignment = dict.fromkeys(range(len(ACKS)), replicas)
        configs = {"min.insync.replicas": "2"}
        await admin.create_topic(NewTopic(name=topic, assignment=assignment, configs=configs))
        try:
            sent = await _send(settings, topic, outage, stopped_s=stopped_s)
            await _until_in_sync(admin, topic)
            return tuple([await _result(settings, topic, n, it) for n, it in enumerate(sent)])
        finally:
            await _delete_lessons(admin)


async def _delete_lessons(admin: KafkaAdmin) -> None:
    for topic in await admin.topics():
        if topic.name.startswith(TOPIC_PREFIX):
            await admin.delete_topic(topic.name)


async def _send(
    settings: KafkaSettings, topic: str, outage: Outage, *, stopped_s: float
) -> Sequence[_Sent]:
    """Records of all three kinds at one pace: before the outage, during it, and after."""
    sent = [_Sent(acks=acks) for acks in ACKS]
    ended = asyncio.Event()
    sending = asyncio.gather(
        *(_send_one(settings, topic, number, it, ended) for number, it in enumerate(sent))
    )
    try:
        await asyncio.sleep(BEFORE_S)
        async with outage() as start_again:
            await asyncio.sleep(stopped_s)
            await start_again()
        await asyncio.sleep(AFTER_S)
    finally:
        ended.set()
        await sending
    return sent


async def _send_one(
    settings: KafkaSettings, topic: str, partition: int, sent: _Sent, ended: asyncio.Event
) -> None:
    awaited: set[asyncio.Task[None]] = set()
    async with RecordProducer(settings, ProducerOptions(acks=sent.acks)) as producer:
        while not ended.is_set():
            for _ in range(max(int(RECORDS_PER_S * _TICK_S), 1)):
                number, sent.sent = sent.sent, sent.sent + 1
                record = OutgoingRecord(topic=topic, partition=partition, value=b"%d" % number)
                settling = asyncio.create_task(_settle(producer, record, number, sent))
                awaited.add(settling)
                settling.add_done_callback(awaited.discard)
            await asyncio.sleep(_TICK_S)
        if awaited:
            await asyncio.wait(awaited, timeout=_ANSWERS_S)
        for task in awaited:
            task.cancel()


async def _settle(
    producer: RecordProducer, record: OutgoingRecord, number: int, sent: _Sent
) -> None:
    try:
        delivery: Awaitable[Delivery] = await producer.enqueue(record)
        await delivery
    except KafkaPortError:
        return  # sent, and not acknowledged: that is what the lesson counts
    sent.acknowledged.add(number)


async def _until_in_sync(admin: KafkaAdmin, topic: str) -> None:
    """All replicas have what the partitions have, so that what is read is what survived."""
    async with asyncio.timeout(_IN_SYNC_S):
        while True:
            (found,) = await admin.topics([topic])
            if all(len(it.isr) == len(it.replicas) for it in found.partitions):
                return
            await asyncio.sleep(_POLL_S)


async def _result(settings: KafkaSettings, topic: str, partition: int, sent: _Sent) -> AcksResult:
    found = Counter([number async for number in _numbers(settings, topic, partition)])
    return AcksResult(
        acks=sent.acks,
        sent=sent.sent,
        acknowledged=len(sent.acknowledged),
        survived=len(found),
        lost=len(sent.acknowledged - found.keys()),
        written_twice=sum(count > 1 for count in found.values()),
    )


async def _numbers(settings: KafkaSettings, topic: str, partition: int) -> AsyncIterator[int]:
    async with RecordReader(settings, is_masked=False) as reader:
        start = Start(kind=StartKind.EARLIEST)
        async for record in reader.read_through(TopicPartition(topic, partition), start):
            yield int(record.value or b"-1")
