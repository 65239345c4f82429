"""Transactions of real clients, on a cluster of ours and on Kafka, which says what is right."""

import itertools
import re
from collections.abc import Mapping
from typing import Any, Final

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from tests.support import wire
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import run_tool
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

PRODUCE: Final = (0, 9)
LIST_OFFSETS: Final = (2, 6)
FIND_COORDINATOR: Final = (10, 3)
INIT_PRODUCER_ID: Final = (22, 4)
ADD_PARTITIONS: Final = (24, 3)
ADD_OFFSETS: Final = (25, 3)
END: Final = (26, 3)
OFFSET_FETCH: Final = (9, 7)
TXN_OFFSET_COMMIT: Final = (28, 3)
DESCRIBE_PRODUCERS: Final = (61, 0)
DESCRIBE: Final = (65, 0)
LIST: Final = (66, 1)
CONCURRENT: Final = 51
NOT_ENOUGH_REPLICAS: Final = 19
NOT_YET: Final = (14, 15, 16)
"""A coordinator that is being loaded, or was not made yet."""
NAMES: Final = itertools.count()


def new_topic(bootstrap: str) -> str:
    """One partition on all brokers; every broker knows it."""
    name = f"transactional-{next(NAMES)}"
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, 1, 3)])[name].result(WAIT_S)
    wire.wait_for_topic(bootstrap, name, 1)
    return name


def consumed(bootstrap: str, topic: str, count: int, isolation: str) -> list[bytes | None]:
    """Values from the start of partition 0, until the end that this isolation level has."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{next(NAMES)}",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes | None] = []
    try:
        while len(found) < count:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"{len(found)} of {count}"
            assert message.error() is None, message.error()
            found.append(message.value())
        assert consumer.poll(1.0) is None
    finally:
        consumer.close()
    return found


def producer_of(bootstrap: str, name: str) -> Producer:
    """librdkafka's, its transactions initialized."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(WAIT_S)
    return producer


def write(producer: Producer, topic: str, *values: bytes) -> None:
    for value in values:
        producer.produce(topic, value=value, partition=0)
    assert producer.flush(WAIT_S) == 0


def test_records_are_seen_when_they_are_committed(bootstrap: str) -> None:
    topic = new_topic(bootstrap)
    producer, other = (producer_of(bootstrap, f"{topic}-{n}") for n in range(2))
    producer.begin_transaction()
    write(producer, topic, b"aborted 1", b"aborted 2")
    producer.abort_transaction(WAIT_S)
    producer.begin_transaction()
    write(producer, topic, b"committed 1")
    other.begin_transaction()
    write(other, topic, b"committed 2")
    producer.commit_transaction(WAIT_S)
    assert consumed(bootstrap, topic, 1, "read_committed") == [b"committed 1"]
    other.commit_transaction(WAIT_S)
    committed = [b"committed 1", b"committed 2"]
    assert consumed(bootstrap, topic, 2, "read_committed") == committed
    every = [b"aborted 1", b"aborted 2", *committed]
    assert consumed(bootstrap, topic, 4, "read_uncommitted") == every


def test_a_new_instance_fences_the_former_one_and_aborts_its_transaction(bootstrap: str) -> None:
    topic = new_topic(bootstrap)
    former = producer_of(bootstrap, topic)
    former.begin_transaction()
    write(former, topic, b"of a zombie")
    latter = producer_of(bootstrap, topic)
    latter.begin_transaction()
    write(latter, topic, b"of its successor")
    with pytest.raises(KafkaException):
        former.commit_transaction(WAIT_S)
    latter.commit_transaction(WAIT_S)
    assert consumed(bootstrap, topic, 1, "read_committed") == [b"of its successor"]


