"""Requests that name a thing twice: bundled brokers answer as the newest Kafka does."""

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from tests.contract.operations_rig import unique
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import KafkaCluster, ready_admin
from tests.support.node_cluster import NodeCluster
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until
from tests.support.wire import ask, wait_for_topic

pytestmark = pytest.mark.kafka_oracle

RECORDS: Final = 10
FIND_COORDINATOR: Final = (10, 4)
LIST_OFFSETS: Final = (2, 7)
OF_A_NODE: Final = frozenset(
    ["throttle_time", "brokers", "cluster_id", "controller_id", "topic_id", "log_dir"]
)
"""Fields that differ between any two clusters."""


@dataclasses.dataclass(frozen=True)
class Filled:
    """A topic of two partitions with records, both led by one broker, and a group with a commit."""

    address: str
    """Of the leader, or of the group's coordinator."""
    leader: str
    topic: str
    group: str


Fields = Callable[[Filled], dict[str, Any]]


def _list_offsets(at: Filled) -> dict[str, Any]:
    def of(partition: int, timestamp: int = -1) -> dict[str, Any]:
        return {"partition_index": partition, "timestamp": timestamp}

    both = {"name": at.topic, "partitions": [of(0), of(1), of(0, -2)]}
    absent = {"name": f"no-{at.topic}", "partitions": [of(0), of(0), of(1)]}
    return {"replica_id": -1, "topics": [both, absent]}


def _list_offsets_of_topics(at: Filled) -> dict[str, Any]:
    of = [{"partition_index": 0, "timestamp": -1}]
    more = [{"partition_index": 1, "timestamp": -1}]
    named = [{"name": at.topic, "partitions": it} for it in (of, of, more)]
    return {"replica_id": -1, "topics": named}


def _produce(at: Filled) -> dict[str, Any]:
    """The first batch of partition 0 has one record, the second has two."""
    batches = [(0, 1), (0, 2), (1, 1)]
    named = [{"index": of, "records": _batch(count)} for of, count in batches]
    return {
        "transactional_id": None, "acks": -1, "timeout": 10_000,
        "topic_data": [{"name": at.topic, "partition_data": named}],
    }  # fmt: skip


def _produce_to_topics(at: Filled) -> dict[str, Any]:
    (topic,) = (told := _produce(at))["topic_data"]
    return {
        **told,
        "topic_data": [{**topic, "partition_data": [it]} for it in topic["partition_data"]],
    }


def _batch(records: int) -> bytes:
    return build_batch([NewRecord(timestamp=2_000, key=None, value=b"y")] * records)


def _delete_records(at: Filled) -> dict[str, Any]:
    offsets = [(0, 2), (0, 1), (1, 3)]
    named = [{"partition_index": of, "offset": it} for of, it in offsets]
    return {"topics": [{"name": at.topic, "partitions": named}], "timeout": 10_000}


def _fetch(at: Filled) -> dict[str, Any]:
    offsets = [(0, 50), (0, 0), (1, 0)]
    named = [
        {"partition": of, "fetch_offset": it, "partition_max_bytes": 10_000} for of, it in offsets
    ]
    return {
        "max_wait": 10, "min_bytes": 0, "max_bytes": 100_000, "session_epoch": -1,
        "topics": [{"topic": at.topic, "partitions": named}],
    }  # fmt: skip


def _leader_epochs(at: Filled) -> dict[str, Any]:
    named = [{"partition": of, "leader_epoch": 0} for of in (0, 0, 1)]
    return {"replica_id": -1, "topics": [{"topic": at.topic, "partitions": named}]}


def _metadata(at: Filled) -> dict[str, Any]:
    names = (at.topic, at.topic, f"no-{at.topic}", f"no-{at.topic}")
    return {"topics": [{"name": it} for it in names], "allow_auto_topic_creation": False}


def _log_dirs(at: Filled) -> dict[str, Any]:
    return {"topics": [{"topic": at.topic, "partitions": [0, 0]}]}


def _reassignments(at: Filled) -> dict[str, Any]:
    return {"timeout": 10_000, "topics": [{"name": at.topic, "partition_indexes": [0, 0]}]}


def _offset_fetch(at: Filled) -> dict[str, Any]:
    named = [{"name": at.topic, "partition_indexes": [0, 0, 1]}]
    return {"groups": [{"group_id": at.group, "topics": named}] * 2}


def _delete_groups(at: Filled) -> dict[str, Any]:
    return {"groups_names": [at.group, at.group]}


