"""A busy cluster: 600 uneven partitions, and groups that fare in eight different ways."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.commits import commit
from tests.support.kafka_oracle import ready_admin
from tests.support.patience import WAIT_S

NODES: Final = (101, 102, 103)
LIVE: Final = {"orders": 12, "clicks": 2, "many": 10}
STILL: Final = {"held": 3, "left": 4, "back": 1, "short": 1}
BULK: Final = {"bulk-a": 300, "bulk-b": 180, "bulk-c": 87}
TOPICS: Final = {**LIVE, **STILL, **BULK}
VERDICTS: Final = {
    "healthy": "OK",
    "slow": "WARN",
    "stuck": "STALL",
    "one-stuck": "STALL",
    "stopped": "STOP",
    "rewinding": "REWIND",
    "below-start": "LOST",
}
"""``never`` has committed nothing, so there is nothing to judge."""
RATES: Final = {"orders": 60, "clicks": 30, "many": 40}
"""Records per second."""
SLOW_RATE: Final = 8
STUCK_PARTITION: Final = 7
REWIND_EVERY_S: Final = 10.0
PRELOADED: Final = 1_000


class Scene:
    """Everything that goes on until ``freeze``."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin: AdminClient = ready_admin(**{"bootstrap.servers": bootstrap})
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        """Topics, records, groups."""
        self._create()
        self._fill()
        commit(self._admin, "stopped", {("left", n): 100 for n in range(4)})
        commit(self._admin, "below-start", {("short", 0): 10})
        for future in self._admin.delete_records([TopicPartition("short", 0, 200)]).values():
            future.result(WAIT_S)
        for work in (
            self._produce,
            self._rewind,
            lambda: self._read("healthy", "orders"),
            lambda: self._read("slow", "clicks", rate=SLOW_RATE),
            lambda: self._read("stuck", "held", hold=range(3)),
            lambda: self._read("one-stuck", "many", hold=(STUCK_PARTITION,)),
            lambda: self._read("never", "orders", commits=False),
        ):
            self._start(work)

    def freeze(self) -> None:
        """From now on nothing changes: figures can be compared at leisure."""
        self._stop.set()
        for thread in self._threads:
            thread.join(WAIT_S)

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _create(self) -> None:
        topics = [NewTopic(name, count, 3) for name, count in {**LIVE, **STILL}.items()]
        firsts = {"bulk-a": (101,), "bulk-b": (102,), "bulk-c": NODES}
        for name, count in BULK.items():
            placed = [
                sorted(NODES, key=lambda n, at=at: n != at)  # type: ignore[misc]
                for at in (firsts[name][p % len(firsts[name])] for p in range(count))
            ]
            topics.append(NewTopic(name, count, replica_assignment=placed))
        for topic in topics:
            self._admin.create_topics([topic])[topic.topic].result(WAIT_S)

    def _fill(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for name, partitions in TOPICS.items():
            each = PRELOADED if name in STILL else 5 if name in BULK else 0
            for index in range(each * partitions):
                producer.produce(name, b"x" * (index % 50), partition=index % partitions)
                producer.poll(0)
        assert producer.flush(WAIT_S) == 0

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20})
        turn = 0
        while not self._stop.wait(0.5):
            for name, rate in RATES.items():
                for _ in range(rate // 2):
                    turn += 1
                    producer.produce(name, b"live", partition=turn % LIVE[name])
            producer.poll(0)
        producer.flush(WAIT_S)

    def _rewind(self) -> None:
        offset = 900
        while not self._stop.is_set():
            commit(self._admin, "rewinding", {("back", 0): offset})
            offset -= 5
            self._stop.wait(REWIND_EVERY_S)

    def _read(
        self,
        group: str,
        topic: str,
        *,
        rate: int | None = None,
        hold: range | tuple[int, ...] = (),
        commits: bool = True,
    ) -> None:
        """A member; what it holds it has begun and does not get on with."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "queued.max.messages.kbytes": 1_024,
            }
        )
        consumer.subscribe([topic])
        places: dict[int, int] = {}
        while not self._stop.is_set():
            begun_s = time.monotonic()
            for message in consumer.consume(rate or 500, timeout=0.5):
                number, offset = int(message.partition() or 0), int(message.offset() or 0)
                if message.error() is None and (number not in hold or number not in places):
                    places[number] = offset + 1
            if commits and places:
                offsets = [TopicPartition(topic, n, at) for n, at in places.items()]
                consumer.commit(offsets=offsets, asynchronous=False)
            self._stop.wait(max(0.0, 1.0 - (time.monotonic() - begun_s)))
        consumer.close()


@contextmanager
def busy(bootstrap: str) -> Iterator[Scene]:
    """The scene, running; it is frozen at the end."""
    scene = Scene(bootstrap)
    try:
        scene.begin()
        yield scene
    finally:
        scene.freeze()
