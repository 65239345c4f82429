"""Random topics on a cluster, written by librdkafka: all codecs, binary keys, doubled headers,
deleted beginnings, transactions that end or stay open, and times in order or not."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.oracle.messages.searches import SearchedTopic
from tests.oracle.messages.topics import (
    KEYS,
    NAMES,
    NO_PRODUCER,
    NOW_MS,
    VALUES,
    Header,
    Part,
    Written,
    random_bytes,
    random_time,
)
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_CONFIG: Final = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}
_TRANSACTION_MS: Final = 900_000
"""The longest that Kafka grants."""


class _Transaction:
    """A transactional producer, and what it wrote since it began."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self.is_open = False
        self.written: list[tuple[int, int]] = []
        producer.init_transactions(WAIT_S)


class KafkaTopic:
    """A topic and its writers: what it holds is what the broker acknowledged."""

    def __init__(self, bootstrap: str, name: str, dice: Random) -> None:
        self._bootstrap, self._name, self._dice = bootstrap, name, dice
        self._is_ordered = dice.random() < 0.5
        self._at_ms: dict[int, int] = {}
        self._ended = 0
        self.parts = [Part() for _ in range(dice.randint(1, 4))]
        self._plain = [self._producer(codec) for codec in CODECS]
        has_transactions = dice.random() < 0.5
        self._transactions = [
            _Transaction(self._producer(dice.choice(CODECS), f"{name}-{number}"))
            for number in range(2 if has_transactions else 0)
        ]
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        new = NewTopic(name, len(self.parts), 1, config=_CONFIG)
        self._admin.create_topics([new])[name].result(WAIT_S)

    def write(self) -> SearchedTopic:
        """Batches and markers in random order, and what a reader finds then."""
        for _ in range(self._dice.choice((1, 12, 40))):
            if self._transactions and self._dice.random() < 0.6:
                self._step(self._dice.choice(self._transactions))
            else:
                self._batch(self._dice.choice(self._plain))
        self._settle()
        self._delete_beginnings()
        return SearchedTopic(
            settings=self._bootstrap,
            name=self._name,
            parts=self.parts,
            is_ordered=self._is_ordered,
            tells_producers=False,
        )

    def close(self) -> None:
        """Without it and its transactions."""
        for transaction in self._transactions:
            if transaction.is_open:
                transaction.producer.abort_transaction(WAIT_S)
        self._admin.delete_topics([self._name])[self._name].result(WAIT_S)

    def _producer(self, codec: str, transaction: str = "") -> Producer:
        config = {"bootstrap.servers": self._bootstrap, "compression.type": codec, "log_level": 0}
        if transaction:
            config |= {"transactional.id": transaction, "transaction.timeout.ms": _TRANSACTION_MS}
        return Producer(config)

    def _step(self, it: _Transaction) -> None:
        if not it.is_open:
            it.producer.begin_transaction()
            it.is_open = True
        if not it.written or self._dice.random() < 0.7:
            it.written += self._batch(it.producer)
            return
        if self._dice.random() < 0.5:
            it.producer.commit_transaction(WAIT_S)
        else:
            it.producer.abort_transaction(WAIT_S)
            for number, offset in it.written:
                self.parts[number].aborted_offsets.add(offset)
        self._ended += len({number for number, _ in it.written})
        it.written, it.is_open = [], False

    def _batch(self, producer: Producer) -> list[tuple[int, int]]:
        """Writes one; where its records lie."""
        number = self._dice.randrange(len(self.parts))
        placed: list[tuple[int, int]] = []
        for _ in range(self._dice.randint(1, 8)):
            self._record(producer, number, placed)
        assert producer.flush(WAIT_S) == 0
        return placed

    def _record(self, producer: Producer, number: int, placed: list[tuple[int, int]]) -> None:
        dice = self._dice
        key, value = random_bytes(dice, KEYS), random_bytes(dice, VALUES)
        names = [name for name in NAMES if name]
        headers: tuple[Header, ...] = tuple(
            (dice.choice(names), random_bytes(dice, KEYS)) for _ in range(dice.choice((0, 0, 1, 3)))
        )
        if self._is_ordered:
            at_ms = self._at_ms.get(number, NOW_MS - 5_000) + dice.choice((0, 1, 1, 900))
            self._at_ms[number] = at_ms
        else:
            at_ms = random_time(dice) or 1  # librdkafka takes 0 for now

        def landed(error: object, message: Any) -> None:
            assert error is None, error
            placed.append((number, message.offset()))
            self.parts[number].records.append(
                Written(number, message.offset(), at_ms, key, value, headers, NO_PRODUCER)
            )

        producer.produce(
            self._name,
            value,
            key,
            number,
            timestamp=at_ms,
            headers=list(headers),
            on_delivery=landed,
        )

    def _settle(self) -> None:
        """Until all markers are written: producers hear of an end before that."""
        wait_until(self._are_markers_written, "the markers of transactions")
        now_ms = time.time_ns() // 1_000_000
        for number, part in enumerate(self.parts):
            part.records.sort()
            offsets = {it.offset for it in part.records}
            part.markers = dict.fromkeys(set(range(part.end)) - offsets, now_ms)
            pending = [at for it in self._transactions for its, at in it.written if its == number]
            part.stable = min(pending, default=part.end)

    def _are_markers_written(self) -> bool:
        everything = {"isolation.level": "read_uncommitted", "group.id": "oracle", "log_level": 0}
        consumer = Consumer({"bootstrap.servers": self._bootstrap, **everything})
        for number, part in enumerate(self.parts):
            _, part.end = consumer.get_watermark_offsets(TopicPartition(self._name, number), WAIT_S)
        consumer.close()
        return sum(part.end - len(part.records) for part in self.parts) == self._ended

    def _delete_beginnings(self) -> None:
        for number, part in enumerate(self.parts):
            if self._dice.random() < 0.3:
                part.start = self._dice.randint(0, part.stable)
                place = TopicPartition(self._name, number, part.start)
                self._admin.delete_records([place])[place].result(WAIT_S)
                part.records = [it for it in part.records if it.offset >= part.start]
                part.markers = {at: its for at, its in part.markers.items() if at >= part.start}


@contextmanager
def kafka_topic(bootstrap: str, name: str, dice: Random) -> Iterator[SearchedTopic]:
    """A random topic for as long as it is searched."""
    topic = KafkaTopic(bootstrap, name, dice)
    try:
        yield topic.write()
    finally:
        topic.close()
