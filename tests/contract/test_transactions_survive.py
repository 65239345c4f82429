"""Exactly once under kill -9: what was read is in the output once, whoever dies in between."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from broker.coordinator.config import partition_for
from tests.support.cluster import LocalCluster
from tests.support.patience import WAIT_S, patience_s

SOURCE: Final = "source"
TARGET: Final = "target"
GROUP: Final = "copier"
INPUTS: Final = 1_500
STEP: Final = 25
"""Inputs of a transaction."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """Three brokers, a full source and an empty target."""
    internal = {"transaction.state.log.num.partitions": "4", "transaction.state.log.min.isr": "1"}
    with LocalCluster(tmp_path, overrides=internal) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
        for name, done in admin.create_topics(
            [NewTopic(SOURCE, 1, 3), NewTopic(TARGET, 3, 3)]
        ).items():
            assert done.result(WAIT_S) is None, name
        producer = Producer({"bootstrap.servers": running.bootstrap, "log_level": 0})
        for number in range(INPUTS):
            producer.produce(SOURCE, value=b"%d" % number, partition=0)
            producer.poll(0)
        assert producer.flush(WAIT_S) == 0
        yield running


class Copier:
    """Copies records with their offsets in transactions; one that fails is begun anew."""

    def __init__(self, bootstrap: str) -> None:
        self._where = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._producer = self._new_producer()

    def _new_producer(self) -> Producer:
        config = {
            **self._where,
            "transactional.id": GROUP,
            "transaction.timeout.ms": 60_000,
            "reconnect.backoff.max.ms": 500,
        }
        producer = Producer(config)
        until = time.monotonic() + WAIT_S
        while True:
            try:
                producer.init_transactions(5)
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > until:
                    raise
            else:
                return producer

    def copy(self, first: int) -> int:
        """Copy from an offset on; answers the next one, the same where it failed."""
        last = min(first + STEP, INPUTS)
        try:
            self._producer.begin_transaction()
            for number in range(first, last):
                self._producer.produce(TARGET, value=b"%d" % number, partition=number % 3)
            offsets = [TopicPartition(SOURCE, 0, last)]
            consumer = Consumer({**self._where, "group.id": GROUP})
            metadata = consumer.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(offsets, metadata, WAIT_S)
            consumer.close()
            self._producer.commit_transaction(WAIT_S)
        except KafkaException:
            # Whether it was committed is told by the offsets of the group alone.
            self._producer = self._new_producer()
            return self.committed()
        return last

    def committed(self) -> int:
        """The offset that the group has committed, none of it pending."""
        consumer = Consumer({**self._where, "group.id": GROUP, "isolation.level": "read_committed"})
        try:
            (found,) = consumer.committed([TopicPartition(SOURCE, 0)], WAIT_S)
            return max(found.offset, 0)
        finally:
            consumer.close()


def coordinator_of(cluster: LocalCluster, topic: str, partition: int) -> int:
    """The leader of a partition, as a running broker knows it."""
    metadata = cluster.metadata(next(iter(cluster.processes)))
    (found,) = [it for it in metadata.topics if it.name == topic]
    return next(int(it.leader_id) for it in found.partitions if it.partition_index == partition)


def seen(bootstrap: str) -> Counter[bytes]:
    """How often each value is in the target, for who reads committed records."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(TARGET, number, 0) for number in range(3)])
    counts: Counter[bytes] = Counter()
    ended: set[int] = set()
    until = time.monotonic() + WAIT_S
    while len(ended) < 3 or sum(counts.values()) < INPUTS:
        assert time.monotonic() < until, (len(counts), ended)
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error() is not None:
            ended.add(message.partition() or 0)
        else:
            counts[message.value() or b""] += 1
    consumer.close()
    return counts


# Soak: where a broker dies just as its client asks for the group, librdkafka 2.16 waits for ever.
@pytest.mark.soak
@pytest.mark.timeout(400)
def test_each_input_is_in_the_output_once(cluster: LocalCluster) -> None:
    copier = Copier(cluster.bootstrap)
    offset, round_ = copier.copy(0), 0
    victim: int | None = None
    until = time.monotonic() + patience_s(200)
    while offset < INPUTS:
        assert time.monotonic() < until, cluster.story()
        offset, round_ = copier.copy(offset), round_ + 1
        if round_ % 8 == 4:
            places = (
                ("__transaction_state", partition_for(GROUP, 4)),
                ("__consumer_offsets", partition_for(GROUP, 4)),
                (TARGET, round_ % 3),
            )
            victim = coordinator_of(cluster, *places[round_ // 8 % 3])
            cluster.kill(victim)
        elif round_ % 8 == 0 and victim is not None:
            cluster.restart(victim)
            victim = None
    assert set(seen(cluster.bootstrap).values()) == {1}
    assert copier.committed() == INPUTS