async def test_offsets_are_committed_with_the_records(bootstrap: str) -> None:
    source, target = new_topic(bootstrap), new_topic(bootstrap)
    group = f"{target}-group"
    where = {"bootstrap_servers": bootstrap}
    producer = AIOKafkaProducer(**where, transactional_id=target)
    await producer.start()
    consumer = AIOKafkaConsumer(**where, group_id=group, enable_auto_commit=False)
    await consumer.start()
    try:
        from aiokafka import TopicPartition as Partition

        key = Partition(source, 0)
        for offset, value in ((3, b"kept"), (7, b"dropped")):
            await producer.begin_transaction()
            await producer.send_and_wait(target, value, partition=0)
            await producer.send_offsets_to_transaction({key: offset}, group)
            if value == b"kept":
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()

        async def is_stable() -> bool:
            return bool(await consumer.committed(key) == 3)

        for _ in range(50):
            if await is_stable():
                break
        assert await is_stable()
    finally:
        await consumer.stop()
        await producer.stop()
    assert consumed(bootstrap, target, 1, "read_committed") == [b"kept"]


PERFORMANCE: Final = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TRANSACTIONS: Final = "org.apache.kafka.tools.TransactionsCommand"


@pytest.mark.kafka_oracle
@pytest.mark.usefixtures("kafka_libs")
def test_javas_clients_and_tools_use_transactions(our_cluster: LocalCluster) -> None:
    topic, count = new_topic(our_cluster.bootstrap), 400
    where = ("--bootstrap-server", our_cluster.bootstrap)
    size = ("--num-records", str(count), "--record-size", "10", "--throughput", "-1")
    to = ("--producer-props", f"bootstrap.servers={our_cluster.bootstrap}")
    often = ("--transactional-id", topic, "--transaction-duration-ms", "20")
    written = run_tool(PERFORMANCE, "--topic", topic, *size, *to, *often)
    assert written.returncode == 0, written.stderr
    level = ("--isolation-level", "read_committed", "--from-beginning")
    limits = ("--max-messages", str(count), "--timeout-ms", "20000")
    read = run_tool(CONSUMER, *where, "--topic", topic, *level, *limits)
    assert len(read.stdout.splitlines()) == count, read.stderr
    listed = run_tool(TRANSACTIONS, *where, "list")
    assert re.search(rf"{topic}\s+\d+\s+\d+\s+CompleteCommit", listed.stdout), listed.stdout
    told = run_tool(TRANSACTIONS, *where, "describe", "--transactional-id", topic)
    assert "CompleteCommit" in told.stdout, told.stderr
    names = ("--topic", topic, "--partition", "0")
    producers = run_tool(TRANSACTIONS, *where, "describe-producers", *names)
    assert re.search(r"\d+\s+\d+\s+\d+\s+-1\s+\d+\s+None", producers.stdout), producers.stdout


