"""The demo load: topics and groups that give every screen something to show.

=============  ==================================================================================
orders         12 partitions, three replicas, Zipf keys: a few keys are hot
clicks         6 partitions placed by hand, nearly all on one broker: skew
payments       3 partitions, large values
audit          1 partition, a trickle
-------------  ----------------------------------------------------------------------------------
shipping       reads orders with two members and keeps up
billing        reads orders slower than they come: always behind, never without end
fraud-check    reads payments, but commits nothing on partition 0 while it lives: stuck
=============  ==================================================================================

About 200 records a second in all, or a multiple. Everything may exist already, from an earlier run.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from kio.schema.errors import ErrorCode

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.connections import settings_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError, RefusedError
from control.kafka.ports import NewTopic
from control.kafka.records.consumer import GroupConsumer
from control.kafka.records.producer import OutgoingRecord, ProducerOptions, RecordProducer
from control.messages.keys import KeyChooser, parse_keys
from control.messages.templates import Template
from control.model.ids import TopicPartition

BURST_S: Final = 0.5
"""Records are sent in bursts: the same load for fewer wake-ups."""
COMMIT_S: Final = 1.0
RETRY_S: Final = 2.0
LAG_MAX: Final = 30_000
LAG_MIN: Final = 5_000
_KEEPS_UP: Final = "shipping"
_LAGS: Final = "billing"
_IS_STUCK: Final = "fraud-check"
STUCK_AT: Final = 50
"""The stuck group commits up to this offset, so it is known, and stands still."""
GROUPS: Final = (_KEEPS_UP, _LAGS, _IS_STUCK)
_CONFIGS: Final = {"segment.bytes": str(2 << 20), "retention.bytes": str(16 << 20)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTopic:
    """A topic and what is written into it."""

    name: str
    partitions: int
    replication_factor: int
    records_per_s: int
    keys: str | None
    value: str
    is_skewed: bool = False


TOPICS: Final = (
    DemoTopic(
        name="orders",
        partitions=12,
        replication_factor=3,
        records_per_s=120,
        keys="zipf:500:1.3",
        value='{"order":{n},"customer":"{key}","cents":{random:100-99999},"note":"{pad:200}"}',
    ),
    DemoTopic(
        name="clicks",
        partitions=6,
        replication_factor=2,
        records_per_s=60,
        keys="uniform:2000",
        value='{"n":{n},"page":"/p/{random:1-500}","at":{ms},"agent":"{pad:300}"}',
        is_skewed=True,
    ),
    DemoTopic(
        name="payments",
        partitions=3,
        replication_factor=3,
        records_per_s=16,
        keys="uniform:300",
        value='{"payment":"{uuid}","cents":{random:100-99999},"proof":"{pad:1500}"}',
    ),
    DemoTopic(
        name="audit",
        partitions=1,
        replication_factor=3,
        records_per_s=4,
        keys=None,
        value='{"at":"{now}","event":{n}}',
    ),
)


def demo_settings(bootstrap: str) -> KafkaSettings:
    """The connection of the demo load, which brokers know by its client id."""
    return replace(settings_of(bootstrap), client_id="demo")


async def run(bootstrap: str, stop_event: asyncio.Event, *, times: int = 1) -> None:
    """Create what lacks, then produce and consume `times` the load until `stop_event` is set.

    A broker that goes away interrupts, but never ends it.
    """
    settings = demo_settings(bootstrap)
    work: list[Callable[[], Awaitable[None]]] = [
        lambda: _produce(settings, times),
        lambda: _keep_up(settings, _KEEPS_UP, "orders"),
        lambda: _keep_up(settings, _KEEPS_UP, "orders"),
        lambda: _lag_behind(settings, _LAGS, "orders", records_per_s=100 * times),
        lambda: _get_stuck(settings, _IS_STUCK, TopicPartition("payments", 0)),
    ]
    await _again_until_done(lambda: create_topics(settings), stop_event)
    tasks = [asyncio.create_task(_for_ever(one)) for one in work]
    try:
        await stop_event.wait()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def create_topics(settings: KafkaSettings) -> None:
    """Create the demo's topics where they lack, with as many replicas as there are brokers for.

    :raises KafkaPortError: the cluster does not answer or refuses.
    """
    async with KafkaAdmin.to(settings) as admin:
        brokers = [broker.id for broker in (await admin.describe_cluster()).brokers]
        for topic in TOPICS:
            try:
                await admin.create_topic(new_topic(topic, brokers))
            except RefusedError as error:
                if error.code is not ErrorCode.topic_already_exists:
                    raise


def new_topic(topic: DemoTopic, brokers: list[int]) -> NewTopic:
    """The topic for these brokers; a skewed one lies on the last broker but for one partition."""
    factor = min(topic.replication_factor, len(brokers))
    if not topic.is_skewed or len(brokers) < 2:
        return NewTopic(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=factor,
            configs=_CONFIGS,
        )
    heavy, first, second = brokers[-1], brokers[0], brokers[1]
    assignment = dict.fromkeys(range(topic.partitions - 1), (heavy, first)[:factor])
    assignment[topic.partitions - 1] = (first, second)[:factor]
    return NewTopic(name=topic.name, assignment=assignment, configs=_CONFIGS)


async def _again_until_done(once: Callable[[], Awaitable[None]], stop_event: asyncio.Event) -> None:
    while not stop_event.is_set():
        try:
            return await once()
        except KafkaPortError:
            await asyncio.sleep(RETRY_S)


async def _for_ever(once: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await once()
        except KafkaPortError:
            await asyncio.sleep(RETRY_S)


async def _produce(settings: KafkaSettings, times: int) -> None:
    rng = np.random.default_rng(1)
    writers = [
        _Writer(
            topic=topic,
            keys=parse_keys(topic.keys, rng),
            value=Template(topic.value, rng),
            records_per_burst=round(topic.records_per_s * BURST_S * times),
        )
        for topic in TOPICS
    ]
    options = ProducerOptions(acks="all", linger_ms=50, compression="lz4")
    async with RecordProducer(settings, options) as producer:
        due_s = time.monotonic()
        while True:
            sent = [await producer.enqueue(r) for writer in writers for r in writer.burst()]
            answers = await asyncio.gather(*sent, return_exceptions=True)
            if all(isinstance(answer, KafkaPortError) for answer in answers):
                await asyncio.sleep(RETRY_S)
            due_s = max(due_s + BURST_S, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())


@dataclass(slots=True, kw_only=True)
class _Writer:
    topic: DemoTopic
    keys: KeyChooser
    value: Template
    records_per_burst: int
    count: int = 0

    def burst(self) -> list[OutgoingRecord]:
        """The records of one BURST_S."""
        now_ms = int(time.time() * 1000)
        records = []
        for _ in range(self.records_per_burst):
            key = self.keys(self.count)
            value = self.value.render(n=self.count, key=key, now_ms=now_ms)
            records.append(OutgoingRecord(topic=self.topic.name, key=key, value=value))
            self.count += 1
        return records


async def _keep_up(settings: KafkaSettings, group_id: str, topic: str) -> None:
    async with GroupConsumer(settings, group_id=group_id, topics=(topic,)) as consumer:
        while True:
            await _read_for(consumer, COMMIT_S)


async def _lag_behind(
    settings: KafkaSettings, group_id: str, topic: str, *, records_per_s: int
) -> None:
    """Slower than the producer until LAG_MAX is reached, then faster down to LAG_MIN."""
    async with (
        KafkaAdmin.to(settings) as admin,
        GroupConsumer(settings, group_id=group_id, topics=(topic,)) as consumer,
    ):
        factor = 1
        while True:
            lag = await _lag(admin, group_id, topic)
            factor = 3 if lag > LAG_MAX else 1 if lag < LAG_MIN else factor
            for _ in range(30):
                await _read_for(
                    consumer, COMMIT_S, records_max=round(records_per_s * COMMIT_S * factor)
                )


async def _get_stuck(settings: KafkaSettings, group_id: str, stuck: TopicPartition) -> None:
    """Reads everything, commits everything but the stuck partition beyond its first records."""
    is_stuck = False

    def committed(key: TopicPartition, offset: int) -> int | None:
        nonlocal is_stuck
        if key != stuck:
            return offset
        if is_stuck:
            return None
        is_stuck = offset >= STUCK_AT
        return min(offset, STUCK_AT)

    async with GroupConsumer(settings, group_id=group_id, topics=(stuck.topic,)) as consumer:
        while True:
            await _read_for(consumer, COMMIT_S, committed=committed)


async def _lag(admin: KafkaAdmin, group_id: str, topic: str) -> int:
    committed = await admin.groups.committed_offsets(group_id)
    keys = [key for key in committed if key.topic == topic]
    ends = await admin.offsets.list_offsets(keys) if keys else {}
    return sum(max(0, ends[key].offset - committed[key]) for key in keys)


async def _read_for(
    consumer: GroupConsumer,
    seconds: float,
    *,
    records_max: int | None = None,
    committed: Callable[[TopicPartition, int], int | None] = lambda key, offset: offset,
) -> None:
    """Poll once, commit what `committed` makes of it, then rest until the time is over."""
    started = time.monotonic()
    polled = await consumer.poll(wait_ms=round(seconds * 1000), records_max=records_max)
    offsets = {key: committed(key, records.next_offset) for key, records in polled.items()}
    await consumer.commit({key: at for key, at in offsets.items() if at is not None})
    await asyncio.sleep(max(0.0, started + seconds - time.monotonic()))
