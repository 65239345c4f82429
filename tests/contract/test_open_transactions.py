"""Transactions that hang open are found, on a cluster of ours and on Kafka, whose tool agrees."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.admin.transactions import (
    OPEN_MS,
    HeldPartition,
    OpenTransaction,
    OpenTransactions,
)
from control.kafka.ports import ConfigResource, ConfigScope
from control.model.ids import TopicPartition
from control.model.status import Severity
from control.model.watched_cluster import WatchedCluster
from control.views.snapshots.operation_findings import operations_now
from control.views.snapshots.transaction_findings import transaction_findings
from tests.contract.test_transactions import TRANSACTIONS, Raw, consumed, new_topic, write
from tests.support.kafka_oracle import KafkaCluster, run_tool
from tests.support.kafka_secure import SecureKafka
from tests.support.patience import WAIT_S
from tests.support.settle import eventually, wait_until

TIMEOUT_MS: Final = 840_000
EVERY_BROKER: Final = ConfigResource(scope=ConfigScope.BROKER, name="")
VERIFIES: Final = "transaction.partition.verification.enable"


def later_ms(found: OpenTransaction) -> int:
    """A time at which this transaction has been open for longer than is told."""
    assert found.since_ms is not None
    return found.since_ms + OPEN_MS + 1


@contextmanager
def silent_producer(bootstrap: str, topic: str, *values: bytes) -> Iterator[Producer]:
    """Begins a transaction, sends, and then says nothing; aborts at the end."""
    producer = Producer({
        "bootstrap.servers": bootstrap, "transactional.id": f"silent-{topic}",
        "transaction.timeout.ms": TIMEOUT_MS, "log_level": 0,
    })  # fmt: skip
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    write(producer, topic, *values)
    yield producer
    producer.abort_transaction(WAIT_S)


async def found_of(admin: KafkaAdmin, name: str) -> list[OpenTransaction]:
    every = await OpenTransactions(admin, open_ms=0).read()
    return [it for it in every if it.transactional_id == name]


async def test_a_silent_producer_is_found_with_what_it_holds_up(
    bootstrap: str, admin: KafkaAdmin
) -> None:
    topic = new_topic(bootstrap)
    name, key = f"silent-{topic}", TopicPartition(topic, 0)
    plain = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    write(plain, topic, b"before")
    with silent_producer(bootstrap, topic, b"1", b"2", b"3"):
        write(plain, topic, b"behind it")
        (item,) = await found_of(admin, name)
        assert item.held == (HeldPartition(key=key, offset=1, records=4),)
        assert (item.state, item.timeout_ms, item.partitions) == ("Ongoing", TIMEOUT_MS, 1)
        (finding,) = transaction_findings([item], now_ms=later_ms(item))
        assert (finding.kind, finding.severity) == ("transaction-open", Severity.WARNING)
        assert finding.subject == f"topics/{topic}/partitions/0"
        assert finding.since_ms == item.since_ms
        young = await OpenTransactions(admin).read()
        assert name not in {it.transactional_id for it in young}, "it may be at work"
        assert consumed(bootstrap, topic, 1, "read_committed") == [b"before"]
    await eventually(lambda: found_of(admin, name), [])
    assert consumed(bootstrap, topic, 2, "read_committed") == [b"before", b"behind it"]


@pytest.mark.kafka_oracle
async def test_a_transaction_that_no_coordinator_lists_is_found_as_kafkas_tool_finds_it(
    kafka_cluster: KafkaCluster,
) -> None:
    where = ("--bootstrap-server", kafka_cluster.bootstrap)
    async with KafkaAdmin.to(kafka_cluster.bootstrap) as admin:
        raw = Raw(kafka_cluster.bootstrap)
        await admin.alter_configs(EVERY_BROKER, {VERIFIES: "false"})
        try:
            wait_until(lambda: raw.produce(0) == 0, "a leader takes it unasked")
        finally:
            await admin.alter_configs(EVERY_BROKER, {VERIFIES: None})
        transactions = OpenTransactions(admin)
        (item,) = [it for it in await transactions.read() if it.producer_id == raw.producer_id]
        held = HeldPartition(key=TopicPartition(raw.topic, 0), offset=0, records=1, first_offset=0)
        assert (item.transactional_id, item.held) == (None, (held,))
        told = run_tool(TRANSACTIONS, *where, "find-hanging", "--topic", raw.topic)
        assert re.search(rf"{raw.topic}\s+0\s+{raw.producer_id}\s+{raw.epoch}", told.stdout)
        watched = WatchedCluster(bootstrap=kafka_cluster.bootstrap)
        found = await asyncio.to_thread(operations_now, watched, None)
        (finding,) = [it for it in found if it.label == f"producer {raw.producer_id}"]
        assert (finding.kind, finding.severity) == ("transaction-hanging", Severity.WARNING)
        command = f"abort --topic {raw.topic} --partition 0 --start-offset 0"
        assert command in finding.next_step
        done = run_tool(TRANSACTIONS, *where, *command.split())
        assert done.returncode == 0, done.stderr
        assert raw.ends() == (2, 2), "consumers go on"
        after = await OpenTransactions(admin).read()
        assert raw.producer_id not in {it.producer_id for it in after}


@pytest.mark.kafka_oracle
@pytest.mark.timeout(240)
@pytest.mark.usefixtures("kafka_libs")
async def test_who_may_not_describe_a_transaction_is_not_told_that_it_hangs(
    tmp_path: Path,
) -> None:
    with SecureKafka(tmp_path) as cluster:
        reads = AclOperation.DESCRIBE, AclOperation.READ
        cluster.grant(*((ResourceType.TOPIC, "*", it) for it in reads))
        admin = cluster.admin()
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(WAIT_S)
        producer = Producer({**cluster.admin_config, "transactional.id": "shop"})
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        producer.produce("orders", b"v", timestamp=1)
        assert producer.flush(WAIT_S) == 0
        async with KafkaAdmin.to(cluster.connection()) as viewer:
            assert await OpenTransactions(viewer, open_ms=0).read() == ()
            cluster.grant((ResourceType.TRANSACTIONAL_ID, "*", AclOperation.DESCRIBE))

            async def told() -> list[str | None]:
                found = await OpenTransactions(viewer, open_ms=0).read()
                return [it.transactional_id for it in found if it.held]

            await eventually(told, ["shop"])
        producer.abort_transaction(WAIT_S)
