"""Every question of the adapters in every version that ``apis`` claims to speak.

A broker serves one version alone: what is asked can be written in it, and what it answers is read
for what it says, also where that version has fewer fields.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection import apis
from control.kafka.connection.wire import Api
from control.kafka.ports import (
    ConfigResource,
    ConfigScope,
    ElectionType,
    NewTopic,
    OffsetSpec,
)
from control.kafka.records.reader import RecordReader
from control.model.ids import TopicPartition
from tests.unit.control.kafka.scripted_cluster import Asked, ScriptedCluster

ORDERS: Final = TopicPartition("orders", 0)
TOPIC: Final = ConfigResource(scope=ConfigScope.TOPIC, name="orders")
Ask = Callable[[KafkaAdmin], Awaitable[Any]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={"orders": {0: (1,)}}) as shared:
        yield shared


def _partitions(name: str, **fields: Any) -> dict[str, Any]:
    partition = {"partition_index": 0, "error_code": 0, **fields}
    return {"topics": ({"name": name, "partitions": (partition,)},)}


def _committed(asked: Asked) -> dict[str, Any]:
    offsets = _partitions("orders", committed_offset=7, metadata="", committed_leader_epoch=-1)
    if asked.version >= 8:
        return {"groups": ({"group_id": "g", "error_code": 0, **offsets},)}
    return {"error_code": 0, **offsets}


def _listed(_: Asked) -> dict[str, Any]:
    group = {"group_id": "g", "protocol_type": "consumer", "group_state": "Empty"}
    return {"error_code": 0, "groups": (group,)}


def _classic(_: Asked) -> dict[str, Any]:
    member = {
        "member_id": "m", "client_id": "c", "client_host": "/10.0.0.1",
        "member_metadata": b"", "member_assignment": b"",
    }  # fmt: skip
    group = {
        "group_id": "g", "error_code": 0, "group_state": "Stable", "protocol_type": "consumer",
        "protocol_data": "range", "members": (member,),
    }  # fmt: skip
    return {"groups": (group,)}


def _config(_: Asked) -> dict[str, Any]:
    entry = {
        "name": "retention.ms", "value": "5", "read_only": False, "config_source": 1,
        "is_sensitive": False, "synonyms": (),
    }  # fmt: skip
    told = {"resource_type": 2, "resource_name": "orders", "configs": (entry,)}
    return {"results": ({"error_code": 0, "error_message": None, **told},)}


def _altered(_: Asked) -> dict[str, Any]:
    told = {"resource_type": 2, "resource_name": "orders"}
    return {"responses": ({"error_code": 0, "error_message": None, **told},)}


def _log_dirs(_: Asked) -> dict[str, Any]:
    partition = {
        "partition_index": 0, "partition_size": 9, "offset_lag": 0, "is_future_key": False,
    }  # fmt: skip
    topics = ({"name": "orders", "partitions": (partition,)},)
    return {"results": ({"error_code": 0, "log_dir": "/d", "topics": topics},)}


def _fetched(_: Asked) -> dict[str, Any]:
    partition = {
        "partition_index": 0, "error_code": 0, "high_watermark": 5, "last_stable_offset": 4,
        "log_start_offset": 0, "aborted_transactions": None, "records": b"",
    }  # fmt: skip
    return {"error_code": 0, "responses": ({"topic": "orders", "partitions": (partition,)},)}


async def _created(admin: KafkaAdmin) -> None:
    await admin.create_topic(NewTopic(name="orders", partitions=1, configs={"retention.ms": "5"}))


async def _moved(admin: KafkaAdmin) -> Any:
    return await admin.alter_reassignments({ORDERS: (1, 2)})


async def _elected(admin: KafkaAdmin) -> Any:
    return await admin.elect_leaders([ORDERS], ElectionType.PREFERRED)


async def _sized(admin: KafkaAdmin) -> Any:
    (found,) = await admin.log_dirs()
    sizes = [it.size_bytes for it in found.replicas]
    return sizes, found.total_bytes, found.is_cordoned


async def _end(admin: KafkaAdmin) -> int:
    return (await admin.offsets.list_offsets([ORDERS], OffsetSpec.LATEST))[ORDERS].offset


async def _read(admin: KafkaAdmin) -> Any:
    async with RecordReader(admin.wire.settings) as reader:
        chunks = await reader.fetch({ORDERS: 0}, max_wait_ms=0)
    return chunks[ORDERS].high_watermark


async def _described(admin: KafkaAdmin) -> Any:
    found = await admin.groups.describe_group("g")
    return found.state, found.group_type, [member.client_host for member in found.members]


async def _leaders(admin: KafkaAdmin) -> Any:
    (topic,) = await admin.topics(["orders"])
    return [(it.leader, it.replicas) for it in topic.partitions]


_ONE: Final = {"name": "orders", "error_code": 0, "error_message": None}
QUESTIONS: Final[dict[str, tuple[Api, Callable[[Asked], dict[str, Any]] | None, Ask, Any]]] = {
    "metadata": (apis.METADATA, None, _leaders, [(1, (1,))]),
    "cluster": (
        apis.METADATA, None, lambda it: it.describe_cluster(), None,
    ),
    "coordinator": (apis.FIND_COORDINATOR, None, lambda it: it.groups.coordinator("g"), 1),
    "end offsets": (
        apis.LIST_OFFSETS, lambda _: _partitions("orders", offset=7, timestamp=-1), _end, 7,
    ),
    "commits": (
        apis.OFFSET_FETCH, _committed, lambda it: it.groups.committed_offsets("g"), {ORDERS: 7},
    ),
    "commit": (
        apis.OFFSET_COMMIT, lambda _: _partitions("orders"),
        lambda it: it.groups.commit_offsets("g", {ORDERS: 3}), None,
    ),
    "groups": (
        apis.LIST_GROUPS, _listed, lambda it: it.groups.list_groups(), None,
    ),
    "group": (apis.DESCRIBE_GROUPS, _classic, _described, ("Stable", "classic", ["10.0.0.1"])),
    "delete group": (
        apis.DELETE_GROUPS, lambda _: {"results": ({"group_id": "g", "error_code": 0},)},
        lambda it: it.groups.delete_group("g"), None,
    ),
    "create": (apis.CREATE_TOPICS, lambda _: {"topics": (_ONE,)}, _created, None),
    "delete": (
        apis.DELETE_TOPICS, lambda _: {"responses": (_ONE,)},
        lambda it: it.delete_topic("orders"), None,
    ),
    "partitions": (
        apis.CREATE_PARTITIONS, lambda _: {"results": (_ONE,)},
        lambda it: it.create_partitions("orders", 1), None,
    ),
    "delete records": (
        apis.DELETE_RECORDS, lambda _: _partitions("orders", low_watermark=4),
        lambda it: it.offsets.delete_records({ORDERS: 4}), {ORDERS: 4},
    ),
    "configs": (
        apis.DESCRIBE_CONFIGS, _config, lambda it: it.describe_configs(TOPIC), None,
    ),
    "change configs": (
        apis.ALTER_CONFIGS, _altered,
        lambda it: it.alter_configs(TOPIC, {"retention.ms": None, "a": "b"}), None,
    ),
    "log dirs": (apis.DESCRIBE_LOG_DIRS, _log_dirs, _sized, ([9], None, False)),
    "reassign": (
        apis.ALTER_REASSIGNMENTS,
        lambda _: {
            "error_code": 0, "error_message": None, "responses": _partitions("orders")["topics"],
        }, _moved, {},
    ),
    "reassignments": (
        apis.LIST_REASSIGNMENTS,
        lambda _: {"error_code": 0, "error_message": None, "topics": ()},
        lambda it: it.list_reassignments(), (),
    ),
    "elect": (
        apis.ELECT_LEADERS, lambda _: {"error_code": 0, "replica_election_results": ()},
        _elected, {},
    ),
    "read": (apis.FETCH, _fetched, _read, 5),
}  # fmt: skip
CASES: Final = [
    pytest.param(name, version, id=f"{name} v{version}")
    for name, (api, *_) in QUESTIONS.items()
    for version in range(api.versions[0], api.versions[1] + 1)
]
_MODERN: Final = (
    apis.CONSUMER_GROUP_DESCRIBE, apis.SHARE_GROUP_DESCRIBE, apis.STREAMS_GROUP_DESCRIBE,
)  # fmt: skip


@pytest.mark.parametrize(("name", "version"), CASES)
async def test_each_version_can_be_asked_and_is_read(
    cluster: ScriptedCluster, name: str, version: int
) -> None:
    api, script, ask, wanted = QUESTIONS[name]
    cluster.scripts.clear()
    cluster.asked.clear()
    served = cluster.served
    cluster.served = {**served, api.key: (version, version)}
    for modern in _MODERN:
        del cluster.served[modern.key]
    if script is not None:
        cluster.on(api, script)
    try:
        async with KafkaAdmin.to(cluster.settings()) as admin:
            found = await ask(admin)
    finally:
        cluster.served = served
    assert {asked.version for asked in cluster.requests(api)} == {version}
    if wanted is not None:
        assert found == wanted
