"""Key rules of produce, for 100,000 keys each: partitions that real clients chose."""

import random
from collections.abc import Sequence
from functools import partial

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.records.reader import RecordReader, Start, StartKind
from control.messages.partitioners import KeyRule, partition_for
from control.model.ids import TopicPartition
from tests.contract.operations_rig import end_offsets, unique
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import run_tool
from tests.support.patience import WAIT_S
from tests.support.settle import eventually

pytestmark = pytest.mark.thorough

KEYS = 100_000
PARTITIONS = 7


@pytest.fixture(scope="module")
def keys() -> Sequence[str]:
    """Of all lengths that the hashes treat apart, with characters of one to four bytes."""
    dice = random.Random(40)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789-_äß€漢😀"
    found: set[str] = set()
    while len(found) < KEYS:
        found.add("".join(dice.choices(letters, k=dice.randint(1, 23))))
    return sorted(found)


def topic_on(cluster: LocalCluster) -> str:
    name = unique("keys")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for created in admin.create_topics([NewTopic(name, PARTITIONS, 1)]).values():
        created.result(WAIT_S)
    return name


async def _records(cluster: LocalCluster, topic: str) -> int:
    async with KafkaAdmin.to(cluster.bootstrap) as admin:
        return sum((await end_offsets(admin, topic)).values())


async def chosen(cluster: LocalCluster, topic: str) -> dict[bytes, int]:
    """The partition in which each key lies."""
    found: dict[bytes, int] = {}
    async with RecordReader(cluster.bootstrap) as reader:
        for number in range(PARTITIONS):
            key = TopicPartition(topic, number)
            async for record in reader.read_through(key, Start(kind=StartKind.EARLIEST)):
                assert record.key is not None
                found[record.key] = number
    return found


@pytest.mark.parametrize(
    ("rule", "partitioner"),
    [
        (KeyRule.CRC32, "consistent_random"),
        (KeyRule.FNV1A, "fnv1a_random"),
        (KeyRule.MURMUR2, "murmur2_random"),
    ],
)
async def test_librdkafka_chooses_alike(
    our_cluster: LocalCluster, keys: Sequence[str], rule: KeyRule, partitioner: str
) -> None:
    topic = topic_on(our_cluster)
    producer = Producer(
        {"bootstrap.servers": our_cluster.bootstrap, "partitioner": partitioner, "linger.ms": 20}
    )
    for number, key in enumerate(keys):
        if number % 10_000 == 0:
            producer.flush(WAIT_S)
        producer.produce(topic, b"", key=key)
    assert producer.flush(WAIT_S) == 0
    await agree(our_cluster, topic, keys, rule)


@pytest.mark.kafka_oracle
@pytest.mark.usefixtures("kafka_libs")
async def test_the_java_client_chooses_alike(
    our_cluster: LocalCluster, keys: Sequence[str]
) -> None:
    topic = topic_on(our_cluster)
    told = run_tool(
        "org.apache.kafka.tools.ConsoleProducer",
        *("--bootstrap-server", our_cluster.bootstrap, "--topic", topic),
        *("--property", "parse.key=true", "--property", "key.separator=\t"),
        stdin="".join(f"{key}\tv\n" for key in keys),
    )
    assert told.returncode == 0, told.stdout + told.stderr
    # The tool's process goes on, so that its last batches are sent after it.
    await eventually(partial(_records, our_cluster, topic), len(keys))
    await agree(our_cluster, topic, keys, KeyRule.MURMUR2)


async def agree(cluster: LocalCluster, topic: str, keys: Sequence[str], rule: KeyRule) -> None:
    ours = {key.encode(): partition_for(rule, key.encode(), PARTITIONS) for key in keys}
    assert await chosen(cluster, topic) == ours
