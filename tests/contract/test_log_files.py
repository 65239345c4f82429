"""Files on disk, both ways: Kafka's own tool reads ours, we read Kafka's."""

import random
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from broker.clock import SystemClock
from broker.coordinator.transactions.transaction_metadata import (
    TransactionMetadata,
    TransactionState,
)
from broker.coordinator.transactions.transaction_records import encode_key, encode_value
from broker.log.config import LogConfig
from broker.log.data_directory import DataDirectory
from broker.log.errors import LogDirInUseError
from broker.log.log_manager import LogManager
from broker.log.log_reader import LogReader
from broker.log.partition_log import PartitionLog
from broker.protocol.records import NewRecord, Record, build_batch, iter_batch_headers, iter_records
from tests.support.kafka_oracle import KafkaCluster, run_tool
from tests.support.ledger import log_end
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until
from tests.unit.broker.log.transactions import begin, committed, end

pytestmark = pytest.mark.kafka_oracle

DUMP = "kafka.tools.DumpLogSegments"
NOW_MS = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CONFIG = LogConfig(segment_bytes=30_000, index_interval_bytes=1000)
CLUSTER_ID = "cGFydGlzY29wZS10ZXN0cw"


def _dump(files: list[Path], *options: str) -> str:
    done = run_tool(DUMP, "--files", ",".join(str(path) for path in files), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def _write_log(directory: Path) -> PartitionLog:
    """Some 200 batches of every codec, idempotent and plain, over several segments."""
    dice = random.Random(4)
    log = PartitionLog.open(str(directory), topic="orders", partition=0, config=CONFIG)
    sequence = 0
    for n in range(200):
        count = dice.randint(1, 10)
        records = [
            NewRecord(
                key=f"key-{n}-{k}".encode() if k % 3 else None,
                value=b"%x" % dice.getrandbits(4 * dice.randint(1, 200)) if k % 5 else None,
                timestamp=NOW_MS + n * 10 + dice.randint(-30, 30),
                headers=(("trace", b"%d" % n),) if n % 4 == 0 else (),
            )
            for k in range(count)
        ]
        batch = build_batch(
            records,
            codec=n % 5,
            producer_id=1000 if n % 2 else -1,
            producer_epoch=0 if n % 2 else -1,
            base_sequence=sequence if n % 2 else -1,
        )
        sequence += count if n % 2 else 0
        log.append_as_leader(memoryview(batch), leader_epoch=n // 50, now_ms=NOW_MS + n * 10)
    return log


def _records(log: LogReader) -> Iterator[Record]:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = memoryview(log.read_bytes(offset, max_bytes=1 << 20, max_offset=log.log_end_offset))
        for header, position in iter_batch_headers(part):
            if not header.is_control:
                yield from iter_records(part[position : position + header.size_bytes])
            offset = header.last_offset + 1


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)


@pytest.mark.usefixtures("kafka_libs")
def test_kafkas_tool_reads_our_segments_record_by_record(tmp_path: Path) -> None:
    log = _write_log(tmp_path / "orders-0")
    expected = [(r.offset, r.timestamp, _size(r.key), _size(r.value)) for r in _records(log)]
    segments = sorted((tmp_path / "orders-0").glob("*.log"))
    assert len(segments) > 3
    output = _dump(segments, "--deep-iteration", "--print-data-log")
    pattern = r"^\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+)"
    got = re.findall(pattern, output, re.MULTILINE)
    assert [tuple(map(int, fields)) for fields in got] == expected
    assert output.count("isvalid: true") == 200
    for codec in CODECS:
        assert f"compresscodec: {codec}" in output
    epochs = re.findall(r"partitionLeaderEpoch: (\d+)", output)
    assert set(epochs) == {"0", "1", "2", "3"}


@pytest.mark.usefixtures("kafka_libs")
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "in use"])
def test_kafkas_tool_finds_our_indexes_in_order(tmp_path: Path, is_closed: bool) -> None:
    log = _write_log(tmp_path / "orders-0")
    if is_closed:
        log.close()
    directory = tmp_path / "orders-0"
    offset_indexes, time_indexes = (
        sorted(directory.glob("*.index")),
        sorted(directory.glob("*.timeindex")),
    )
    sanity = _dump([*offset_indexes, *time_indexes], "--index-sanity-check")
    assert sanity.count("passed sanity check") == len(offset_indexes) + len(time_indexes)
    verified = _dump([*offset_indexes, *time_indexes], "--verify-index-only")
    assert "Mismatches" not in verified
    assert "Found" not in verified
    # The same tool does notice one wrong entry, so its silence above means something.
    content = bytearray(offset_indexes[0].read_bytes())
    content[3] += 1
    offset_indexes[0].write_bytes(content)
    assert "Mismatches in" in _dump(offset_indexes[:1], "--verify-index-only")


@pytest.mark.usefixtures("kafka_libs")
def test_kafkas_tool_reads_our_producer_snapshots(tmp_path: Path) -> None:
    log = _write_log(tmp_path / "orders-0")
    end = log.log_end_offset
    log.close()
    output = _dump(sorted((tmp_path / "orders-0").glob("*.snapshot")))
    newest = output.strip().splitlines()[-1]
    assert "producerId: 1000 producerEpoch: 0" in newest
    assert f"lastOffset: {end - 1}" in newest


