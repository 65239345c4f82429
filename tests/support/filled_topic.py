"""A topic with many small records, which take a search a while."""

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.patience import WAIT_S


def fill(bootstrap: str, topic: str, *, count: int, partitions: int = 3) -> None:
    """Create it, with records ``{"n": 0}``, ``{"n": 1}`` … in turn over its partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        created.result(WAIT_S)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(count):
        if number % 10_000 == 0:
            producer.flush(WAIT_S)  # its queue is bounded
        producer.produce(topic, b'{"n": %d}' % number, partition=number % partitions)
    assert producer.flush(WAIT_S) == 0
