"""Produce requests that are refused, by our broker as by Kafka."""

import time
from typing import Any

import pytest

from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from tests.contract.operations_rig import unique
from tests.support.wire import ask, metadata, wait_for_topic

PRODUCE = (0, 9)
INVALID_RECORD = 87
NO_ERROR = 0


def batch() -> bytes:
    now_ms = time.time_ns() // 1_000_000
    return build_batch([NewRecord(key=None, value=b"v", timestamp=now_ms, headers=())])


def produce(address: str, topic: str, records: bytes, *, acks: int) -> Any:
    part = {"index": 0, "records": records}
    data = [{"name": topic, "partition_data": [part]}]
    asked = codec.build_request(
        *PRODUCE, transactional_id=None, acks=acks, timeout=5_000, topic_data=data
    )
    return ask(address, *PRODUCE, asked)


@pytest.fixture
async def topic(admin: KafkaAdmin, bootstrap: str) -> str:
    name = unique("refused")
    await admin.create_topic(NewTopic(name=name, partitions=1, replication_factor=1))
    wait_for_topic(bootstrap, name, 1)
    return name


def leader_and_another(bootstrap: str, topic: str) -> tuple[str, str]:
    found = metadata(bootstrap.split(",")[0])
    (part,) = next(it for it in found.topics if it.name == topic).partitions
    at = {broker.node_id: f"{broker.host}:{broker.port}" for broker in found.brokers}
    return at[part.leader_id], next(where for node, where in at.items() if node != part.leader_id)


async def test_several_batches_for_one_partition_are_refused(bootstrap: str, topic: str) -> None:
    leader, _ = leader_and_another(bootstrap, topic)
    for records, code in ((batch() + batch(), INVALID_RECORD), (batch(), NO_ERROR)):
        answer = produce(leader, topic, records, acks=1).responses[0].partition_responses[0]
        assert (int(answer.error_code), answer.base_offset) == (code, -1 if code else 0)


async def test_a_failure_without_acks_ends_the_connection(bootstrap: str, topic: str) -> None:
    _, another = leader_and_another(bootstrap, topic)
    with pytest.raises(ConnectionError, match="closed the connection"):
        produce(another, topic, batch(), acks=0)
