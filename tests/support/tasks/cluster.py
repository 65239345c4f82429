"""The cluster on which the tasks are done: topics with records, groups that lag, one that lives."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.installation import Installation
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until
from tests.support.tasks.prepared import (
    FACES,
    PLACED,
    SLOW,
    partitions_of,
    prepare,
)

RECORDS: Final = 600
PARTITIONS: Final = 6
STUCK_AT: Final = 20
HASTY: Final = "fleeting"
"""Topic with the shortest retention: its group loses unread data first."""
SLOW_BYTES: Final = 24_000_000
"""Of each topic that moves slowly, in two partitions."""
CHUNK_BYTES: Final = 50_000
TOPICS: Final = {"orders": (PARTITIONS, {"retention.ms": "172800000"}), "payments": (3, {}),
                 "audit": (2, {"cleanup.policy": "compact"}),
                 HASTY: (2, {"retention.ms": "14400000"})}  # fmt: skip
OWN_TOPICS: Final = ("bulk", "cfg", "grow", "old", "purge", "sent")
OWN_GROUPS: Final = ("gone", "late", "reader")


@contextmanager
def task_cluster(installation: Installation) -> Iterator[None]:
    """Fills it; ``shipping`` has a member until the end."""
    where: dict[str, Any] = {"bootstrap.servers": installation.bootstrap, "log_level": 0}
    _create(AdminClient(where))
    _produce(Producer({**where, "acks": "all"}))
    own = [(f"{group}-{face}", f"sent-{face}") for group in OWN_GROUPS for face in FACES]
    for group, topic in (("billing", "orders"), ("hasty", HASTY), *own):
        _commit(where, group, topic)
    prepare(installation)
    ended = threading.Event()
    member = threading.Thread(target=_read, args=(where, ended))
    member.start()
    try:
        wait_until(lambda: _is_told(installation), "all is in the store", story=installation.story)
        yield
    finally:
        ended.set()
        member.join()


def _create(admin: AdminClient) -> None:
    own: dict[str, Any] = {f"{name}-{face}": (2, {}) for name in OWN_TOPICS for face in FACES}
    made = [
        NewTopic(name, partitions, 2, config=config)
        for name, (partitions, config) in {**TOPICS, **own}.items()
    ]
    made += [
        NewTopic(
            name, partitions_of(name), replica_assignment=[list(brokers)] * partitions_of(name)
        )
        for name, brokers in PLACED.items()
    ]
    for future in admin.create_topics(made).values():
        future.result(WAIT_S)


def _produce(producer: Producer) -> None:
    for topic in (*TOPICS, *(f"{name}-{face}" for name in OWN_TOPICS for face in FACES)):
        for number in range(RECORDS if topic == "orders" else RECORDS // 6):
            if number == RECORDS - 1:  # surely the newest
                producer.flush(WAIT_S)
                time.sleep(0.05)
            producer.produce(
                topic,
                key=f"order-{number}",
                value=f'{{"n": {number}, "status": "{"failed" if number == 77 else "paid"}"}}',
                headers=[("trace", f"t{number}".encode())],
            )
    for face in FACES:
        _fill(producer, f"{SLOW}-{face}", SLOW_BYTES)
    assert producer.flush(WAIT_S) == 0


def _fill(producer: Producer, topic: str, size_bytes: int) -> None:
    chunk = random.Random(1).randbytes(CHUNK_BYTES)
    for number in range(size_bytes // CHUNK_BYTES):
        producer.produce(topic, value=chunk, partition=number % partitions_of(topic))
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0


def _commit(where: dict[str, Any], group: str, topic: str) -> None:
    consumer = Consumer({**where, "group.id": group})
    count = TOPICS[topic][0] if topic in TOPICS else 2
    at = [TopicPartition(topic, number, STUCK_AT) for number in range(count)]
    consumer.commit(offsets=at, asynchronous=False)
    consumer.close()


def _read(where: dict[str, Any], ended: threading.Event) -> None:
    settings = {"group.id": "shipping", "client.id": "shipper", "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500}  # fmt: skip
    consumer = Consumer({**where, **settings})
    consumer.subscribe(["payments"])
    while not ended.is_set():
        consumer.poll(0.2)
    consumer.close()


def _is_told(installation: Installation) -> bool:
    found = installation.aggregates()
    if found is None:
        return False
    topics = set(found.tables["partitions"].column("topic").to_pylist())
    groups = {row["group_id"]: row["status"] for row in found.tables["groups"].to_pylist()}
    own = {f"{name}-{face}" for name in OWN_GROUPS for face in FACES}
    is_judged = groups.get("billing") == "STOP" and groups.get("shipping") == "OK"
    return is_judged and set(TOPICS) <= topics and own <= groups.keys()
