"""Requests that clients seldom make, byte by byte the same to a broker of ours and to Kafka."""

import itertools
from typing import Any, Final

import pytest

from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from tests.support import wire
from tests.support.cases import case
from tests.support.settle import wait_until

API_VERSIONS: Final = (18, 3)
CREATE_TOPICS: Final = (19, 5)
ALTER_CONFIGS: Final = (33, 2)
DESCRIBE_CONFIGS: Final = (32, 4)
FIND_COORDINATOR: Final = (10, 3)
JOIN_GROUP: Final = (11, 5)
INCREMENTAL_ALTER_CONFIGS: Final = (44, 1)
PRODUCE: Final = (0, 9)
NOT_LEADER: Final = 6
INVALID_REPLICA_ASSIGNMENT: Final = 39
INVALID_CONFIG: Final = 40
INVALID_REQUEST: Final = 42
FETCH_SESSION_ID_NOT_FOUND: Final = 70
MEMBER_ID_REQUIRED: Final = 79
INVALID_RECORD: Final = 87
BROKER_LOGGER, CLIENT_METRICS, GROUP = 8, 16, 32
"""Types of resources that have configs."""
NAMES: Final = itertools.count()


def ask(address: str, api: tuple[int, int], **fields: Any) -> Any:
    return wire.ask(address, *api, codec.build_request(*api, **fields))


@pytest.fixture
def address(bootstrap: str) -> str:
    """One broker of the cluster."""
    return bootstrap.split(",")[0]


def create(address: str, **fields: Any) -> tuple[str, int]:
    """A topic's name, and the error of its creation."""
    name = f"seldom-{next(NAMES)}"
    topic = {"name": name, "assignments": [], "configs": [], **fields}
    if not topic["assignments"]:
        topic = {"num_partitions": 1, "replication_factor": 3, **topic}
    else:
        topic = {"num_partitions": -1, "replication_factor": -1, **topic}
    (answer,) = ask(address, CREATE_TOPICS, topics=[topic], timeout=30_000).topics
    return name, int(answer.error_code)


def configs(**values: str) -> list[dict[str, str]]:
    return [{"name": name.replace("_", "."), "value": value} for name, value in values.items()]


@pytest.mark.parametrize(
    ("name", "version", "error"),
    [
        ("apache-kafka-java", "4.1.0", 0),
        ("a", "1", 0),
        ("", "1", INVALID_REQUEST),
        ("two words", "1", INVALID_REQUEST),
        ("-dash", "1", INVALID_REQUEST),
        ("dot.", "1", INVALID_REQUEST),
        ("ok", "v 1", INVALID_REQUEST),
        ("naïve", "1", INVALID_REQUEST),
    ],
)
def test_names_of_clients(address: str, name: str, version: str, error: int) -> None:
    answer = ask(address, API_VERSIONS, client_software_name=name, client_software_version=version)
    assert int(answer.error_code) == error
    assert bool(answer.api_keys) == (error == 0)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"min_compaction_lag_ms": "10", "max_compaction_lag_ms": "9"}, INVALID_CONFIG),
        ({"min_compaction_lag_ms": "10", "max_compaction_lag_ms": "10"}, 0),
        ({"remote_storage_enable": "false", "local_retention_ms": "-2", "preallocate": "false"}, 0),
        ({"local_retention_bytes": "1000", "remote_log_copy_disable": "false"}, 0),
        ({"remote_storage_enable": "true"}, INVALID_CONFIG),
        ({"local_retention_ms": "-3"}, INVALID_CONFIG),
        ({"internal_segment_bytes": "1048576"}, 0),
    ],
)
def test_configs_of_new_topics(address: str, values: dict[str, str], error: int) -> None:
    assert create(address, configs=configs(**values))[1] == error


def test_compaction_lags_that_come_one_by_one(address: str, bootstrap: str) -> None:
    topic, _ = create(address, configs=configs(min_compaction_lag_ms="100"))
    wire.wait_for_topic(bootstrap, topic, 1)
    for value, error in (("99", INVALID_CONFIG), ("100", 0)):
        change = {"name": "max.compaction.lag.ms", "config_operation": 0, "value": value}
        resource = {"resource_type": 2, "resource_name": topic, "configs": [change]}
        answer = ask(address, INCREMENTAL_ALTER_CONFIGS, resources=[resource], validate_only=False)
        with case(value):
            assert [int(response.error_code) for response in answer.responses] == [error]


SET, DELETE, APPEND = 0, 1, 2
SESSION: Final = "consumer.session.timeout.ms"


