"""Records that another client wrote, read and told as JSON, sent again from that, and read by the
other client: the same bytes."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from control.kafka.records.producer import RecordProducer
from control.kafka.records.reader import Bounds, Looking, RecordReader, Start, StartKind
from control.messages.decoding.decoder import Decoder
from control.messages.lines import LineFormat
from control.views.messages.files import json_line
from tests.oracle.messages.topics import KEYS, NAMES, NOW_MS, VALUES, Header, random_bytes
from tests.support.cluster import NOBODY_DIES, LocalCluster
from tests.support.patience import WAIT_S

ORDINARY: Final = 500
SOAK: Final = 10_000
PARTITIONS: Final = 3
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
TEXTS: Final = (
    b'{"a":1e400,"a":1.10}', b'{"n": 9223372036854775808, "s": "\\ud800"}', b"[" * 900,
    "👨\u200d👩 \u0645\u06cc\u200c\u062e \x1b[2J\r\n\t\0".encode(), b'{"a": NaN}', b"\xef\xbb\xbfa",
    b'{"text": "' + b"x" * 158_000 + b'"}', b'{\n "lines": [1,\r\n2]\n}', b'{"base64": "AA=="}',
)  # fmt: skip
Sent = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("trips")
    with LocalCluster(folder, brokers=1, overrides=NOBODY_DIES) as cluster:
        yield cluster.bootstrap


def topic_of(bootstrap: str, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = NewTopic(name, PARTITIONS, 1, config={"retention.ms": "-1"})
    admin.create_topics([wanted])[name].result(WAIT_S)
    return name


def random_record(dice: Random) -> Sent:
    names = [name for name in NAMES if name]
    count = dice.choice((0, 1, 3))
    headers = tuple((dice.choice(names), random_bytes(dice, KEYS)) for _ in range(count))
    key = random_bytes(dice, KEYS)
    value = random_bytes(dice, VALUES if dice.random() < 0.5 else TEXTS)
    at_ms = NOW_MS - dice.choice((1, 1_000, 10**11, 10**12))
    return dice.randrange(PARTITIONS), at_ms, key, value, headers


def write(bootstrap: str, topic: str, records: list[Sent]) -> None:
    for number, codec in enumerate(CODECS):
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        for partition, at_ms, key, value, headers in records[number :: len(CODECS)]:
            producer.produce(topic, value, key, partition, timestamp=at_ms, headers=list(headers))
        assert producer.flush(WAIT_S) == 0


def headers_of(message: Any) -> list[Header]:
    found: list[Header] = message.headers() or []
    return found


def there(bootstrap: str, topic: str, count: int) -> list[Sent]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "oracle", "log_level": 0})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found: list[Any] = []
    while some := consumer.consume(count - len(found), timeout=WAIT_S):
        found += [
            (it.partition(), it.timestamp()[1], it.key(), it.value(), tuple(headers_of(it)))
            for it in some
        ]
        if len(found) == count:
            break
    consumer.close()
    return sorted(found, key=repr)


async def round_trips(bootstrap: str, topic: str, count: int, seed: int) -> None:
    dice = Random(seed)
    records = [random_record(dice) for _ in range(count)]
    source, target = topic_of(bootstrap, topic), topic_of(bootstrap, f"{topic}-again")
    write(bootstrap, source, records)
    assert there(bootstrap, source, count) == sorted(records, key=repr), "it was written so"

    async with RecordReader(bootstrap) as reader:
        found = await reader.browse(
            await reader.partitions(source),
            Start(kind=StartKind.EARLIEST),
            limit=count,
            looking=Looking(kept_bytes=None),
            bounds=Bounds(records=count, bytes=1 << 40),
        )
    decoder, lines = Decoder(source), LineFormat(topic=target, is_json=True)
    async with RecordProducer(bootstrap) as producer:
        for number, record in enumerate(found.records, 1):
            line = json_line(record, decoder)
            assert line.count("\n") == 1
            await producer.send(lines.record(line.removesuffix("\n").encode(), number))
    assert there(bootstrap, target, count) == sorted(records, key=repr)


async def test_records_are_sent_again_as_they_were(bootstrap: str) -> None:
    await round_trips(bootstrap, "trips", ORDINARY, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 2 + SOAK // ORDINARY))
async def test_every_record_is_sent_again_as_it_was(bootstrap: str, seed: int) -> None:
    await round_trips(bootstrap, f"trips-{seed}", ORDINARY, seed)