@pytest.mark.usefixtures("kafka_libs")
def test_kafkas_tool_reads_what_we_compacted(tmp_path: Path) -> None:
    config = replace(CONFIG, cleanup_policy=frozenset({"compact"}), delete_retention_ms=0)
    log = PartitionLog.open(
        str(tmp_path / "orders-0"), topic="orders", partition=0, config=config, clock=SystemClock()
    )
    for n in range(400):
        producer_id = n // 100 if n < 300 else -1
        batch = build_batch(
            [
                NewRecord(
                    key=b"key-%d" % (n * k % 20),
                    value=None if n % 9 == 0 else b"%d" % n * 20,
                    timestamp=NOW_MS + n + k,
                )
                for k in range(3)
            ],
            codec=n % 5,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=n % 100 * 3 if producer_id >= 0 else -1,
        )
        log.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=NOW_MS)
    log.flush()
    end, active = log.log_end_offset, log.segments()[-1].base_offset
    newest = {r.key: r for r in _records(log) if r.offset < active}
    values = [r.offset for r in newest.values() if r.value is not None]
    for delay_ms in (0, 1):
        run = log.plan_compaction(stable_offset=end, now_ms=NOW_MS + delay_ms)
        assert run is not None
        while (group := run.next_group(lambda: None)) is not None:
            assert log.cleaning.swap_in(group, run.settings)
    expected = [(r.offset, r.timestamp, _size(r.key), _size(r.value)) for r in _records(log)]
    assert sorted(offset for offset, *_ in expected if offset < active) == sorted(values)
    log.close()
    directory = tmp_path / "orders-0"
    output = _dump(sorted(directory.glob("*.log")), "--deep-iteration", "--print-data-log")
    pattern = r"^\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+)"
    got = re.findall(pattern, output, re.MULTILINE)
    assert [tuple(map(int, fields)) for fields in got] == expected
    assert "isvalid: false" not in output
    assert "deleteHorizonMs: " in output
    # Each producer's newest batch is there, if only for its sequence.
    for producer_id in range(3):
        newest_batch = rf"lastOffset: {producer_id * 300 + 299} .*lastSequence: 299 "
        assert re.search(rf"{newest_batch}producerId: {producer_id} ", output)
    indexes = sorted([*directory.glob("*.index"), *directory.glob("*.timeindex")])
    assert _dump(indexes, "--index-sanity-check").count("passed sanity check") == len(indexes)
    verified = _dump(indexes, "--verify-index-only")
    assert "Mismatches" not in verified
    assert "Found" not in verified


@pytest.mark.usefixtures("kafka_libs")
def test_kafkas_tool_reads_our_aborted_transactions(tmp_path: Path) -> None:
    log = PartitionLog.open(str(tmp_path / "orders-0"), topic="orders", partition=0, config=CONFIG)
    begin(log, 7, ("a", "1"), ("b", "2"))
    begin(log, 8, ("c", "3"))
    end(log, 7, is_commit=False)
    end(log, 8, is_commit=True)
    log.close()
    directory = tmp_path / "orders-0"
    output = _dump(sorted(directory.glob("*.txnindex")))
    told = "version: 0 producerId: 7 firstOffset: 0 lastOffset: 3 lastStableOffset: 2"
    assert told in output
    records = _dump(sorted(directory.glob("*.log")), "--deep-iteration", "--print-data-log")
    assert re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: (\d+)", records) == [
        ("ABORT", "1"),
        ("COMMIT", "1"),
    ]


@pytest.mark.usefixtures("kafka_libs")
def test_kafkas_tool_reads_our_transaction_state(tmp_path: Path) -> None:
    ended = TransactionMetadata(
        transactional_id="tx",
        producer_id=7,
        epoch=3,
        timeout_ms=1000,
        state=TransactionState.ONGOING,
        partitions=frozenset({("a", 0), ("a", 1)}),
        start_ms=5,
        update_ms=6,
    )
    log = PartitionLog.open(str(tmp_path / "t-0"), topic="t", partition=0, config=CONFIG)
    record = NewRecord(key=encode_key("tx"), value=encode_value(ended), timestamp=NOW_MS)
    log.append_as_leader(memoryview(build_batch([record])), leader_epoch=0, now_ms=NOW_MS)
    log.close()
    segments = sorted((tmp_path / "t-0").glob("*.log"))
    output = _dump(segments, "--transaction-log-decoder", "--print-data-log")
    for told in ('"transactionalId":"tx"', '"producerId":7', '"producerEpoch":3'):
        assert told in output
    assert re.search(r'"topic":"a","partitionIds":\[0,1\]', output)


