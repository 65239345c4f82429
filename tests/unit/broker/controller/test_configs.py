from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.errors import ConfigError
from broker.controller.config_control import (
    AlterOperation,
    AlterResource,
    ConfigChange,
    check_value,
    decide_alter_configs,
)
from broker.controller.decision import Accepted
from broker.controller.errors import (
    BrokerNotRegisteredError,
    ControllerError,
    InvalidConfigError,
    InvalidConfigRequestError,
    InvalidTopicError,
    UnknownTopicError,
)
from broker.coordinator.config import GroupConfig
from broker.log.config import LogConfig
from broker.log.errors import LogError
from broker.metadata import records
from broker.metadata.effective_configs import (
    ConfigSource,
    describe_broker,
    describe_default_broker,
    describe_topic,
    effective_broker_config,
    effective_topic_config,
    topic_flag,
)
from broker.metadata.image import (
    NO_LEADER,
    ConfigResource,
    MetadataImage,
    ResourceType,
    broker_resource,
    topic_resource,
)
from broker.protocol.known_configs import (
    UNLISTED_CONFIGS,
    broker_configs,
    problem_of_value,
    topic_configs,
)
from tests.unit.broker.config.test_broker_config import LEAST
from tests.unit.broker.controller.images import (
    apply,
    cluster,
    decided,
    get,
    never,
    with_partition,
    with_topic,
)


@dataclass(frozen=True)
class Node:
    """A node's static config."""

    node_id: int = 1
    properties: Mapping[str, str] = field(default_factory=dict)


def set_config(image: MetadataImage, resource: ConfigResource, **values: str) -> MetadataImage:
    return apply(
        image,
        [
            records.ConfigRecord(
                resource_type=resource.type,
                resource_name=resource.name,
                name=name.replace("_", "."),
                value=value,
            )
            for name, value in values.items()
        ],
    )


def test_every_topic_config_has_a_value_type_and_text() -> None:
    image = with_topic(cluster(), "t", (1,))
    entries = describe_topic(image, Node(), "t")
    unlisted = {config.name for config in UNLISTED_CONFIGS}
    assert [entry.name for entry in entries] == sorted(topic_configs().keys() - unlisted)
    assert len(entries) >= 28
    assert all(entry.value is not None and entry.documentation for entry in entries)
    assert {entry.source for entry in entries} == {ConfigSource.DEFAULT_CONFIG}


def test_configs_that_come_with_a_copied_topic_are_listed_where_they_are_set() -> None:
    image = with_topic(cluster(), "t", (1,))
    image = set_config(image, topic_resource("t"), local_retention_ms="-2", preallocate="false")
    names = [entry.name for entry in describe_topic(image, Node(), "t")]
    assert "local.retention.ms" in names
    assert "remote.storage.enable" not in names


def test_defaults_are_legal_values_of_their_own_config() -> None:
    for known in (*topic_configs().values(), *broker_configs().values()):
        if known.default:
            check_value(known, known.default)


def test_nearest_source_wins_and_synonyms_tell_the_rest() -> None:
    image = with_topic(cluster(), "t", (1,))
    node = Node(properties={"min.insync.replicas": "2"})
    image = set_config(image, broker_resource(None), min_insync_replicas="3")
    image = set_config(image, broker_resource(1), min_insync_replicas="4")
    assert effective_topic_config(image, node, "t")["min.insync.replicas"] == "4"
    assert effective_topic_config(image, Node(2), "t")["min.insync.replicas"] == "3"
    image = set_config(image, topic_resource("t"), min_insync_replicas="5")
    entries = {entry.name: entry for entry in describe_topic(image, node, "t")}
    synonyms = entries["min.insync.replicas"].synonyms
    assert [(s.value, s.source) for s in synonyms] == [
        ("5", ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ("4", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("3", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("2", ConfigSource.STATIC_BROKER_CONFIG),
        ("1", ConfigSource.DEFAULT_CONFIG),
    ]


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({}, "604800000"),
        ({"log.retention.hours": "2"}, "7200000"),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "180000"),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, "4"),
        ({"log.retention.hours": "-1"}, "-1"),
    ],
)
def test_retention_of_the_file_comes_in_three_units(
    properties: dict[str, str], retention_ms: str
) -> None:
    config = effective_topic_config(cluster(), Node(properties=properties), "t")
    assert config["retention.ms"] == retention_ms


def test_synonyms_keep_their_own_unit() -> None:
    node = Node(properties={"log.retention.hours": "2"})
    entries = {entry.name: entry for entry in describe_topic(cluster(), node, "t")}
    retention = entries["retention.ms"]
    assert retention.value == "7200000"
    assert [(s.name, s.value) for s in retention.synonyms] == [("log.retention.hours", "2")]


