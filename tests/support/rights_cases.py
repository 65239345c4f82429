"""Requests of a principal that may do nothing, or little, and what is told of each: as data, for
brokers of ours and for Kafka.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.metadata.acls import Operation, PatternType, Permission, ResourceKind
from broker.protocol.records import NewRecord, build_batch

TOPIC, GROUP, CLUSTER, ID = (
    ResourceKind.TOPIC,
    ResourceKind.GROUP,
    ResourceKind.CLUSTER,
    ResourceKind.TRANSACTIONAL_ID,
)
TOPIC_DENIED: Final = ErrorCode.topic_authorization_failed
GROUP_DENIED: Final = ErrorCode.group_authorization_failed
CLUSTER_DENIED: Final = ErrorCode.cluster_authorization_failed
ID_DENIED: Final = ErrorCode.transactional_id_authorization_failed
BATCH: Final = build_batch([NewRecord(value=b"v", timestamp=1)])
_OF_TRANSACTION: Final = build_batch(
    [NewRecord(value=b"v", timestamp=1)],
    producer_id=1,
    producer_epoch=0,
    base_sequence=0,
    is_transactional=True,
)
STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
Case = tuple[int, int, dict[str, Any], Any, list[Any]]
"""API key, version, request, how the answer is read, and what is read."""


def creation(
    kind: ResourceKind, name: str, right: Operation, permission: Permission = Permission.ALLOW
) -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": right,
        "permission_type": permission,
    }


_TXN: dict[str, Any] = {"transactional_id": "t", "producer_id": 1, "producer_epoch": 0}
_MEMBER: dict[str, Any] = {"group_id": "g", "generation_id": 1, "member_id": "m"}
_ONE: dict[str, Any] = {"name": "hidden", "partition_index": 0}
_CHANGES = [{"name": "retention.ms", "value": "1", "config_operation": 0}]
_RESOURCES = [
    {"resource_type": kind, "resource_name": name, "configs": _CHANGES}
    for kind, name in ((2, "hidden"), (4, ""), (32, "g"))
]
_DENIED_CONFIGS = [TOPIC_DENIED, CLUSTER_DENIED, GROUP_DENIED]


def of_partitions(answer: Any, topics: str, rows: str = "partitions") -> list[Any]:
    return [row.error_code for topic in getattr(answer, topics) for row in getattr(topic, rows)]


CASES: list[Case] = [
    (0, 9, {"transactional_id": None, "acks": 1, "timeout": 1_000, "topic_data": [
        {"name": "hidden", "partition_data": [{"index": 0, "records": BATCH}]}]},
     lambda a: [p.error_code for t in a.responses for p in t.partition_responses], [TOPIC_DENIED]),
    (0, 9, {"transactional_id": "t", "acks": 1, "timeout": 1_000, "topic_data": [
        {"name": "hidden", "partition_data": [{"index": 0, "records": _OF_TRANSACTION}]}]},
     lambda a: [p.error_code for t in a.responses for p in t.partition_responses], [ID_DENIED]),
    (1, 11, {"max_wait": 5_000, "min_bytes": 1, "topics": [{"topic": "hidden", "partitions": [
        {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}]}]},
     lambda a: of_partitions(a, "responses"), [TOPIC_DENIED]),
    (1, 11, {"replica_id": 101, "max_wait": 5_000, "topics": [{"topic": "seen", "partitions": [
        {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}]}]},
     lambda a: of_partitions(a, "responses"), [TOPIC_DENIED]),
    (2, 7, {"replica_id": -1, "topics": [{"name": "hidden", "partitions": [
        {"partition_index": 0, "timestamp": -1}]}]},
     lambda a: of_partitions(a, "topics"), [TOPIC_DENIED]),
    (3, 12, {"topics": [{"name": it, "topic_id": None} for it in ("hidden", "not there")]},
     lambda a: [(t.error_code, t.topic_id, t.partitions) for t in a.topics],
     [(TOPIC_DENIED, None, ())] * 2),
    (3, 12, {"topics": None}, lambda a: [t.name for t in a.topics], []),
    (8, 8, {"group_id": "g", "generation_id_or_member_epoch": -1, "topics": [
        {"name": "hidden", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]},
     lambda a: of_partitions(a, "topics"), [GROUP_DENIED]),
    (9, 8, {"groups": [{"group_id": "g", "topics": None}]},
     lambda a: [(g.error_code, g.topics) for g in a.groups], [(GROUP_DENIED, ())]),
    (9, 7, {"group_id": "g", "topics": [{"name": "hidden", "partition_indexes": [0]}]},
     lambda a: [a.error_code, a.topics], [GROUP_DENIED, ()]),
    (9, 1, {"group_id": "g", "topics": [{"name": "hidden", "partition_indexes": [0]}]},
     lambda a: of_partitions(a, "topics"), [GROUP_DENIED]),
    (10, 6, {"key_type": 0, "coordinator_keys": ("g",)},
     lambda a: [(c.error_code, c.node_id) for c in a.coordinators], [(GROUP_DENIED, -1)]),
    (10, 3, {"key_type": 1, "key": "t"}, lambda a: [a.error_code], [ID_DENIED]),
    (11, 5, {"group_id": "g", "session_timeout": 10_000, "rebalance_timeout": 10_000,
             "member_id": "", "protocol_type": "consumer", "protocols": []},
     lambda a: [a.error_code], [GROUP_DENIED]),
    (12, 4, _MEMBER, lambda a: [a.error_code], [GROUP_DENIED]),
    (13, 5, {"group_id": "g", "members": []}, lambda a: [a.error_code], [GROUP_DENIED]),
    (14, 5, {**_MEMBER, "protocol_type": "consumer", "protocol_name": "range", "assignments": []},
     lambda a: [a.error_code], [GROUP_DENIED]),
    (15, 5, {"groups": ("g",)}, lambda a: [(g.error_code, g.group_state) for g in a.groups],
     [(GROUP_DENIED, "")]),
    (16, 5, {}, lambda a: list(a.groups), []),
    (19, 7, {"topics": [{"name": "new", "num_partitions": 1, "replication_factor": 1}]},
     lambda a: [t.error_code for t in a.topics], [TOPIC_DENIED]),
    (20, 5, {"topic_names": ("hidden", "not there"), "timeout": 30_000},
     lambda a: [r.error_code for r in a.responses], [TOPIC_DENIED] * 2),
    (21, 2, {"topics": [{"name": "hidden", "partitions": [{"partition_index": 0, "offset": 0}]}],
             "timeout": 1_000},
     lambda a: of_partitions(a, "topics"), [TOPIC_DENIED]),
    (22, 4, {"transactional_id": None, "transaction_timeout": 1_000},
     lambda a: [a.error_code], [CLUSTER_DENIED]),
    (22, 4, {"transactional_id": "t", "transaction_timeout": 1_000},
     lambda a: [a.error_code], [ID_DENIED]),
    (23, 4, {"replica_id": -1, "topics": [{"topic": "hidden", "partitions": [
        {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]}]},
     lambda a: of_partitions(a, "topics"), [TOPIC_DENIED]),
    (24, 3, {"v3_and_below_transactional_id": "t", "v3_and_below_producer_id": 1,
             "v3_and_below_producer_epoch": 0,
             "v3_and_below_topics": [{"name": "hidden", "partitions": (0,)}]},
     lambda a: [p.partition_error_code for t in a.results_by_topic_v3_and_below
                for p in t.results_by_partition], [ID_DENIED]),
    (24, 5, {"transactions": []}, lambda a: [a.error_code], [CLUSTER_DENIED]),
    (25, 4, {**_TXN, "group_id": "g"}, lambda a: [a.error_code], [ID_DENIED]),
    (26, 4, {**_TXN, "committed": True}, lambda a: [a.error_code], [ID_DENIED]),
    (27, 1, {"markers": [{"producer_id": 1, "producer_epoch": 0, "transaction_result": False,
        "coordinator_epoch": 0, "topics": [{"name": "hidden", "partition_indexes": (0,)}]}]},
     lambda a: [p.error_code for m in a.markers for t in m.topics for p in t.partitions],
     [CLUSTER_DENIED]),
    (28, 3, {**_TXN, **_MEMBER, "topics": [{"name": "hidden", "partitions": [
        {"partition_index": 0, "committed_offset": 1}]}]},
     lambda a: of_partitions(a, "topics"), [ID_DENIED]),
    (29, 3, {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1,
             "permission_type": 1}, lambda a: [a.error_code, *a.resources], [CLUSTER_DENIED]),
    (30, 3, {"creations": [creation(TOPIC, "hidden", Operation.READ)]},
     lambda a: [r.error_code for r in a.results], [CLUSTER_DENIED]),
    (31, 3, {"filters": [{"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1,
                          "permission_type": 1}]},
     lambda a: [r.error_code for r in a.filter_results], [CLUSTER_DENIED]),
    (32, 4, {"resources": [{**it, "configuration_keys": None} for it in (
        {"resource_type": 2, "resource_name": "hidden"}, {"resource_type": 4, "resource_name": ""},
        {"resource_type": 32, "resource_name": "g"})]},
     lambda a: [r.error_code for r in a.results], _DENIED_CONFIGS),
    (33, 2, {"resources": [{**it, "configs": [{"name": "a", "value": "1"}]} for it in _RESOURCES]},
     lambda a: [r.error_code for r in a.responses], _DENIED_CONFIGS),
    (44, 1, {"resources": [*_RESOURCES, {"resource_type": 8, "resource_name": "101", "configs": [
        {"name": "root", "value": "INFO", "config_operation": 0}]}]},
     lambda a: [r.error_code for r in a.responses], [*_DENIED_CONFIGS, CLUSTER_DENIED]),
    (35, 4, {"topics": None}, lambda a: [a.error_code, *a.results], [CLUSTER_DENIED]),
    (37, 3, {"topics": [{"name": "hidden", "count": 2}], "timeout": 1_000},
     lambda a: [r.error_code for r in a.results], [TOPIC_DENIED]),
    (42, 2, {"groups_names": ("g",)}, lambda a: [r.error_code for r in a.results], [GROUP_DENIED]),
    (43, 2, {"election_type": 0, "topic_partitions": None, "timeout": 1_000},
     lambda a: [a.error_code], [CLUSTER_DENIED]),
    (45, 1, {"topics": [], "timeout": 1_000}, lambda a: [a.error_code], [CLUSTER_DENIED]),
    (46, 0, {"topics": None, "timeout": 1_000}, lambda a: [a.error_code], [CLUSTER_DENIED]),
    (47, 0, {"group_id": "g", "topics": []}, lambda a: [a.error_code], [GROUP_DENIED]),
    (48, 1, {"components": [], "strict": False},
     lambda a: [a.error_code, a.entries], [CLUSTER_DENIED, None]),
    (49, 1, {"entries": [{"entity": [{"entity_type": "user", "entity_name": "u"}],
                          "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}]}],
             "validate_only": False},
     lambda a: [e.error_code for e in a.entries], [CLUSTER_DENIED]),
    (50, 0, {"users": [{"name": "u"}]}, lambda a: [a.error_code], [CLUSTER_DENIED]),
    (51, 0, {"deletions": [{"name": "u", "mechanism": 1}], "upsertions": []},
     lambda a: [r.error_code for r in a.results], [CLUSTER_DENIED]),
    (55, 2, {"topics": []}, lambda a: [a.error_code], [CLUSTER_DENIED]),
    (60, 2, {"include_cluster_authorized_operations": True},
     lambda a: [a.error_code, a.cluster_authorized_operations], [ErrorCode.none, 0]),
    (61, 0, {"topics": [{"name": "hidden", "partition_indexes": (0,)}]},
     lambda a: of_partitions(a, "topics"), [TOPIC_DENIED]),
    (64, 0, {"broker_id": 101}, lambda a: [a.error_code], [CLUSTER_DENIED]),
    (65, 0, {"transactional_ids": ("t",)},
     lambda a: [s.error_code for s in a.transaction_states], [ID_DENIED]),
    (66, 2, {"state_filters": (), "producer_id_filters": ()},
     lambda a: list(a.transaction_states), []),
    (68, 1, {"group_id": "g", "member_id": "m", "member_epoch": 0, "topic_partitions": [],
             "subscribed_topic_names": ("hidden",), "rebalance_timeout": 1_000},
     lambda a: [a.error_code], [GROUP_DENIED]),
    (69, 1, {"group_ids": ("g",)}, lambda a: [(g.error_code, g.group_state) for g in a.groups],
     [(GROUP_DENIED, "")]),
    (74, 1, {"resource_types": ()},
     lambda a: [a.error_code, *a.config_resources], [CLUSTER_DENIED]),
    (75, 0, {"topics": [{"name": "hidden"}], "response_partition_limit": 10, "cursor": None},
     lambda a: [t.error_code for t in a.topics], [TOPIC_DENIED]),
    (75, 0, {"topics": [], "response_partition_limit": 10, "cursor": None},
     lambda a: list(a.topics), []),
]  # fmt: skip
"""Without any right."""

_BOTH = [{"name": it, "partition_indexes": (0,)} for it in ("seen", "hidden")]
_OK = ErrorCode.none
RIGHTS: Final = (
    (TOPIC, "seen", Operation.READ),
    (TOPIC, "seen", Operation.WRITE),
    (GROUP, "g", Operation.READ),
    (ID, "t", Operation.WRITE),
    (TOPIC, "new", Operation.CREATE),
)
"""Those of `PARTLY`."""
PARTLY: list[Case] = [
    (3, 12, {"topics": None}, lambda a: [t.name for t in a.topics], ["seen"]),
    (75, 0, {"topics": [], "response_partition_limit": 10, "cursor": None},
     lambda a: [t.name for t in a.topics], ["seen"]),
    (9, 7, {"group_id": "g", "topics": _BOTH},
     lambda a: of_partitions(a, "topics"), [_OK, TOPIC_DENIED]),
    (8, 8, {"group_id": "g", "generation_id_or_member_epoch": -1, "topics": [
        {"name": it, "partitions": [{"partition_index": 0, "committed_offset": 1}]}
        for it in ("seen", "hidden")]},
     lambda a: of_partitions(a, "topics"), [_OK, TOPIC_DENIED]),
    (10, 3, {"key_type": 0, "key": "g"}, lambda a: [a.error_code], [_OK]),
    (22, 4, {"transactional_id": None, "transaction_timeout": 1_000},
     lambda a: [a.error_code], [_OK]),
    (61, 0, {"topics": _BOTH},
     lambda a: [it is TOPIC_DENIED for it in of_partitions(a, "topics")], [False, True]),
    (20, 5, {"topic_names": ("seen",), "timeout": 30_000},
     lambda a: [r.error_code for r in a.responses], [TOPIC_DENIED]),
    (24, 3, {"v3_and_below_transactional_id": "t", "v3_and_below_producer_id": 1,
             "v3_and_below_producer_epoch": 0, "v3_and_below_topics": [
                 {"name": it, "partitions": (0,)} for it in ("seen", "hidden")]},
     lambda a: [p.partition_error_code for t in a.results_by_topic_v3_and_below
                for p in t.results_by_partition],
     [ErrorCode.operation_not_attempted, TOPIC_DENIED]),
    (19, 7, {"timeout": 1_000, "topics": [
        {"name": it, "num_partitions": 1, "replication_factor": 1} for it in ("new", "other")]},
     lambda a: [(t.name, t.error_code, t.num_partitions, t.topic_config_error_code)
                for t in a.topics],
     [("new", _OK, -1, TOPIC_DENIED), ("other", TOPIC_DENIED, -1, _OK)]),
]  # fmt: skip
"""With `RIGHTS`."""
