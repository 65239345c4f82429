"""Internal topics as Kafka's own formatters show them, on a real Kafka."""

import json
import uuid
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from control.kafka.records.reader import RecordReader, Start, StartKind
from control.messages.decoding.decoder import Decoder
from tests.support.kafka_oracle import KafkaCluster, ready_admin, run_tool

pytestmark = pytest.mark.kafka_oracle
FORMATTERS = {
    "__consumer_offsets": ("OffsetsMessageFormatter", "GroupMetadataMessageFormatter"),
    "__transaction_state": ("TransactionLogMessageFormatter",),
}


@pytest.fixture(scope="module")
def cluster(kafka_cluster: KafkaCluster) -> KafkaCluster:
    """A group of each kind that has committed, and a transaction that was committed."""
    where = {"bootstrap.servers": kafka_cluster.bootstrap}
    topic = f"internal-{uuid.uuid4().hex[:6]}"
    admin = ready_admin(**where)
    from confluent_kafka.cimpl import NewTopic

    for created in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        created.result(20)
    producer = Producer({**where, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"1", key=b"k")
    producer.commit_transaction(30)
    for protocol in ("classic", "consumer"):
        consumer = Consumer(
            {**where, "group.id": f"{topic}-{protocol}", "group.protocol": protocol,
             "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )  # fmt: skip
        consumer.subscribe([topic])
        assert consumer.poll(30) is not None
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        consumer.close()
    return kafka_cluster


def by_kafka(cluster: KafkaCluster, topic: str, formatter: str) -> list[dict[str, Any]]:
    """What Kafka's console consumer prints of the whole topic, a document each."""
    package = "org.apache.kafka.tools.consumer"
    done = run_tool(
        f"{package}.ConsoleConsumer",
        *("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--from-beginning"),
        *("--formatter", f"{package}.{formatter}", "--timeout-ms", "5000"),
    )
    # The end of its wait is logged behind the last document, on the same line.
    decoder = json.JSONDecoder()
    lines = done.stdout.splitlines()
    return [decoder.raw_decode(line)[0] for line in lines if line.startswith("{")]


async def by_us(cluster: KafkaCluster, topic: str) -> list[dict[str, Any]]:
    decoder = Decoder(topic)
    async with RecordReader(cluster.bootstrap) as reader:
        keys = await reader.partitions(topic)
        found = await reader.browse(keys, Start(kind=StartKind.EARLIEST), limit=1_000)
    told = []
    for record in found.records:
        decoded = decoder.record(record)
        assert decoded.key is not None
        assert not decoded.key.error
        assert decoded.value is None or not decoded.value.error
        told.append(
            {
                "key": decoded.key.document,
                "value": None if decoded.value is None else decoded.value.document,
            }
        )
    return told


@pytest.mark.parametrize("topic", FORMATTERS)
async def test_records_read_as_kafka_prints_them(cluster: KafkaCluster, topic: str) -> None:
    for formatter in FORMATTERS[topic]:
        theirs = by_kafka(cluster, topic, formatter)
        assert theirs
        # Read afterwards: Kafka's tool writes a record of its own group.
        plain = [without_names(each) for each in await by_us(cluster, topic)]
        for each in theirs:
            assert each in plain


def without_names(told: dict[str, Any]) -> dict[str, Any]:
    """Kafka's formatters leave out the names of the schemas."""
    return {
        part: None
        if its is None
        else {name: value for name, value in its.items() if name != "name"}
        for part, its in told.items()
    }
