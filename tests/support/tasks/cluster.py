"""The cluster on which the tasks are done: topics with records, groups that lag, one that lives."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.installation import Installation
from tests.support.settle import wait_until

FACES: Final = ("page", "terminal")
"""Each changes things of its own, whose names end with the face."""
RECORDS: Final = 600
PARTITIONS: Final = 6
STUCK_AT: Final = 20
MOVED_FROM: Final = (102, 103)
MOVED_TO: Final = (104, 101)
TOPICS: Final = {"orders": (PARTITIONS, {"retention.ms": "172800000"}), "payments": (3, {}),
                 "audit": (2, {"cleanup.policy": "compact"})}  # fmt: skip
OWN_TOPICS: Final = ("bulk", "cfg", "grow", "old", "purge", "sent")
OWN_GROUPS: Final = ("gone", "late", "reader")


@contextmanager
def task_cluster(installation: Installation) -> Iterator[None]:
    """Fills it; ``shipping`` has a member until the end."""
    where: dict[str, Any] = {"bootstrap.servers": installation.bootstrap, "log_level": 0}
    _create(AdminClient(where))
    _produce(Producer({**where, "acks": "all"}))
    own = [(f"{group}-{face}", f"sent-{face}") for group in OWN_GROUPS for face in FACES]
    for group, topic in (("billing", "orders"), *own):
        _commit(where, group, topic)
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
    made += [NewTopic(f"moved-{face}", 1, replica_assignment=[list(MOVED_FROM)]) for face in FACES]
    for future in admin.create_topics(made).values():
        future.result(30)


def _produce(producer: Producer) -> None:
    for topic in (*TOPICS, *(f"{name}-{face}" for name in OWN_TOPICS for face in FACES)):
        for number in range(RECORDS if topic == "orders" else RECORDS // 6):
            producer.produce(
                topic,
                key=f"order-{number}",
                value=f'{{"n": {number}, "status": "{"failed" if number == 77 else "paid"}"}}',
                headers=[("trace", f"t{number}".encode())],
            )
    assert producer.flush(30) == 0


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
