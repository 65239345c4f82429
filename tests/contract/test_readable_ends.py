"""The collector tells where a consumer that reads committed records gets nothing more, on real
Kafka: behind a marker, aborted records, an open transaction."""

from collections.abc import Iterator
from functools import partial

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from control.kafka.connection.settings import KafkaSettings
from control.model import ids
from tests.support.collecting import becomes, collecting
from tests.support.commits import commit
from tests.support.kafka_oracle import KafkaCluster, ready_admin
from tests.support.patience import WAIT_S

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.timeout(240)]

TOPIC = "ends-with"
ENDS = ("marker", "aborted", "open", "records", "markers alone")
COMMITTED = 3


@pytest.fixture(scope="module")
def open_producer(kafka_cluster: KafkaCluster) -> Iterator[Producer]:
    """Three committed records in each partition, then what its name says; and groups there."""
    admin = ready_admin(**{"bootstrap.servers": kafka_cluster.bootstrap})
    admin.create_topics([NewTopic(TOPIC, len(ENDS), 1)])[TOPIC].result(WAIT_S)

    def producer(name: str) -> Producer:
        config = {"bootstrap.servers": kafka_cluster.bootstrap, "transactional.id": name}
        made = Producer({**config, "log_level": 0})
        made.init_transactions(WAIT_S)
        return made

    def write(by: Producer, partitions: range | list[int], records: int) -> None:
        by.begin_transaction()
        for partition in partitions:
            for number in range(records):
                by.produce(TOPIC, str(number).encode(), partition=partition)
        assert by.flush(WAIT_S) == 0

    ended, opened = producer("ends-with-ended"), producer("ends-with-open")
    write(ended, range(len(ENDS)), COMMITTED)
    ended.commit_transaction(WAIT_S)
    write(ended, [1], 50)
    ended.abort_transaction(WAIT_S)
    write(ended, [3], 1)
    ended.commit_transaction(WAIT_S)
    write(opened, [2], 2)
    commit(admin, "stands", {(TOPIC, number): COMMITTED for number in range(len(ENDS))})
    commit(admin, "behind", {(TOPIC, number): 1 for number in range(len(ENDS))})
    yield opened
    admin.delete_topics([TOPIC])[TOPIC].result(WAIT_S)


async def test_where_nothing_follows_is_told_until_something_does(
    kafka_cluster: KafkaCluster, open_producer: Producer
) -> None:
    settings = KafkaSettings(bootstrap=kafka_cluster.bootstrap)
    async with collecting(settings) as (_, collected):

        def told(number: int) -> tuple[int | None, bool]:
            row = collected.leaders[ids.TopicPartition(TOPIC, number)]
            return row.readable_offset, (row.high_watermark or 0) > COMMITTED

        for number, name in enumerate(ENDS):
            wanted = None if name == "records" else COMMITTED
            await becomes(partial(told, number), (wanted, True))
        open_producer.commit_transaction(WAIT_S)
        await becomes(partial(told, ENDS.index("open")), (None, True))
