"""What answers say beside "no error": a null, an empty text or a word, as the newest Kafka does."""

import dataclasses
from typing import Any, Final

import pytest

from broker.protocol import codec
from tests.contract.operations_rig import unique
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import KafkaCluster
from tests.support.node_cluster import NodeCluster
from tests.support.settle import wait_until
from tests.support.wire import ask, wait_for_topic

pytestmark = pytest.mark.kafka_oracle

TOPIC_RESOURCE: Final = 2
CREATE_TOPICS: Final = 19
FIND_COORDINATOR: Final = (10, 4)
TIMEOUT: Final = {"timeout": 20_000}


def _requests(cluster: NodeCluster, topic: str) -> list[tuple[int, int, dict[str, Any]]]:
    """Key, version and fields, in an order in which all of them work."""
    first, second = cluster.ids[:2]
    config = {"name": "retention.ms", "value": "60000", "config_operation": 0}
    resource = {"resource_type": TOPIC_RESOURCE, "resource_name": topic}
    one = {"name": topic, "num_partitions": -1, "replication_factor": -1, "configs": []}
    placed = {**one, "assignments": [{"partition_index": 0, "broker_ids": [first]}]}
    moved = {"name": topic, "partitions": [{"partition_index": 0, "replicas": [first, second]}]}
    grown = {"name": topic, "count": 2, "assignments": None}
    named = {"name": topic, "topic_id": None}
    quorum = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    return [
        (CREATE_TOPICS, 7, {**TIMEOUT, "topics": [placed]}),
        *((10, version, {"key": topic, "key_type": 0}) for version in (1, 2, 3)),
        *((10, version, {"key_type": 0, "coordinator_keys": [topic]}) for version in (4, 5, 6)),
        *((32, version, {"resources": [resource]}) for version in (1, 4)),
        (44, 1, {"resources": [{**resource, "configs": [config]}]}),
        (33, 2, {"resources": [{**resource, "configs": []}]}),
        (37, 3, {**TIMEOUT, "topics": [grown]}),
        (45, 1, {**TIMEOUT, "topics": [moved]}),
        (46, 0, {**TIMEOUT, "topics": None}),
        (55, 2, {"topics": [quorum]}),
        (60, 2, {}),
        (20, 6, {**TIMEOUT, "topics": [named]}),
    ]


def _messages(told: Any, path: str = "") -> dict[str, Any]:
    """The messages and error codes in an answer, by where they are; of lists the first item's."""
    if isinstance(told, tuple | list):
        return _messages(told[0], f"{path}[0]") if told else {}
    if not dataclasses.is_dataclass(told):
        return {}
    found: dict[str, Any] = {}
    for field in dataclasses.fields(told):
        value, place = getattr(told, field.name), f"{path}.{field.name}"
        is_told = field.name in ("error_message", "error_code")
        found |= {place: value} if is_told else _messages(value, place)
    return found


def _told(cluster: NodeCluster) -> dict[str, Any]:
    topic = unique("words")
    address = cluster.bootstrap.split(",")[0]
    wait_until(lambda: _has_coordinator(address, topic), "groups have a coordinator")
    found = {}
    for key, version, fields in _requests(cluster, topic):
        request = codec.build_request(key, version, **fields)
        found[f"{key} v{version}"] = _messages(ask(address, key, version, request))
        if key == CREATE_TOPICS:
            wait_for_topic(cluster.bootstrap, topic, 1)
    return found


def _has_coordinator(address: str, group: str) -> bool:
    request = codec.build_request(*FIND_COORDINATOR, coordinator_keys=[group])
    (found,) = ask(address, *FIND_COORDINATOR, request).coordinators
    return int(found.error_code) == 0


def test_messages_of_success(our_cluster: LocalCluster, kafka_today: KafkaCluster) -> None:
    theirs = _told(kafka_today)
    assert _told(our_cluster) == theirs
