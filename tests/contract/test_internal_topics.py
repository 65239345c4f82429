"""Internal topics as Kafka's own formatters show them, on a real Kafka."""

import json
import uuid
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from control.kafka.records.reader import RecordReader, Start, StartKind
from control.messages.decoding.decoder import Decoder
from tests.contract.operations_rig import unique
from tests.support.kafka_oracle import KafkaCluster, ready_admin, run_tool
from tests.support.patience import WAIT_S

pytestmark = pytest.mark.kafka_oracle
CONSUMERS = "org.apache.kafka.tools.consumer"
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
    for created in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        created.result(WAIT_S)
    producer = Producer({**where, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"1", key=b"k")
    producer.commit_transaction(WAIT_S)
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


@pytest.fixture(scope="module")
def shared(kafka_today: KafkaCluster) -> KafkaCluster:
    """A share group that has read ten records one by one: snapshots and updates of its state."""
    topic, group = unique("shared"), unique("sharers")
    where = {"bootstrap.servers": kafka_today.bootstrap}
    admin = ready_admin(**where)
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(WAIT_S)
    producer = Producer(where)
    for number in range(10):
        producer.produce(topic, str(number), partition=number % 2)
    assert producer.flush(WAIT_S) == 0
    named = ("--alter", "--entity-type", "groups", "--entity-name", group)
    earliest = ("--add-config", "share.auto.offset.reset=earliest")
    tool_of(kafka_today, "org.apache.kafka.tools.ConfigCommand", *named, *earliest)
    read = ("--topic", topic, "--group", group, "--max-messages", "5", "--timeout-ms", "20000")
    for _ in range(2):  # what follows a snapshot is an update
        tool_of(kafka_today, f"{CONSUMERS}.ConsoleShareConsumer", *read)
    return kafka_today


def tool_of(cluster: KafkaCluster, tool: str, *words: str) -> str:
    where = ("--bootstrap-server", cluster.bootstrap)
    done = run_tool(tool, *where, *words, version=cluster.version)
    assert done.returncode == 0, done
    return done.stdout


def by_kafka(cluster: KafkaCluster, topic: str, formatter: str) -> list[dict[str, Any]]:
    """What Kafka's console consumer prints of the whole topic, a document each."""
    done = run_tool(
        f"{CONSUMERS}.ConsoleConsumer",
        *("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--from-beginning"),
        *("--formatter", f"{CONSUMERS}.{formatter}", "--timeout-ms", "5000"),
        version=cluster.version,
    )
    return documents(done.stdout)


def documents(printed: str) -> list[dict[str, Any]]:
    """Kafka's formatters print no line feed: documents stand behind each other, and behind the last
    one, on its line, that the consumer's wait is over."""
    decoder, found, at = json.JSONDecoder(), [], printed.find('{"')
    while at >= 0:
        document, end = decoder.raw_decode(printed, at)
        found.append(document)
        at = printed.find('{"', end)
    return found


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


async def test_the_state_of_a_share_group_reads_as_kafka_prints_it(shared: KafkaCluster) -> None:
    topic = "__share_group_state"
    theirs = by_kafka(shared, topic, "group.share.ShareGroupStateMessageFormatter")
    ours = await by_us(shared, topic)
    plain = [without_names(it) for it in ours]
    assert [it for it in theirs if it not in plain] == []
    assert {it["key"]["name"] for it in ours} == {"ShareSnapshotKey", "ShareUpdateKey"}
    assert {it["key"]["type"] for it in theirs} == {0, 1}, "snapshots and updates"


def without_names(told: dict[str, Any]) -> dict[str, Any]:
    """Kafka's formatters leave out the names of the schemas."""
    return {
        part: None
        if its is None
        else {name: value for name, value in its.items() if name != "name"}
        for part, its in told.items()
    }