@pytest.mark.parametrize(
    ("type_", "name", "change", "error"),
    [
        (GROUP, "g", (SESSION, SET, "46000"), 0),
        (GROUP, "g", (SESSION, SET, "1"), INVALID_CONFIG),
        (GROUP, "g", (SESSION, SET, "99000000"), INVALID_CONFIG),
        (GROUP, "g", (SESSION, SET, "x"), INVALID_CONFIG),
        (GROUP, "g", (SESSION, SET, None), INVALID_REQUEST),
        (GROUP, "g", (SESSION, APPEND, "1"), INVALID_CONFIG),
        (GROUP, "g", (SESSION, DELETE, None), 0),
        (GROUP, "g", ("share.auto.offset.reset", SET, "never"), INVALID_CONFIG),
        (GROUP, "g", ("share.auto.offset.reset", SET, "by_duration:PT1H"), 0),
        (GROUP, "g", ("share.isolation.level", SET, "other"), INVALID_CONFIG),
        (GROUP, "g", ("share.record.lock.duration.ms", SET, "1000"), INVALID_CONFIG),
        (GROUP, "g", ("streams.num.standby.replicas", SET, "99"), INVALID_CONFIG),
        (GROUP, "g", ("no.such", SET, "1"), INVALID_CONFIG),
        (GROUP, "", (SESSION, SET, "46000"), INVALID_REQUEST),
        (CLIENT_METRICS, "s", ("interval.ms", SET, "60000"), 0),
        (CLIENT_METRICS, "s", ("interval.ms", SET, "1"), INVALID_REQUEST),
        (CLIENT_METRICS, "s", ("interval.ms", SET, "x"), INVALID_CONFIG),
        (CLIENT_METRICS, "s", ("match", SET, "client_id=a.*"), 0),
        (CLIENT_METRICS, "s", ("match", SET, "nonsense"), INVALID_CONFIG),
        (CLIENT_METRICS, "s", ("metrics", SET, "org.apache.kafka.producer."), 0),
        (CLIENT_METRICS, "s", ("metrics", APPEND, "org.apache.kafka.consumer."), INVALID_CONFIG),
        (CLIENT_METRICS, "s", ("no.such", SET, "1"), INVALID_REQUEST),
        (CLIENT_METRICS, "", ("interval.ms", SET, "60000"), INVALID_REQUEST),
        (BROKER_LOGGER, "own", ("root", SET, "INFO"), 0),
        (BROKER_LOGGER, "own", ("root", SET, "LOUD"), INVALID_CONFIG),
        (BROKER_LOGGER, "own", ("root", SET, None), INVALID_REQUEST),
        (BROKER_LOGGER, "own", ("root", DELETE, None), INVALID_REQUEST),
        (BROKER_LOGGER, "own", ("root", APPEND, "INFO"), INVALID_REQUEST),
        (BROKER_LOGGER, "own", ("no.such", SET, "INFO"), INVALID_CONFIG),
        (BROKER_LOGGER, "another", ("root", SET, "INFO"), INVALID_REQUEST),
        (BROKER_LOGGER, "", ("root", SET, "INFO"), INVALID_REQUEST),
    ],
)
def test_configs_of_groups_subscriptions_and_loggers(
    address: str, type_: int, name: str, change: tuple[str, int, str | None], error: int
) -> None:
    ids = {f"{b.host}:{b.port}": str(b.node_id) for b in wire.metadata(address).brokers}
    another = next(id_ for at, id_ in ids.items() if at != address)
    key, operation, value = change
    resource = {
        "resource_type": type_,
        "resource_name": {"own": ids[address], "another": another}.get(name, name),
        "configs": [{"name": key, "config_operation": operation, "value": value}],
    }
    answer = ask(address, INCREMENTAL_ALTER_CONFIGS, resources=[resource], validate_only=False)
    assert [int(response.error_code) for response in answer.responses] == [error]


def test_levels_of_loggers_are_not_replaced_all_at_once(address: str) -> None:
    ids = {f"{b.host}:{b.port}": str(b.node_id) for b in wire.metadata(address).brokers}
    change = {"name": "root", "value": "INFO"}
    resource = {
        "resource_type": BROKER_LOGGER,
        "resource_name": ids[address],
        "configs": [change],
    }
    answer = ask(address, ALTER_CONFIGS, resources=[resource], validate_only=False)
    assert [int(response.error_code) for response in answer.responses] == [INVALID_REQUEST]


def test_a_partition_that_is_assigned_twice(address: str) -> None:
    assigned = [{"partition_index": p, "broker_ids": [101]} for p in (0, 1, 0)]
    assert create(address, assignments=assigned)[1] == INVALID_REPLICA_ASSIGNMENT


