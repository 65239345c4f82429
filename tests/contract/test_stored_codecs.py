"""compression.type decides how a broker stores what producers send, on ours and on Kafka."""

from collections.abc import Mapping

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from broker.protocol.records import batch_crc_is_valid, iter_batch_headers
from tests.contract.operations_rig import unique, variants
from tests.support.node_cluster import NodeCluster
from tests.support.patience import WAIT_S

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
VALUE = b"the same word again and again " * 40
RECORDS = 20


@pytest.fixture(
    params=[
        pytest.param("our_cluster", id="ours"),
        pytest.param("kafka_cluster", id="kafka", marks=pytest.mark.kafka_oracle),
    ]
)
def cluster(request: pytest.FixtureRequest) -> NodeCluster:
    """One cluster of ours, one of Kafka."""
    found: NodeCluster = request.getfixturevalue(request.param)
    return found


def _topic(cluster: NodeCluster, configs: Mapping[str, str]) -> str:
    name = unique("codec")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    wanted = NewTopic(name, 1, 1, config=dict(configs))
    admin.create_topics([wanted])[name].result(WAIT_S)
    return name


def _produce(cluster: NodeCluster, topic: str, codec: str, value: bytes = VALUE) -> None:
    """One batch of an idempotent producer."""
    config: dict[str, str | int | bool] = {
        "bootstrap.servers": cluster.bootstrap,
        "compression.type": codec,
        "enable.idempotence": True,
        "linger.ms": 300,
    }
    producer = Producer(config)
    refused: list[KafkaError] = []
    for number in range(RECORDS):
        producer.produce(
            topic,
            value,
            key=f"{codec}-{number}".encode(),
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
    assert producer.flush(WAIT_S) == 0
    if refused:
        raise KafkaException(refused[0])


def _stored(cluster: NodeCluster, topic: str) -> list[tuple[int, bool, bool]]:
    """(codec, whether the broker gave the time, whether the CRC holds) of each stored batch."""
    (path,) = (path for node in cluster.ids for path in cluster.log_dir(node).glob(f"{topic}-0"))
    content = (path / f"{0:020d}.log").read_bytes()
    return [
        (
            header.codec,
            header.is_log_append_time,
            batch_crc_is_valid(content[at : at + header.size_bytes], header),
        )
        for header, at in iter_batch_headers(content)
    ]


def _read(cluster: NodeCluster, topic: str, count: int) -> list[tuple[bytes, bytes]]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": unique("reads"),
            "check.crcs": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    records = consumer.consume(count, timeout=WAIT_S)
    consumer.close()
    assert [record.offset() for record in records] == list(range(count))
    return [(record.key() or b"", record.value() or b"") for record in records]


@pytest.mark.parametrize(
    ("configs", "stored"),
    variants(
        [
            ({"compression.type": "producer"}, [0, 1, 2, 3, 4]),
            ({"compression.type": "uncompressed"}, [0] * 5),
            ({"compression.type": "gzip", "compression.gzip.level": "9"}, [1] * 5),
            ({"compression.type": "snappy"}, [2] * 5),
            ({"compression.type": "lz4", "compression.lz4.level": "12"}, [3] * 5),
            ({"compression.type": "zstd", "compression.zstd.level": "-5"}, [4] * 5),
            ({"compression.type": "zstd", "message.timestamp.type": "LogAppendTime"}, [4] * 5),
        ]
    ),
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else "",
)
def test_batches_are_stored_in_the_codec_of_the_topic(
    cluster: NodeCluster, configs: Mapping[str, str], stored: list[int]
) -> None:
    topic = _topic(cluster, configs)
    for codec in CODECS:
        _produce(cluster, topic, codec)
    is_append_time = "message.timestamp.type" in configs
    assert _stored(cluster, topic) == [(codec, is_append_time, True) for codec in stored]
    sent = [(f"{codec}-{number}".encode(), VALUE) for codec in CODECS for number in range(RECORDS)]
    assert _read(cluster, topic, len(sent)) == sent


def test_a_batch_that_is_too_large_once_stored_otherwise_is_refused(cluster: NodeCluster) -> None:
    configs = {"compression.type": "uncompressed", "max.message.bytes": "5000"}
    topic = _topic(cluster, configs)
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        _produce(cluster, topic, "gzip")
    assert _stored(cluster, topic) == []