def test_topic_flag_needs_no_other_config() -> None:
    name = "unclean.leader.election.enable"
    image = with_topic(cluster(), "t", (1,))
    assert not topic_flag(image, Node(), "t", name)
    assert topic_flag(image, Node(properties={name: "true"}), "t", name)
    image = set_config(image, topic_resource("t"), unclean_leader_election_enable="true")
    assert topic_flag(image, Node(), "t", name)


def test_broker_configs_say_whether_they_can_be_altered() -> None:
    node = Node(properties={"node.id": "1", "num.partitions": "4"})
    entries = {entry.name: entry for entry in describe_broker(cluster(), node)}
    assert entries["num.partitions"].value == "4"
    assert entries["num.partitions"].source is ConfigSource.STATIC_BROKER_CONFIG
    assert entries["num.partitions"].is_read_only
    assert not entries["leader.replication.throttled.rate"].is_read_only
    assert effective_broker_config(cluster(), node)["broker.session.timeout.ms"] == "2500"


def test_default_broker_shows_only_what_was_set() -> None:
    image = set_config(cluster(), broker_resource(None), min_insync_replicas="2")
    (entry,) = describe_default_broker(image)
    assert (entry.name, entry.value) == ("min.insync.replicas", "2")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "compact,delete"),
        ("compression.gzip.level", "-1"),
        ("compression.gzip.level", "9"),
        ("leader.replication.throttled.replicas", "0:101,1:102"),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", ""),
        ("min.cleanable.dirty.ratio", "0.1"),
        ("preallocate", "FALSE"),
        ("retention.ms", "-1"),
    ],
)
def test_legal_values(name: str, value: str) -> None:
    check_value(topic_configs()[name], value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("cleanup.policy", "keep", "must be one of: compact, delete"),
        ("compression.gzip.level", "0", "between 1 and 9"),
        ("compression.type", "zip", "must be one of"),
        ("leader.replication.throttled.replicas", "1-2", "literal"),
        ("min.cleanable.dirty.ratio", "2", "no more than 1"),
        ("min.insync.replicas", "0", "at least 1"),
        ("preallocate", "yes", "either true or false"),
        ("preallocate", "true", "must be false"),
        ("retention.ms", "1_000", "type LONG"),
        ("segment.bytes", "3000000000", "type INT"),
    ],
)
def test_illegal_values(name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidConfigError, match=words):
        check_value(topic_configs()[name], value)


def change(name: str, operation: AlterOperation, value: str | None = None) -> ConfigChange:
    return ConfigChange(name=name, operation=operation, value=value)


SET, DELETE = AlterOperation.SET, AlterOperation.DELETE
APPEND, SUBTRACT = AlterOperation.APPEND, AlterOperation.SUBTRACT


def alter(
    image: MetadataImage,
    resource: ConfigResource,
    *changes: ConfigChange,
    replaces_all: bool = False,
) -> tuple[MetadataImage, ControllerError | None]:
    wanted = AlterResource(resource=resource, changes=changes, replaces_all=replaces_all)
    decision = decide_alter_configs([wanted], image, is_unclean_enabled=never)
    verdict = decision.response[resource]
    error = None if isinstance(verdict, Accepted) else verdict.error
    return decided(image, decision), error


def test_incremental_operations() -> None:
    topic = topic_resource("t")
    image = with_topic(cluster(), "t", (1,))
    image, _ = alter(
        image, topic, change("retention.ms", SET, "5"), change("cleanup.policy", APPEND, "compact")
    )
    assert image.config(topic) == {"retention.ms": "5", "cleanup.policy": "delete,compact"}
    image, _ = alter(
        image, topic, change("retention.ms", DELETE), change("cleanup.policy", SUBTRACT, "delete")
    )
    assert image.config(topic) == {"cleanup.policy": "compact"}


def test_replacing_all_forgets_the_rest() -> None:
    topic = topic_resource("t")
    image = set_config(with_topic(cluster(), "t", (1,)), topic, retention_ms="5")
    image, _ = alter(image, topic, change("segment.ms", SET, "9"), replaces_all=True)
    assert image.config(topic) == {"segment.ms": "9"}


def test_throttles_are_set_on_brokers_and_topics() -> None:
    image = with_topic(cluster(), "t", (1,))
    rate = "follower.replication.throttled.rate"
    image, error = alter(image, broker_resource(2), change(rate, SET, "1000000"))
    assert error is None
    assert image.config(broker_resource(2)) == {rate: "1000000"}
    assert effective_broker_config(image, Node(2))[rate] == "1000000"
    assert effective_broker_config(image, Node(1))[rate] == str(2**63 - 1)


