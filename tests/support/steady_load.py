"""A topic that is written to at a steady rate, as fast as 50,000 small records a second."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Producer

from tests.support.patience import WAIT_S

BATCH: Final = 1_000


class SteadyLoad:
    """A producer that is behind hurries, so that the rate holds on average."""

    def __init__(self, bootstrap: str, topic: str, *, per_s: int, partitions: int) -> None:
        self._topic, self._per_s, self._partitions = topic, per_s, partitions
        where = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._producer = Producer({**where, "linger.ms": 20, "acks": 1})
        self._is_over = threading.Event()
        self._sent = 0
        self.reached_per_s = 0.0
        """Records a second that were acknowledged, once it is over."""

    def send(self, count: int | None = None) -> float:
        """So many records; None: until it is over. The records a second that were acknowledged."""
        began_s = time.monotonic()
        while not self._is_over.is_set() and (count is None or self._sent < count):
            for number in range(self._sent, self._sent + BATCH):
                self._produce(number)
            self._sent += BATCH
            self._producer.poll(0)
            time.sleep(max(began_s + self._sent / self._per_s - time.monotonic(), 0))
        assert self._producer.flush(WAIT_S) == 0
        self.reached_per_s = self._sent / (time.monotonic() - began_s)
        return self.reached_per_s

    @contextmanager
    def running(self) -> Iterator[None]:
        """It sends beside the body."""
        sending = threading.Thread(target=self.send, daemon=True)
        sending.start()
        try:
            yield
        finally:
            self._is_over.set()
            sending.join()

    def _produce(self, number: int) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic, b"record %d" % number, partition=number % self._partitions
                )
            except BufferError:
                self._producer.poll(0.05)
            else:
                return
