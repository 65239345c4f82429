"""A producer at a steady pace over a topic's partitions: what it waited, and what must be kept."""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.support.patience import patience_s

LARGE_VALUE: Final = 64 << 10
MARK: Final = b"#"
"""Begins the values of a paced producer; a topic may hold other records."""
FLUSH_S: Final = patience_s(120)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """A record that the cluster promised to keep; times in monotonic seconds."""

    partition: int
    offset: int
    sent_s: float
    waited_s: float


class PacedProducer:
    """Idempotent, ``acks=all``; a context manager. Never skips a beat: what a slow cluster holds
    up is sent late, and its wait counts from when it was due."""

    def __init__(
        self, bootstrap: str, topic: str, *, partitions: int, per_s: float, value_bytes: int = 500
    ) -> None:
        self._topic, self._partitions = topic, partitions
        self._every_s, self._value_bytes = 1 / per_s, value_bytes
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "message.timeout.ms": 120_000,
                "log_level": 0,
            }
        )
        self.acks: dict[int, Ack] = {}
        self.failed: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        left = self._producer.flush(FLUSH_S)
        assert kind is not None or left == 0, f"{left} records were never answered"

    def waits_s(self, since_s: float, until_s: float) -> list[float]:
        """Seconds that each record sent in this time waited for its acknowledgement, sorted."""
        acks = list(self.acks.values())
        return sorted(ack.waited_s for ack in acks if since_s <= ack.sent_s < until_s)

    def _run(self) -> None:
        started_s, number = time.monotonic(), 0
        while not self._stop.is_set():
            due_s = started_s + number * self._every_s
            left_s = due_s - time.monotonic()
            if left_s > 0:
                self._producer.poll(left_s)
                continue
            value = b"%s%d." % (MARK, number)
            self._producer.produce(
                self._topic,
                value.ljust(self._value_bytes, b"x"),
                partition=number % self._partitions,
                on_delivery=self._delivered(number, due_s),
            )
            number += 1

    def _delivered(self, number: int, due_s: float) -> Any:
        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                self.failed.append(f"{number}: {error}")
                return
            waited_s = time.monotonic() - due_s
            place = {"partition": message.partition(), "offset": message.offset()}
            self.acks[number] = Ack(sent_s=due_s, waited_s=waited_s, **place)

        return delivered


def check_kept(bootstrap: str, topic: str, producer: PacedProducer) -> None:
    """Every acknowledged record is there once, where it was promised; none was refused."""
    assert not producer.failed
    promised = {number: (ack.partition, ack.offset) for number, ack in producer.acks.items()}
    found: dict[int, tuple[int, int]] = {}
    for message in read_all(bootstrap, topic, {p for p, _ in promised.values()}):
        value = message.value()
        if value.startswith(MARK):
            number = int(value[1 : value.index(b".")])
            assert number not in found, f"record {number} is there twice"
            found[number] = (message.partition(), message.offset())
    assert found == promised


def read_all(bootstrap: str, topic: str, partitions: Iterable[int]) -> list[Any]:
    """Every record of some partitions, as far as their high watermarks are now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "check",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    places = [TopicPartition(topic, partition, 0) for partition in partitions]
    # A partition that goes on growing, alone at its leader, may never be told to be at its end.
    ends = {place.partition: _end_of(consumer, place) for place in places}
    consumer.assign(places)
    open_ends, found = {partition for partition, end in ends.items() if end > 0}, []
    deadline_s = time.monotonic() + FLUSH_S
    while open_ends:
        assert time.monotonic() < deadline_s, f"{topic} could not be read to its end: {open_ends}"
        for message in consumer.consume(1000, 0.5):
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            if message.error() is None:
                found.append(message)
            if message.error() is not None or (offset or 0) + 1 >= ends[partition]:
                open_ends.discard(partition)
    consumer.close()
    return found


def _end_of(consumer: Consumer, place: TopicPartition) -> int:
    """A new leader does not tell its high watermark before it has caught up."""
    deadline_s = time.monotonic() + FLUSH_S
    while True:
        try:
            return int(consumer.get_watermark_offsets(place, timeout=FLUSH_S)[1])
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)


def fill(bootstrap: str, topic: str, sizes: Mapping[int, int], *, acks: str = "all") -> None:
    """At least so many bytes into each partition, in large records."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "batch.size": 2 * LARGE_VALUE,
            "log_level": 0,
        }
    )
    refused: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            refused.append(error)

    for partition, size in sizes.items():
        for _ in range(-(-size // LARGE_VALUE)):
            while len(producer) > 200:
                producer.poll(0.05)
            producer.produce(topic, b"x" * LARGE_VALUE, partition=partition, on_delivery=delivered)
    assert producer.flush(FLUSH_S) == 0
    assert not refused, refused[:3]