@pytest.mark.parametrize(
    ("resource", "wanted", "error"),
    [
        (topic_resource("x"), change("retention.ms", SET, "1"), UnknownTopicError),
        (topic_resource("a b"), change("retention.ms", SET, "1"), InvalidTopicError),
        (topic_resource("t"), change("nonsense", SET, "1"), InvalidConfigError),
        (topic_resource("t"), change("retention.ms", SET, "x"), InvalidConfigError),
        (topic_resource("t"), change("retention.ms", SET, None), InvalidConfigRequestError),
        (topic_resource("t"), change("retention.ms", APPEND, "1"), InvalidConfigError),
        (broker_resource(1), change("node.id", SET, "1"), InvalidConfigRequestError),
        (
            ConfigResource(type=ResourceType.BROKER, name="one"),
            change("min.insync.replicas", SET, "1"),
            InvalidConfigRequestError,
        ),
        (broker_resource(9), change("min.insync.replicas", SET, "1"), BrokerNotRegisteredError),
        (broker_resource(1), change("listeners", SET, "X://h:1"), InvalidConfigRequestError),
        (broker_resource(None), change("max.connections", SET, "0"), InvalidConfigRequestError),
        (broker_resource(1), change("num.io.threads", SET, "0"), InvalidConfigRequestError),
        (broker_resource(1), change("num.io.threads", SET, "17"), InvalidConfigRequestError),
        (broker_resource(None), change("num.io.threads", SET, "3"), InvalidConfigRequestError),
        (broker_resource(1), change("num.replica.fetchers", SET, "-1"), InvalidConfigRequestError),
        (
            ConfigResource(type=ResourceType.BROKER_LOGGER, name="1"),
            change("root", SET, "INFO"),
            InvalidConfigRequestError,
        ),
    ],
)
def test_refusals(
    resource: ConfigResource, wanted: ConfigChange, error: type[ControllerError]
) -> None:
    image = with_topic(cluster(), "t", (1,))
    after, refused = alter(image, resource, wanted)
    assert isinstance(refused, error)
    assert after is image


def test_threads_are_doubled_step_by_step() -> None:
    image = cluster()
    for count in ("16", "32", "16"):
        image, error = alter(image, broker_resource(1), change("num.io.threads", SET, count))
        assert error is None
    assert image.config(broker_resource(1)) == {"num.io.threads": "16"}


def _file_takes(name: str, value: str) -> bool:
    try:
        properties = {**LEAST, name: value}
        BrokerConfig.from_properties(properties)
        LogConfig.from_broker_properties(properties)
        GroupConfig.from_properties(properties)
    except (ConfigError, LogError, ValueError):
        return False
    return True


@pytest.mark.parametrize(
    "name",
    sorted(c.name for c in broker_configs().values() if c.is_dynamic and not c.is_per_broker),
)
def test_a_running_broker_takes_the_values_that_its_file_takes(name: str) -> None:
    numbers = [str(n) for bits in (31, 63) for n in (-(2**bits) - 1, -(2**bits), 2**bits)]
    small = [str(n) for n in (-131073, -2, -1, 0, 1, 2, 4, 9, 10, 13, 14, 17, 18, 22, 23)]
    words = ["banana", "true", "gzip", "delete", "CreateTime", "1_0", "0.5", "NaN"]
    known = broker_configs()[name]
    for value in numbers + small + words:
        assert _file_takes(name, value) is (not problem_of_value(known, value)), value


def test_one_bad_change_refuses_its_whole_resource() -> None:
    image = with_topic(cluster(), "t", (1,))
    after, refused = alter(
        image, topic_resource("t"), change("retention.ms", SET, "1"), change("x", SET, "1")
    )
    assert isinstance(refused, InvalidConfigError)
    assert after is image


def test_allowing_unclean_elections_elects_at_once() -> None:
    image = with_topic(cluster(), "t", (1, 2), (1, 2))
    image = with_partition(image, get(image, "t", 0), leader=NO_LEADER, isr=(9,))
    image, _ = alter(
        image, topic_resource("t"), change("unclean.leader.election.enable", SET, "true")
    )
    assert (get(image, "t", 0).leader, get(image, "t", 0).isr) == (1, (1,))
    assert get(image, "t", 1).leader_epoch == 0


def test_what_describe_configs_calls_a_default_is_the_one_in_force() -> None:
    in_force = {
        entry.metadata["property"]: entry.default
        for entry in fields(BrokerConfig)
        if "property" in entry.metadata
    }
    known = {n: c.default for n, c in broker_configs().items() if n in in_force}
    assert len(known) > 25
    assert known == {name: str(in_force[name]).lower() for name in known}
    topic_level = {field.name.replace("_", "."): field.name for field in fields(LogConfig)}
    described = {n: c.default for n, c in topic_configs().items() if n in topic_level}
    defaults = LogConfig.from_properties({n: v for n, v in described.items() if v is not None})
    assert defaults == LogConfig()
    assert len(described) > 12