def records(producer_id: int, epoch: int, sequence: int) -> bytes:
    """One record of a transaction."""
    return build_batch(
        [NewRecord(value=b"v", timestamp=1)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )


class Raw:
    """Requests of one transactional id, each as a table tells it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.topic = new_topic(bootstrap)
        self.name = f"raw-{next(NAMES)}"
        self.coordinator = self.find(self.name, 1)
        self.producer_id, self.epoch = self.init()

    def ask(self, address: str, api: tuple[int, int], **fields: Any) -> Any:
        return wire.ask(address, *api, codec.build_request(*api, **fields))

    def find(self, key: str, key_type: int) -> str:
        def answer() -> Any:
            first = self.bootstrap.split(",")[0]
            return self.ask(first, FIND_COORDINATOR, key=key, key_type=key_type)

        wait_until(lambda: int(answer().error_code) == 0, "there is a coordinator")
        found = answer()
        return f"{found.host}:{found.port}"

    def init(self, **fields: Any) -> tuple[int, int]:
        """A producer id and epoch, once the coordinator gives them."""
        found: list[Any] = []

        def is_done() -> bool:
            found[:] = [self.try_init(**fields)]
            return int(found[0].error_code) not in (CONCURRENT, *NOT_YET)

        wait_until(is_done, "the producer has its id")
        assert int(found[0].error_code) == 0, found[0]
        return found[0].producer_id, found[0].producer_epoch

    def try_init(self, **fields: Any) -> Any:
        asked: Mapping[str, Any] = {
            "transactional_id": self.name,
            "transaction_timeout": 60_000,
            "producer_id": -1,
            "producer_epoch": -1,
            **fields,
        }
        return self.ask(self.coordinator, INIT_PRODUCER_ID, **asked)

    @property
    def producer(self) -> dict[str, Any]:
        return {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def add(self, topic: str | None = None, **changes: Any) -> int:
        fields = {f"v3_and_below_{k}": v for k, v in {**self.producer, **changes}.items()}
        fields["v3_and_below_topics"] = [{"name": topic or self.topic, "partitions": [0]}]
        answer = self.ask(self.coordinator, ADD_PARTITIONS, **fields)
        (found,) = answer.results_by_topic_v3_and_below
        return int(found.results_by_partition[0].partition_error_code)

    def end(self, is_commit: bool, **changes: Any) -> int:
        fields = {**self.producer, **changes, "committed": is_commit}
        return int(self.ask(self.coordinator, END, **fields).error_code)

    def end_at_last(self, is_commit: bool) -> None:
        wait_until(lambda: self.end(is_commit) == 0, "the markers are written")

    def leader(self) -> str:
        found = wire.metadata(self.bootstrap.split(",")[0])
        (topic,) = [it for it in found.topics if it.name == self.topic]
        at = {broker.node_id: f"{broker.host}:{broker.port}" for broker in found.brokers}
        return at[topic.partitions[0].leader_id]

    def produce(
        self, sequence: int, epoch: int | None = None, api: tuple[int, int] = PRODUCE
    ) -> int:
        batch = records(self.producer_id, self.epoch if epoch is None else epoch, sequence)
        partitions = [{"index": 0, "records": batch}]
        answer = self.ask(
            self.leader(),
            api,
            transactional_id=self.name,
            acks=-1,
            timeout=10_000,
            topic_data=[{"name": self.topic, "partition_data": partitions}],
        )
        return int(answer.responses[0].partition_responses[0].error_code)

    def produced(self, sequence: int) -> int:
        """Tried again as clients do while the coordinator is asked."""
        codes: list[int] = []

        def is_done() -> bool:
            codes[:] = [self.produce(sequence)]
            return codes[0] != NOT_ENOUGH_REPLICAS

        wait_until(is_done, "the leader has asked the coordinator")
        return codes[0]

    def ends(self) -> tuple[int, int]:
        """The last stable offset, and the high watermark."""
        found = []
        for isolation in (1, 0):
            partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
            topics = [{"name": self.topic, "partitions": [partition]}]
            answer = self.ask(
                self.leader(), LIST_OFFSETS, replica_id=-1, isolation_level=isolation, topics=topics
            )
            found.append(answer.topics[0].partitions[0].offset)
        return found[0], found[1]

    def described(self) -> tuple[int, str, int]:
        """Error, state, topics. (kio cannot read the start of a transaction that never began.)"""
        (found,) = self.ask(
            self.coordinator, DESCRIBE, transactional_ids=[self.name]
        ).transaction_states
        return int(found.error_code), str(found.transaction_state), len(found.topics)


@pytest.fixture
def raw(bootstrap: str) -> Raw:
    return Raw(bootstrap)


def test_each_step_answers_as_kafka_does(raw: Raw) -> None:
    assert (raw.end(True), raw.end(False)) == (48, 48)
    assert raw.produced(0) == 48, "the partition was not added"
    assert raw.add("no-such-topic") == 3
    assert raw.add(producer_id=raw.producer_id + 1_000) == 49
    assert raw.add(producer_epoch=raw.epoch + 1) == 90
    assert raw.add() == 0
    assert raw.described() == (0, "Ongoing", 1)
    assert raw.produced(0) == 0
    assert raw.produce(0) == 0, "a duplicate"
    assert raw.produce(2) == 45
    assert raw.ends() == (0, 1)
    assert raw.end(True, producer_epoch=raw.epoch + 1) == 90
    assert raw.end(True) == 0
    raw.end_at_last(True)
    assert raw.end(False) == 48
    wait_until(lambda: raw.ends() == (2, 2), "the marker is written")
    assert raw.described() == (0, "CompleteCommit", 0)
    assert raw.produced(1) == 48, "no transaction is open"


def test_the_next_epoch_and_who_is_fenced(raw: Raw) -> None:
    first = raw.producer_id, raw.epoch
    assert raw.add() == 0
    assert raw.produced(0) == 0
    assert int(raw.try_init().error_code) == CONCURRENT, "the open transaction is aborted first"
    raw.producer_id, raw.epoch = raw.init()
    assert raw.producer_id == first[0]
    assert raw.epoch == first[1] + 2
    assert raw.produce(1, epoch=first[1]) == 47
    wait_until(lambda: raw.ends() == (2, 2), "the marker is written")
    asked = {"producer_id": raw.producer_id, "producer_epoch": raw.epoch}
    assert raw.init(**asked) == (raw.producer_id, raw.epoch + 1)
    assert raw.init(**asked) == (raw.producer_id, raw.epoch + 1), "asked again"
    late = {"producer_id": raw.producer_id, "producer_epoch": first[1]}
    assert int(raw.try_init(**late).error_code) == 90
    assert int(raw.try_init(transaction_timeout=10_000_000).error_code) == 50
    assert int(raw.try_init(transactional_id="").error_code) == 42


def test_pending_offsets_are_told(raw: Raw) -> None:
    group = f"{raw.name}-group"
    at = raw.find(group, 0)
    offset = {"partition_index": 0, "committed_offset": 5, "committed_metadata": "m"}
    topics = [{"name": raw.topic, "partitions": [offset]}]

    def commit() -> int:
        fields = {**raw.producer, "group_id": group, "topics": topics}
        answer = raw.ask(at, TXN_OFFSET_COMMIT, **fields, generation_id=-1, member_id="")
        return int(answer.topics[0].partitions[0].error_code)

    def fetched(is_stable: bool) -> tuple[int, int]:
        asked = [{"name": raw.topic, "partition_indexes": [0]}]
        answer = raw.ask(at, OFFSET_FETCH, group_id=group, topics=asked, require_stable=is_stable)
        found = answer.topics[0].partitions[0]
        return int(found.error_code), found.committed_offset

    codes: list[int] = []

    def is_settled() -> bool:
        codes[:] = [commit()]
        return codes[0] not in NOT_YET

    wait_until(is_settled, "the group's coordinator has asked the transaction's")
    assert codes == [48], "the group was not added"
    added = raw.ask(raw.coordinator, ADD_OFFSETS, **raw.producer, group_id=group)
    assert int(added.error_code) == 0
    wait_until(is_settled, "the group's coordinator has asked the transaction's")
    assert codes == [0]
    assert (fetched(True), fetched(False)) == ((88, -1), (0, -1))
    raw.end_at_last(True)
    wait_until(lambda: fetched(True) == (0, 5), "the offset counts")


def test_open_transactions_are_listed(raw: Raw) -> None:
    assert raw.add() == 0
    assert raw.produced(0) == 0

    def listed(**fields: Any) -> list[tuple[str, str]]:
        asked = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1, **fields}
        answer = raw.ask(raw.coordinator, LIST, **asked)
        assert int(answer.error_code) == 0
        found = answer.transaction_states
        return [(it.transactional_id, it.transaction_state) for it in found]

    mine = (raw.name, "Ongoing")
    assert mine in listed()
    assert listed(producer_id_filters=[raw.producer_id]) == [mine]
    assert mine in listed(state_filters=["Ongoing", "Nonsense"])
    assert mine not in listed(state_filters=["Empty"])
    assert mine not in listed(duration_filter=3_600_000)
    partitions = [{"name": raw.topic, "partition_indexes": [0]}]
    (topic,) = raw.ask(raw.leader(), DESCRIBE_PRODUCERS, topics=partitions).topics
    (producer,) = topic.partitions[0].active_producers
    told = (producer.producer_id, producer.producer_epoch, producer.current_txn_start_offset)
    assert told == (raw.producer_id, raw.epoch, 0)
    raw.end_at_last(False)
