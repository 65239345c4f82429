"""Ordinary consumer clients in groups, each reduced to "read these topics until you have n"."""

import asyncio
import threading
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.patience import WAIT_S, patience_s
from tests.support.settle import wait_until
from tests.support.wire import wait_for_topic

OFFSETS_TOPIC = "__consumer_offsets"
Position = tuple[int, int]
"""partition, offset"""


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def create_topic(bootstrap: str, partitions: int, *, replicas: int = 3) -> str:
    topic = unique("groups")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=replicas)
    admin.create_topics([new])[topic].result(WAIT_S)
    # kafka-python assigns nothing for minutes when the broker it asked was the last to know.
    wait_for_topic(bootstrap, topic, partitions)
    return topic


def produce(bootstrap: str, topic: str, count: int) -> set[Position]:
    """Spread values over the partitions by key; returns where they landed, all acknowledged."""
    landed: set[Position] = set()

    def delivered(error: KafkaError | None, message: Any) -> None:
        assert error is None, error
        landed.add(position_of(message))

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for n in range(count):
        producer.produce(topic, f"value {n}", str(n), on_delivery=delivered)
    assert producer.flush(WAIT_S) == 0
    assert len(landed) == count
    return landed


def confluent_consumer(bootstrap: str, group: str, **overrides: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": round(patience_s(6_000)),
            "heartbeat.interval.ms": 500,
            "topic.metadata.refresh.interval.ms": 1000,
            **overrides,
        }
    )


def position_of(message: Any) -> Position:
    return (message.partition(), message.offset())


def read_confluent(bootstrap: str, group: str, topic: str, count: int) -> set[Position]:
    """Read and commit `count` records with librdkafka."""
    consumer = confluent_consumer(bootstrap, group)
    consumer.subscribe([topic])
    read: set[Position] = set()
    deadline = time.monotonic() + WAIT_S
    while len(read) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            read.add(position_of(message))
    consumer.commit(asynchronous=False)
    consumer.close()
    return read


def read_aiokafka(bootstrap: str, group: str, topic: str, count: int) -> set[Position]:
    """Read and commit `count` records with aiokafka."""

    async def read() -> set[Position]:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            positions: set[Position] = set()
            async with asyncio.timeout(WAIT_S):
                while len(positions) < count:
                    for partition, messages in (await consumer.getmany(timeout_ms=200)).items():
                        positions |= {(partition.partition, m.offset) for m in messages}
            await consumer.commit()
            return positions
        finally:
            await consumer.stop()

    return asyncio.run(read())


def read_kafka_python(bootstrap: str, group: str, topic: str, count: int) -> set[Position]:
    """Read and commit `count` records with kafka-python."""
    with warnings.catch_warnings():
        # It reads its schemas in a way that Python 3.11 warns about.
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka import KafkaConsumer
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=1000,
    )
    # It assigns nothing, and never again, when it joins before it knows the topic.
    wait_until(lambda: bool(consumer.partitions_for_topic(topic)), f"partitions of {topic}")
    read: set[Position] = set()
    deadline = time.monotonic() + WAIT_S
    while len(read) < count and time.monotonic() < deadline:
        for partition, messages in consumer.poll(timeout_ms=200).items():
            read |= {(partition.partition, message.offset) for message in messages}
    consumer.commit()
    consumer.close()
    return read


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Committed offsets by partition, as a client without membership sees them."""
    consumer = confluent_consumer(bootstrap, group)
    wanted = [TopicPartition(topic, partition) for partition in range(partitions)]
    found = consumer.committed(wanted, timeout=WAIT_S)
    consumer.close()
    return {item.partition: item.offset for item in found if item.offset >= 0}


def read_offsets_topic(bootstrap: str) -> list[Any]:
    """Every record of ``__consumer_offsets`` up to its ends; markers of transactions, which other
    tests leave there, are none."""
    consumer = confluent_consumer(bootstrap, unique("auditor"), **{"enable.partition.eof": True})
    topic = consumer.list_topics(OFFSETS_TOPIC, timeout=WAIT_S).topics[OFFSETS_TOPIC]
    partitions = [TopicPartition(OFFSETS_TOPIC, partition, 0) for partition in topic.partitions]
    consumer.assign(partitions)
    found: list[Any] = []
    ended: set[int] = set()
    deadline = time.monotonic() + WAIT_S
    while len(ended) < len(partitions):
        assert time.monotonic() < deadline, f"{len(ended)} of {len(partitions)} partitions"
        for message in consumer.consume(1_000, timeout=0.1):
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition() or 0)
    consumer.close()
    return found


class PollingMember:
    """A group member that polls in a thread: its partitions, and everything it has read."""

    def __init__(self, bootstrap: str, group: str, topic: str, **overrides: object) -> None:
        self.assigned: set[int] = set()
        self.read: list[Position] = []
        self._stop = threading.Event()
        self._consumer = confluent_consumer(bootstrap, group, **overrides)
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.1)
            # Asked here only: librdkafka may block another thread that asks.
            self.assigned = {item.partition for item in self._consumer.assignment()}
            if message is not None and message.error() is None:
                self.read.append(position_of(message))
                self._consumer.commit(message=message, asynchronous=True)
        self._consumer.close()

    def close(self) -> None:
        """Leave the group."""
        self._stop.set()
        self._thread.join(WAIT_S)


@contextmanager
def members(
    count: int, bootstrap: str, group: str, topic: str, **overrides: object
) -> Iterator[list[PollingMember]]:
    """Several members at once; whoever is left leaves at the end."""
    running = [PollingMember(bootstrap, group, topic, **overrides) for _ in range(count)]
    try:
        yield running
    finally:
        for member in running:
            member.close()
