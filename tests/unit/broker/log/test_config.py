"""Topic and broker properties become a LogConfig."""

import pytest

from broker.log.config import LogConfig
from broker.log.errors import InvalidConfigError


def test_defaults_are_kafkas() -> None:
    config = LogConfig()
    assert config.segment_bytes == 1_073_741_824
    assert config.retention_ms == 604_800_000
    assert config.max_message_bytes == 1_048_588
    assert config.is_deleting
    assert not config.is_compacted


def test_topic_properties_go_over_defaults_and_foreign_names_are_ignored() -> None:
    defaults = LogConfig(retention_bytes=5, segment_bytes=100)
    config = LogConfig.from_properties(
        {
            "segment.bytes": "2000",
            "cleanup.policy": "compact,delete",
            "message.timestamp.type": "LogAppendTime",
            "min.insync.replicas": "2",
        },
        defaults,
    )
    assert config.segment_bytes == 2000
    assert config.retention_bytes == 5
    assert config.is_compacted
    assert config.is_deleting
    assert config.is_log_append_time


def test_the_internal_size_of_segments_stands_before_the_other() -> None:
    sizes = {"internal.segment.bytes": "100", "segment.bytes": "2000"}
    assert LogConfig.from_properties(sizes).segment_bytes == 100
    assert LogConfig.from_properties({**sizes, "internal.segment.bytes": ""}).segment_bytes == 2000


def test_broker_properties_have_coarse_units_and_the_finer_one_wins() -> None:
    coarse = LogConfig.from_broker_properties({"log.retention.hours": "2", "log.roll.hours": "1"})
    assert coarse.retention_ms == 7_200_000
    assert coarse.segment_ms == 3_600_000
    fine = LogConfig.from_broker_properties(
        {"log.retention.hours": "2", "log.retention.minutes": "1", "log.retention.ms": "-1"}
    )
    assert fine.retention_ms == -1
    minutes = LogConfig.from_broker_properties(
        {"log.retention.hours": "2", "log.retention.minutes": "1"}
    )
    assert minutes.retention_ms == 60_000
    assert LogConfig.from_broker_properties({"log.retention.hours": "-1"}).retention_ms == -1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("segment.bytes", "many"),
        ("segment.bytes", "13"),
        ("retention.ms", "-2"),
        ("retention.ms", str(2**63)),
        ("cleanup.policy", "shred"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.cleanable.dirty.ratio", "half"),
        ("message.timestamp.type", "Now"),
    ],
)
def test_a_bad_value_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidConfigError, match=name):
        LogConfig.from_properties({name: value})