def test_no_config_keys_are_all(address: str) -> None:
    topic, _ = create(address)
    resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": []}

    def answer() -> Any:
        return ask(
            address,
            DESCRIBE_CONFIGS,
            resources=[resource],
            include_synonyms=False,
            include_documentation=False,
        ).results[0]

    wait_until(lambda: int(answer().error_code) == 0, f"{topic} is known")
    assert len(answer().configs) > 20


def fetch(address: str, version: int, topic: str, **fields: Any) -> Any:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    if version >= 5:
        partition |= {"log_start_offset": -1}
    if version >= 9:
        partition |= {"current_leader_epoch": fields.pop("epoch", -1)}
    if version >= 12:
        partition |= {"last_fetched_epoch": -1}
    asked: dict[str, Any] = {
        "replica_id": -1,
        "max_wait": 0,
        "min_bytes": 0,
        "max_bytes": 1000,
        "isolation_level": 0,
        "topics": [{"topic": topic, "partitions": [partition]}],
    }
    if version >= 7:
        asked |= {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": []}
    if version >= 11:
        asked |= {"rack_id": ""}
    return ask(address, (1, version), **(asked | fields))


def address_of(bootstrap: str, broker_id: int) -> str:
    first = bootstrap.split(",")[0]
    (found,) = [b for b in wire.metadata(first).brokers if b.node_id == broker_id]
    return f"{found.host}:{found.port}"


def test_consumers_read_from_followers_since_version_11(address: str, bootstrap: str) -> None:
    topic, _ = create(address, assignments=[{"partition_index": 0, "broker_ids": [101, 102]}])
    wire.wait_for_topic(bootstrap, topic, 1)
    follower = address_of(bootstrap, 102)
    for version, error in ((10, NOT_LEADER), (11, 0), (12, 0)):
        with case(version):
            answer = fetch(follower, version, topic)
            (response,) = answer.responses
            assert int(response.partitions[0].error_code) == error


def test_a_negative_leader_epoch_is_none(address: str, bootstrap: str) -> None:
    topic, _ = create(address, assignments=[{"partition_index": 0, "broker_ids": [101]}])
    wire.wait_for_topic(bootstrap, topic, 1)
    (response,) = fetch(address_of(bootstrap, 101), 12, topic, epoch=-5).responses
    assert int(response.partitions[0].error_code) == 0


@pytest.mark.parametrize("epoch", [1, 7, -2])
def test_a_fetch_session_that_nobody_knows(address: str, epoch: int) -> None:
    answer = fetch(address, 12, "any", session_id=4711, session_epoch=epoch)
    assert int(answer.error_code) == FETCH_SESSION_ID_NOT_FOUND
    assert not answer.responses


@pytest.mark.parametrize("kept", [0, 5, 40, 61, -1])
def test_a_batch_that_is_cut_short(address: str, bootstrap: str, kept: int) -> None:
    topic, _ = create(address, assignments=[{"partition_index": 0, "broker_ids": [101]}])
    wire.wait_for_topic(bootstrap, topic, 1)
    batch = build_batch([NewRecord(value=b"value", timestamp=1_700_000_000_000)])
    records = batch[:kept] if kept >= 0 else batch[:-1]
    answer = ask(
        address_of(bootstrap, 101),
        PRODUCE,
        transactional_id=None,
        acks=-1,
        timeout=10_000,
        topic_data=[{"name": topic, "partition_data": [{"index": 0, "records": records}]}],
    )
    assert int(answer.responses[0].partition_responses[0].error_code) == INVALID_RECORD


def test_an_id_that_was_handed_out_holds_up_no_first_member(bootstrap: str) -> None:
    group = f"seldom-{next(NAMES)}"
    first = bootstrap.split(",")[0]

    def found() -> Any:
        return ask(first, FIND_COORDINATOR, key=group, key_type=0)

    wait_until(lambda: int(found().error_code) == 0, "the group has a coordinator")
    at = f"{found().host}:{found().port}"

    def join(member_id: str) -> Any:
        return ask(
            at,
            JOIN_GROUP,
            group_id=group,
            session_timeout=1_800_000,
            rebalance_timeout=1_800_000,
            member_id=member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        )

    wait_until(lambda: int(join("").error_code) == MEMBER_ID_REQUIRED, "the group is loaded")
    asked = join("")
    assert int(asked.error_code) == MEMBER_ID_REQUIRED
    assert int(join(asked.member_id).error_code) == 0