def test_we_read_transactions_that_kafka_wrote(kafka_cluster: KafkaCluster, tmp_path: Path) -> None:
    """Its .txnindex as it lies there, and made anew from its segments."""
    topic = "transactions-by-kafka"
    where: dict[str, str | int | float | bool] = {"bootstrap.servers": kafka_cluster.bootstrap}
    admin = AdminClient(where)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(WAIT_S)
    producer = Producer({**where, "transactional.id": topic})
    producer.init_transactions(WAIT_S)
    for number in range(6):
        producer.begin_transaction()
        producer.produce(topic, value=b"%d" % number, partition=0)
        assert producer.flush(WAIT_S) == 0
        (producer.commit_transaction if number % 2 else producer.abort_transaction)(WAIT_S)
    # A commit is answered once it is decided; its marker comes to the partition later.
    with closing(Consumer({**where, "group.id": topic})) as consumer:
        place = TopicPartition(topic, 0)
        wait_until(lambda: log_end(consumer, place) == 2 * 6, "records and markers are written")
    (original,) = kafka_cluster.base_dir.glob(f"*/{topic}-0")
    for is_clean in (True, False):
        copy = tmp_path / f"{is_clean}" / f"{topic}-0"
        shutil.copytree(original, copy)
        theirs = (copy / f"{0:020d}.txnindex").read_bytes()
        log = PartitionLog.open(str(copy), topic=topic, partition=0, is_clean=is_clean)
        assert [record.value for record in committed(log)] == [b"1", b"3", b"5"]
        assert (copy / f"{0:020d}.txnindex").read_bytes() == theirs
        log.abandon()


def _produce(cluster: KafkaCluster, topic: str) -> None:
    """An idempotent producer's records, compressed, into one partition of small segments."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    config = {"segment.bytes": "1048576", "index.interval.bytes": "1000"}
    new_topic = NewTopic(topic, num_partitions=1, replication_factor=1, config=config)
    admin.create_topics([new_topic])[topic].result(WAIT_S)
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "batch.size": 20_000,
        }
    )
    dice = random.Random(9)
    for n in range(6000):
        producer.produce(topic, key=b"k%d" % n, value=dice.randbytes(400), timestamp=NOW_MS + n)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0


@pytest.mark.parametrize("is_clean", [True, False])
def test_we_open_a_log_that_kafka_wrote(
    kafka_cluster: KafkaCluster, tmp_path: Path, is_clean: bool
) -> None:
    topic = f"written-by-kafka-{is_clean}".lower()
    _produce(kafka_cluster, topic)
    (original,) = kafka_cluster.base_dir.glob(f"*/{topic}-0")
    copy = tmp_path / f"{topic}-0"
    shutil.copytree(original, copy)
    log = PartitionLog.open(str(copy), topic=topic, partition=0, is_clean=is_clean)
    assert log.findings == ()
    assert log.segment_count > 2
    assert log.topic_id.int != 0
    assert log.epochs.entries[0][1] == 0
    assert [record.key for record in _records(log)] == [b"k%d" % n for n in range(6000)]
    for n in (0, 17, 2999, 5999):
        found = log.offset_for_timestamp(NOW_MS + n, max_offset=log.log_end_offset)
        assert found is not None
        assert found.offset == n
    # Kafka's own sparse indexes and ours point at the same batches.
    mine = [info.index_entries for info in log.segments()[:-1]]
    assert all(entries > 10 for entries in mine)


def test_kafka_and_we_do_not_share_a_directory(kafka_cluster: KafkaCluster) -> None:
    directory = next(kafka_cluster.base_dir.glob("*/meta.properties")).parent
    with pytest.raises(LogDirInUseError):
        DataDirectory.open(str(directory), node_id=101, cluster_id=CLUSTER_ID)


def test_kafka_starts_on_partitions_that_we_wrote(tmp_path: Path, kafka_libs: Path) -> None:
    """Recovery by Kafka's own loader: our clean shutdown is taken for one, nothing is rebuilt."""
    assert kafka_libs.exists()
    # Started again after a kill, it waits until its former self's session is over.
    session = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
    with KafkaCluster(tmp_path, brokers=1, overrides=session) as cluster:
        topic = "handed-over"
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(WAIT_S)
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        producer.produce(topic, value=b"kafka's", partition=0)
        assert producer.flush(WAIT_S) == 0
        cluster.kill(101)
        directory = next(tmp_path.glob("*/meta.properties")).parent
        properties = (directory / "meta.properties").read_text()
        found = re.search(r"cluster\.id=(\S+)", properties)
        assert found is not None
        manager = LogManager.open(
            str(directory),
            node_id=101,
            cluster_id=found[1],
            clock=SystemClock(),
            defaults=LogConfig(),
        )
        log = manager.log(topic, 0)
        assert log is not None
        batch = build_batch([NewRecord(value=b"ours", timestamp=NOW_MS)], codec=4)
        assert log.log_end_offset == 1
        for _ in range(999):
            log.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=NOW_MS)
        manager.shutdown()
        cluster.start_node(101)
        assert _consume(cluster, topic, 1000) == ["kafka's", *["ours"] * 999]


def _consume(cluster: KafkaCluster, topic: str, count: int) -> list[str]:
    """Values that Kafka's console consumer gets, in its order."""
    done = run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--from-beginning"),
        *("--max-messages", str(count), "--timeout-ms", "30000"),
    )
    return done.stdout.splitlines()
