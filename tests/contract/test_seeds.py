"""The scenarios that Partiscope was asked for, in their broker and command-line halves."""

import json
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic

from control.messages.partitioners import KeyRule, partition_for
from tests.support.cluster import LocalCluster
from tests.support.go_program import GoUnavailableError, build_go_client, run_go_client
from tests.support.kafka_oracle import run_tool
from tests.support.patience import WAIT_S
from tests.support.wire import wait_for_topic

TOPICS = "org.apache.kafka.tools.TopicCommand"


@pytest.fixture
def single(tmp_path: Path) -> Iterator[LocalCluster]:
    """One broker alone."""
    with LocalCluster(tmp_path, brokers=1, first_id=0) as running:
        yield running


def _partiscope(*args: str | int | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "partiscope", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def _produce_all(
    cluster: LocalCluster, topic: str, messages: list[tuple[str | None, str]], **config: object
) -> list[Message]:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", **config})
    delivered: list[Message] = []

    def keep(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        delivered.append(message)

    for key, value in messages:
        producer.produce(topic, key=key, value=value, on_delivery=keep)
    assert producer.flush(WAIT_S) == 0
    return delivered


@pytest.mark.kafka_oracle
def test_one_broker_two_partitions_and_a_go_service(single: LocalCluster, kafka_libs: Path) -> None:
    assert kafka_libs.exists()
    try:
        go = build_go_client()
    except GoUnavailableError as error:
        pytest.skip(str(error))
    shape = ("--replication-factor", "1", "--partitions", "2", "--topic", "message-log")
    created = run_tool(TOPICS, "--create", "--bootstrap-server", single.bootstrap, *shape)
    assert "Created topic message-log." in created.stdout, created.stderr
    sent = run_go_client(go, "produce", single.bootstrap, "message-log", "1", "20")
    assert [(line[0], line[1]) for line in sent] == [(1, offset) for offset in range(20)]
    anywhere = run_go_client(go, "produce", single.bootstrap, "message-log", "any", "40")
    assert {line[0] for line in anywhere} == {0, 1}
    in_partition_1 = [(offset, key) for partition, offset, key, _ in sent + anywhere if partition]
    read = run_go_client(
        go, "consume", single.bootstrap, "message-log", "1", str(len(in_partition_1))
    )
    assert [(offset, key) for _, offset, key, _ in read] == in_partition_1
    grouped = run_go_client(go, "consume", single.bootstrap, "message-log", "any", "60")
    assert Counter(key for _, _, key, _ in grouped) == Counter(k for _, _, k, _ in sent + anywhere)


def test_a_topic_spreads_over_brokers_and_grows(our_cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    new = [NewTopic("my-topic", 5, 3), NewTopic("topic-A", 3, 1)]
    for future in admin.create_topics(new).values():
        future.result(WAIT_S)
    leaders = [
        [partition.leader_id for partition in our_cluster.wait_for_topic(id_, "topic-A").partitions]
        for id_ in our_cluster.ids
    ]
    assert [sorted(seen) for seen in leaders] == [[101, 102, 103]] * 3
    for future in admin.create_partitions([NewPartitions("my-topic", 10)]).values():
        future.result(WAIT_S)
    wait_for_topic(our_cluster.bootstrap, "my-topic", 10)


def test_users_keep_their_partition_by_either_rule(our_cluster: LocalCluster) -> None:
    """By murmur2 over three partitions the users land on 1, 0, 0; by crc32 on 0, 2, 2."""
    admin = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    admin.create_topics([NewTopic("user-activity", 3, 3)])["user-activity"].result(WAIT_S)
    users = ["User123", "User456", "User789"]
    landed = {}
    for rule in ("murmur2_random", "consistent_random"):
        messages = [(user, f"visit {n}") for n in range(5) for user in users]
        sent = _produce_all(our_cluster, "user-activity", list(messages), partitioner=rule)
        homes = {(bytes(m.key() or b"").decode(), m.partition()) for m in sent}
        assert len(homes) == 3, "a key left its partition"
        landed[rule] = [dict(homes)[user] for user in users]
    assert landed == {"murmur2_random": [1, 0, 0], "consistent_random": [0, 2, 2]}


def test_both_rules_are_shown_before_anything_is_sent(
    our_cluster: LocalCluster, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    admin.create_topics([NewTopic("foreseen", 3, 1)])["foreseen"].result(WAIT_S)
    keys = tmp_path / "keys.txt"
    keys.write_text("User123\nUser456\nUser789\n")
    shown = _partiscope(
        *("produce", "foreseen", "--keys-from", str(keys), "--preview", "--json"),
        *("--bootstrap", our_cluster.bootstrap),
    )
    assert shown.returncode == 0, shown.stderr
    forecasts = {item["rule"]: item["records"] for item in json.loads(shown.stdout)["forecasts"]}
    assert forecasts["murmur2"] == [2, 1, 0]
    assert forecasts["crc32"] == [1, 0, 2]


def test_keys_that_move_are_shown_before_partitions_are_added(our_cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    admin.create_topics([NewTopic("to-grow", 3, 1)])["to-grow"].result(WAIT_S)
    where = ("--bootstrap", our_cluster.bootstrap)
    asked = ("produce", "to-grow", "--preview", *where)

    shown = _partiscope(*asked, "--if-partitions", "5", "--json")

    assert shown.returncode == 0, shown.stderr
    for found in json.loads(shown.stdout)["forecasts"]:
        assert (sum(found["records"]), len(found["records_then"])) == (10_000, 5)
        move = found["moves"][0]
        rule, key = KeyRule(found["rule"]), move["key"].encode()
        told = (move["partition"], move["partition_then"])
        assert told == (partition_for(rule, key, 3), partition_for(rule, key, 5))
    words = _partiscope(*asked, "--if-partitions", "5", "--key", "uniform:20").stderr
    assert "murmur2 (Java): fullest partition" in words
    assert " of 20 keys move" in words
    assert "goes with --preview" in _partiscope(*asked[:2], "--if-partitions", "5", *where).stderr


def test_delivery_reports_tell_partition_and_offset(our_cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    admin.create_topics([NewTopic("counts", 4, 3)])["counts"].result(WAIT_S)
    records = [(str(n), json.dumps({"count": n})) for n in range(30)]
    sent = _produce_all(our_cluster, "counts", list(records))
    by_partition: dict[int, list[int]] = {}
    for message in sent:
        by_partition.setdefault(message.partition() or 0, []).append(message.offset() or 0)
    assert sum(map(len, by_partition.values())) == 30
    for offsets in by_partition.values():
        assert sorted(offsets) == list(range(len(offsets)))


def test_any_broker_knows_the_whole_cluster(our_cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    admin.create_topics([NewTopic("Topic-A", 2, 2)])["Topic-A"].result(WAIT_S)
    wait_for_topic(our_cluster.bootstrap, "Topic-A", 2)
    for port in our_cluster.ports.values():
        one = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
        metadata = one.list_topics("Topic-A", timeout=WAIT_S)
        assert set(metadata.brokers) == {101, 102, 103}
        for partition in metadata.topics["Topic-A"].partitions.values():
            assert len(partition.replicas) == 2
            assert partition.leader in partition.isrs


def test_data_is_kept_a_week_unless_told_otherwise(our_cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    new = [NewTopic("weekly", 1, 1), NewTopic("hourly", 1, 1, config={"retention.ms": "3600000"})]
    for future in admin.create_topics(new).values():
        future.result(WAIT_S)
    for topic, expected_ms in (("weekly", 7 * 86_400_000), ("hourly", 3_600_000)):
        wait_for_topic(our_cluster.bootstrap, topic, 1)
        (described,) = admin.describe_configs([ConfigResource("topic", topic)]).values()
        assert int(described.result(WAIT_S)["retention.ms"].value) == expected_ms


def test_a_partition_may_be_chosen_explicitly_or_by_a_partitioner_of_ones_own(
    our_cluster: LocalCluster,
) -> None:
    admin = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    admin.create_topics([NewTopic("tiers", 3, 1)])["tiers"].result(WAIT_S)
    wait_for_topic(our_cluster.bootstrap, "tiers", 3)
    producer = Producer({"bootstrap.servers": our_cluster.bootstrap, "acks": "all"})
    landed: list[int | None] = []
    for partition in (2, 0, 2):
        producer.produce(
            "tiers",
            key="same key",
            partition=partition,
            on_delivery=lambda _, message: landed.append(message.partition()),
        )
        assert producer.flush(WAIT_S) == 0
    assert landed == [2, 0, 2]
    own = _kafka_python_producer(our_cluster.bootstrap)
    sent = {key: own.send("tiers", key=key.encode()) for key in ("gold-1", "gold-2", "tin-1")}
    assert {key: future.get(WAIT_S).partition for key, future in sent.items()} == {
        "gold-1": 0,
        "gold-2": 0,
        "tin-1": 2,
    }
    own.close()


def _kafka_python_producer(bootstrap: str) -> Any:
    """Gold customers have partition 0 to themselves; the others share the rest."""
    with warnings.catch_warnings():
        # It reads its schemas in a way that Python 3.11 warns about.
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka import KafkaProducer
        from kafka.partitioner import Partitioner

    class Tiers(Partitioner):  # type: ignore[misc]
        def partition(self, topic: str, key: bytes, *others: Any) -> int:
            *_, cluster = others
            rest = sorted(cluster.partitions_for_topic(topic))[1:]
            return 0 if key.startswith(b"gold") else rest[len(key) % len(rest)]

    return KafkaProducer(bootstrap_servers=bootstrap.split(","), partitioner=Tiers())


def test_records_without_keys_go_round(our_cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    admin.create_topics([NewTopic("keyless", 3, 1)])["keyless"].result(WAIT_S)
    records: list[tuple[str | None, str]] = [(None, str(n)) for n in range(60)]
    # Without this librdkafka stays on one partition for 10 ms at a time.
    sent = _produce_all(our_cluster, "keyless", records, **{"sticky.partitioning.linger.ms": 0})
    assert {message.partition() for message in sent} == {0, 1, 2}


def test_keys_keep_their_order(our_cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    admin.create_topics([NewTopic("trucks", 4, 3)])["trucks"].result(WAIT_S)
    sent = _produce_all(our_cluster, "trucks", [(f"truck-{n % 3}", str(n)) for n in range(300)])
    ends = {message.partition() for message in sent}
    consumer = Consumer({"bootstrap.servers": our_cluster.bootstrap, "group.id": "depot"})
    consumer.assign([TopicPartition("trucks", partition or 0, 0) for partition in ends])
    seen: dict[str, list[int]] = {}
    while sum(map(len, seen.values())) < 300:
        message = consumer.poll(WAIT_S)
        assert message is not None
        assert message.error() is None
        key, value = message.key(), message.value()
        assert key is not None
        assert value is not None
        seen.setdefault(bytes(key).decode(), []).append(int(value))
    consumer.close()
    assert all(numbers == sorted(numbers) for numbers in seen.values())


def test_a_partition_is_a_directory_of_segments_named_by_base_offset(tmp_path: Path) -> None:
    small = {"log.segment.bytes": "16384", "log.index.interval.bytes": "1024"}
    with LocalCluster(tmp_path, brokers=1, overrides=small) as one:
        admin = AdminClient({"bootstrap.servers": one.bootstrap})
        admin.create_topics([NewTopic("log", 1, 1)])["log"].result(WAIT_S)
        for start in range(0, 400, 10):
            batch = [(f"k{n}", "v" * 200) for n in range(start, start + 10)]
            _produce_all(one, "log", list(batch))
        directory = one.log_dir(101) / "log-0"
        logs = sorted(path.name for path in directory.glob("*.log"))
        assert logs[0] == f"{0:020d}.log"
        assert len(logs) > 3
        for name in logs:
            assert (directory / name).with_suffix(".index").exists()
        data = directory.parent
        shown = _partiscope("segments", "log", "0", "--log-dir", str(data), "--json")
        assert shown.returncode == 0, shown.stderr
        document = json.loads(shown.stdout)
        assert [f"{s['base_offset']:020d}.log" for s in document["segments"]] == logs
        assert document["segments"][-1]["active"]
        assert sum(segment["records"] for segment in document["segments"]) == 400
        _check_index(directory, logs[0])
        _produce_all(one, "log", [("truck-7", "x" * 500)], **{"compression.type": "lz4"})
        _check_message(data, 400, key="truck-7", value="x" * 500, codec="lz4")


def _check_index(directory: Path, name: str) -> None:
    """Its entries say where a batch begins that holds the offset."""
    shown = _partiscope("segments", "log", "0", "--index", "--log-dir", directory.parent, "--json")
    assert shown.returncode == 0, shown.stderr
    log, first = (directory / name).read_bytes(), json.loads(shown.stdout)["segments"][0]
    assert len(first["index"]) > 3
    for entry in first["index"]:
        at = entry["position"]
        base_offset, last_delta = log[at : at + 8], log[at + 23 : at + 27]
        batch_begins = int.from_bytes(base_offset)
        assert batch_begins <= entry["relative_offset"] <= batch_begins + int.from_bytes(last_delta)


def _check_message(data: Path, offset: int, *, key: str, value: str, codec: str) -> None:
    """One message: value, offset, time, key, sizes, codec, checksum, format; and its very bytes."""
    about = time.time() * 1000
    shown = _partiscope("segments", "log", "0", "--offset", offset, "--log-dir", data, "--json")
    assert shown.returncode == 0, shown.stderr
    message = json.loads(shown.stdout)["message"]
    found = [message[name] for name in ("offset", "key", "value", "key_bytes", "value_bytes")]
    assert found == [offset, key, value, len(key), len(value)]
    assert abs(message["timestamp_ms"] - about) < 3_600_000
    batch = message["batch"]
    assert (batch["codec"], batch["is_crc_valid"], batch["format_version"]) == (codec, True, 2)
    at = batch["position"]
    stored = Path(message["file"]).read_bytes()[at : at + batch["size_bytes"]]
    assert int.from_bytes(stored[:8]) == batch["base_offset"]
    assert stored[17:21].hex() == batch["crc32c"]


def test_partiscope_lists_what_kafka_clients_made(our_cluster: LocalCluster) -> None:
    made = _partiscope(
        *("topics", "create", "by-hand", "--partitions", "3"),
        *("--replication-factor", "2", "--bootstrap", our_cluster.bootstrap),
    )
    assert made.returncode == 0, made.stderr
    wait_for_topic(our_cluster.bootstrap, "by-hand", 3)
    listed = _partiscope("topics", "list", "--bootstrap", our_cluster.bootstrap, "--json")
    topics = {topic["topic"]: topic for topic in json.loads(listed.stdout)["topics"]}
    assert topics["by-hand"]["replication_factor"] == 2
    again = _partiscope("topics", "create", "by-hand", "--bootstrap", our_cluster.bootstrap)
    assert again.returncode == 1
    assert "already exists" in again.stderr
    assert "Traceback" not in again.stderr