OF_TOPICS: Final[dict[str, tuple[int, int, Fields]]] = {
    "ListOffsets v1": (2, 1, _list_offsets),
    "ListOffsets v11": (2, 11, _list_offsets),
    "ListOffsets, topics": (2, 7, _list_offsets_of_topics),
    "Produce": (0, 12, _produce),
    "Produce, topics": (0, 12, _produce_to_topics),
    "DeleteRecords": (21, 2, _delete_records),
    "Fetch": (1, 12, _fetch),
    "OffsetForLeaderEpoch": (23, 4, _leader_epochs),
    "Metadata": (3, 9, _metadata),
    "DescribeLogDirs": (35, 4, _log_dirs),
    "ListPartitionReassignments": (46, 0, _reassignments),
}
OF_GROUPS: Final[dict[str, tuple[int, int, Fields]]] = {
    "OffsetFetch": (9, 8, _offset_fetch),
    "DeleteGroups": (42, 2, _delete_groups),
}


@pytest.mark.parametrize("request_name", OF_TOPICS)
def test_topics_and_partitions(
    our_cluster: LocalCluster, kafka_today: KafkaCluster, request_name: str
) -> None:
    ours, theirs = (_answer(it, *OF_TOPICS[request_name]) for it in (our_cluster, kafka_today))
    assert ours == theirs


@pytest.mark.parametrize("request_name", OF_GROUPS)
def test_groups(our_cluster: LocalCluster, kafka_today: KafkaCluster, request_name: str) -> None:
    ours, theirs = (
        _answer(it, *OF_GROUPS[request_name], of_group=True) for it in (our_cluster, kafka_today)
    )
    assert ours == theirs


def _answer(
    cluster: NodeCluster, key: int, version: int, fields: Fields, *, of_group: bool = False
) -> Any:
    at = _filled(cluster)
    if of_group:
        _commit(cluster, at)
        at = dataclasses.replace(at, address=_coordinator(cluster, at.group))
    request = codec.build_request(key, version, **fields(at))
    told = repr((_plain(ask(at.address, key, version, request)), _ends(at)))
    return told.replace(at.topic, "TOPIC").replace(at.group, "GROUP")


def _ends(at: Filled) -> dict[int, int]:
    """Where both partitions end now."""
    named = [{"partition_index": of, "timestamp": -1} for of in (0, 1)]
    fields: dict[str, Any] = {
        "replica_id": -1,
        "topics": [{"name": at.topic, "partitions": named}],
    }
    (topic,) = ask(at.leader, *LIST_OFFSETS, codec.build_request(*LIST_OFFSETS, **fields)).topics
    return dict(sorted((it.partition_index, it.offset) for it in topic.partitions))


def _filled(cluster: NodeCluster) -> Filled:
    topic = unique("twice")
    where = {"bootstrap.servers": cluster.bootstrap}
    leader = min(cluster.ids)
    new = NewTopic(topic, 2, replica_assignment=[[leader], [leader]])
    admin = ready_admin(**where)
    admin.create_topics([new])[topic].result(WAIT_S)
    wait_for_topic(cluster.bootstrap, topic, 2)
    producer = Producer({**where, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(topic, b"x", partition=number % 2, timestamp=1_000 + number)
    assert producer.flush(WAIT_S) == 0
    address = cluster.bootstrap.split(",")[0]
    return Filled(address=address, leader=address, topic=topic, group=unique("readers"))


def _commit(cluster: NodeCluster, at: Filled) -> None:
    """As soon as the group's coordinator has loaded."""
    where = {"bootstrap.servers": cluster.bootstrap, "log_level": 0}
    consumer = Consumer({**where, "group.id": at.group})
    offsets = [TopicPartition(at.topic, 0, 3)]

    def is_taken() -> bool:
        try:
            consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return False
        return True

    wait_until(is_taken, f"the coordinator takes a commit of {at.group}")
    consumer.close()


def _coordinator(cluster: NodeCluster, group: str) -> str:
    request = codec.build_request(*FIND_COORDINATOR, coordinator_keys=[group])
    (found,) = ask(cluster.bootstrap.split(",")[0], *FIND_COORDINATOR, request).coordinators
    return f"{found.host}:{found.port}"


def _plain(told: Any) -> Any:
    """Without what differs between clusters, without an order, and without directories that hold
    nothing of what is asked: Kafka's nodes have two."""
    if dataclasses.is_dataclass(told):
        names = [it.name for it in dataclasses.fields(told) if it.name not in OF_A_NODE]
        names = [name for name in names if not name.endswith(("_bytes", "_size"))]
        return {name: _plain(getattr(told, name)) for name in names}
    if isinstance(told, tuple | list):
        each = [_plain(it) for it in told]
        held = [it for it in each if not (isinstance(it, dict) and it.get("topics") == [])]
        return sorted(held, key=repr)
    return told
