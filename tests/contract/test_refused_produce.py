"""Produce requests that are refused, by our broker as by Kafka."""

import time
from typing import Any

import pytest

from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from tests.contract.operations_rig import unique
from tests.support.settle import wait_until
from tests.support.wire import ask, metadata, wait_for_topic

PRODUCE = (0, 9)
INVALID_RECORD = 87
INVALID_TIMESTAMP = 32
NO_ERROR = 0
NOT_YET = (3, 5, 6)
"""UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER."""


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


def settled(bootstrap: str, topic: str, records: bytes) -> Any:
    """The answer of a leader that knows that it leads: it may have been told last."""
    answers: list[Any] = []

    def is_answered() -> bool:
        leader, _ = leader_and_another(bootstrap, topic)
        answer = produce(leader, topic, records, acks=1).responses[0].partition_responses[0]
        answers.append(answer)
        return int(answer.error_code) not in NOT_YET

    wait_until(is_answered, f"{topic} has a leader")
    return answers[-1]


async def test_each_record_that_is_refused_is_told(bootstrap: str, admin: KafkaAdmin) -> None:
    now_ms = time.time_ns() // 1_000_000
    late_ms = now_ms + 7_200_000
    keyed, keyless, late = (b"k", now_ms), (None, now_ms), (b"k", late_ms)
    no_key, out_of_range = "without key", "is out of range"
    compacted, timed = {"cleanup.policy": "compact"}, {"message.timestamp.after.max.ms": "3600000"}
    cases: list[tuple[dict[str, str], list[tuple[bytes | None, int]], int, dict[int, str]]] = [
        (compacted, [keyed, keyless, keyed, keyless], INVALID_RECORD, {1: no_key, 3: no_key}),
        (compacted, [(None, late_ms)], INVALID_RECORD, {0: no_key}),
        (compacted, [keyless, late], INVALID_TIMESTAMP, {0: no_key, 1: out_of_range}),
        (timed, [keyed, keyless, late], INVALID_TIMESTAMP, {2: out_of_range}),
        (timed, [keyed, keyless], NO_ERROR, {}),
    ]
    for configs, rows, code, refused in cases:
        name = unique("each")
        new = NewTopic(name=name, partitions=1, replication_factor=1, configs=configs)
        await admin.create_topic(new)
        wait_for_topic(bootstrap, name, 1)
        records = build_batch(
            [NewRecord(key=key, value=b"v", timestamp=at, headers=()) for key, at in rows]
        )
        answer = settled(bootstrap, name, records)
        assert int(answer.error_code) == code
        told = {it.batch_index: it.batch_index_error_message for it in answer.record_errors}
        assert told.keys() == refused.keys()
        assert all(why in told[number] for number, why in refused.items())
        assert ("one or more records" in str(answer.error_message).lower()) is bool(refused)
