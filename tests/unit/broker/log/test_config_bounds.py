"""What the controller takes as a topic's config, every broker can apply to its logs."""

from broker.log.config import LogConfig
from broker.protocol.known_configs import (
    ConfigType,
    KnownConfig,
    broker_configs,
    problem_of_value,
    topic_configs,
)
from tests.support.cases import case

_NUMBERS = ["-2", "-1", "0", "1", "3", "13", "14", "17", "18", "22", "23", "1073741824"]
_LIMITS = [str(2**31 - 1), str(-(2**31)), str(2**63 - 1), str(-(2**63))]
_ODD = ["nan", "inf", "1_0", "0.5", " 5 ", "", " gzip", "gzip", "producer", "compact,delete", "x"]
_TIMES = [" LogAppendTime", "LogAppendTime", "CreateTime", "true", "False"]
VALUES = (*_NUMBERS, *_LIMITS, *_ODD, *_TIMES)


def test_a_value_that_is_taken_can_be_applied() -> None:
    for name, config in topic_configs().items():
        taken = [value for value in VALUES if not problem_of_value(config, value)]
        assert taken, name
        for value in taken:
            with case(name, value):
                LogConfig.from_properties({name: value})


def _defaults_of_topics() -> list[tuple[KnownConfig, KnownConfig, int]]:
    return [
        (broker_configs()[name], topics, factor)
        for topics in topic_configs().values()
        for name, factor in topics.server_synonyms
        if name in broker_configs()
    ]


def test_a_default_of_all_topics_can_be_applied() -> None:
    for own, topics, factor in _defaults_of_topics():
        taken = [value for value in VALUES if not problem_of_value(own, value)]
        assert taken, own
        for value in taken:
            scaled = value
            if own.type in (ConfigType.INT, ConfigType.LONG) and factor != 1 and int(value) != -1:
                scaled = str(int(value) * factor)
            with case(own.name, value):
                LogConfig.from_properties({topics.name: scaled})


def test_kafkas_words_for_a_retention_that_cannot_be() -> None:
    for name in ("log.retention.ms", "log.retention.hours"):
        assert problem_of_value(broker_configs()[name], "-5") == "Value must be at least -1"
    assert problem_of_value(topic_configs()["retention.bytes"], "-5") == ""
