"""A producer that never stops, and the check that its promises were kept."""

import itertools
import threading
import time
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.support.patience import WAIT_S

TOPIC: Final = "ledger"
NOT_YET: Final = (
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
)
"""What an election under way answers; clients ask again."""


SILENCE_S_MAX: Final = 30.0


class SteadyProducer:
    """Produces 0, 1, 2, … to partition 0 with idempotence until it is stopped, at most so many a
    second.

    `acknowledged` maps a number to its offset; `ack_times` are monotonic seconds.
    """

    def __init__(self, bootstrap: str, *, per_second: float = float("inf")) -> None:
        self._per_second = per_second
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 60_000,
                # Left alone, librdkafka waits up to 10 s before it tries a broker again, however
                # soon that is back: a gap would tell of the client.
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self.acknowledged: dict[int, int] = {}
        self.failed: list[str] = []
        self.ack_times: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number, begun = 0, time.monotonic()
        while not self._stop.is_set():
            is_due = number <= self._per_second * (time.monotonic() - begun)
            if is_due and len(self._producer) < 500:
                self._producer.produce(
                    TOPIC, str(number).encode(), partition=0, on_delivery=self._delivered(number)
                )
                number += 1
            self._producer.poll(0.001)

    def _delivered(self, number: int) -> Any:
        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                self.failed.append(f"{number}: {error}")
                return
            self.acknowledged[number] = message.offset()
            self.ack_times.append(time.monotonic())

        return delivered

    def wait_acknowledged(self, more: int, timeout_s: float = WAIT_S) -> None:
        """Until that many more records are acknowledged."""
        goal = len(self.acknowledged) + more
        deadline = time.monotonic() + timeout_s
        while len(self.acknowledged) < goal:
            assert time.monotonic() < deadline, f"stuck at {len(self.acknowledged)}, want {goal}"
            time.sleep(0.01)

    def stop(self) -> None:
        """End and wait for everything in flight."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(WAIT_S) == 0

    def longest_gap_s(self, since: float) -> float:
        """The longest time without an acknowledgement."""
        times = [since, *(t for t in self.ack_times if t >= since)]
        return max(after - before for before, after in itertools.pairwise(times))


def log_end(consumer: Consumer, partition: TopicPartition, timeout_s: float = WAIT_S) -> int:
    """The high watermark; a new leader that does not know it yet is asked again (KIP-207)."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return int(consumer.get_watermark_offsets(partition, timeout=timeout_s)[1])
        except KafkaException as error:
            if error.args[0].code() not in NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def consume_all(bootstrap: str, count: int) -> list[int]:
    """Every number in the log, in its order."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "log_level": 0})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    end = log_end(consumer, TopicPartition(TOPIC, 0))
    found: list[int] = []
    read_s = time.monotonic()
    while len(found) < max(end, count) and time.monotonic() - read_s < SILENCE_S_MAX:
        for message in consumer.consume(1000, 0.5):
            assert message.error() is None, message.error()
            found.append(int(message.value() or b"-1"))
            read_s = time.monotonic()
    consumer.close()
    return found


def compare_ledger(producer: SteadyProducer, found: list[int]) -> dict[str, int]:
    """How much was acknowledged and read, and what went wrong."""
    return {
        "acknowledged": len(producer.acknowledged),
        "read": len(found),
        "lost": len(producer.acknowledged.keys() - set(found)),
        "duplicates": len(found) - len(set(found)),
        "reordered": sum(after < before for before, after in itertools.pairwise(found)),
        "failed": len(producer.failed),
    }


def check_ledger(producer: SteadyProducer, found: list[int]) -> None:
    """All acknowledged records are there, once, at the offset that was promised, in order."""
    assert not producer.failed
    assert found == sorted(set(found)), "a record is there twice, or out of order"
    assert set(found) >= producer.acknowledged.keys()
    assert all(found[offset] == number for number, offset in producer.acknowledged.items())
