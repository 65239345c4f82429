"""A config's value is taken as screens show it, and is Kafka's number then."""

import pytest

from control.model.config_values import meaning, plain_value
from control.operations import checks


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", "7d", "604800000"),
        ("retention.ms", "6 d 3 h", "529200000"),
        ("retention.ms", "1.5H", "5400000"),
        ("segment.ms", "250 ms", "250"),
        ("log.retention.check.interval.hours", "1d", "24"),
        ("offsets.retention.minutes", "7 d", "10080"),
        ("retention.bytes", "1.5 GiB", "1610612736"),
        ("segment.bytes", "64M", "67108864"),
        ("max.message.bytes", "1KiB", "1024"),
        ("leader.replication.throttled.rate", "50 MiB/s", "52428800"),
        ("log.flush.interval.ms", "0.1 s", "100"),
    ],
)
def test_a_time_or_size_with_its_unit_is_kafkas_number(name: str, text: str, value: str) -> None:
    assert plain_value(name, text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", "604800000"),
        ("retention.ms", "-1"),
        ("retention.ms", ""),
        ("retention.ms", "7x"),
        ("retention.ms", "0.0001ms"),
        ("offsets.retention.minutes", "90s"),
        ("retention.bytes", "7d"),
        ("cleanup.policy", "compact,delete"),
        ("compression.type", "1k"),
        ("bytes.like", "1 GiBs"),
        ("retention.ms", "1d" * 50_000),
    ],
)
def test_any_other_text_is_left_to_the_cluster(name: str, text: str) -> None:
    assert plain_value(name, text) == text


def test_forms_and_templates_take_them() -> None:
    assert checks.pairs("retention.ms=7d,cleanup.policy=compact,delete") == {
        "retention.ms": "604800000",
        "cleanup.policy": "compact,delete",
    }


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("retention.ms", "604800000", "7 d"),
        ("retention.ms", "-1", "no limit"),
        ("log.retention.hours", "168", "7 d"),
        ("segment.bytes", "1073741824", "1.0 GiB"),
        ("flush.messages", str(2**63 - 1), "no limit"),
        ("file.delete.delay.ms", "0", ""),
        ("min.insync.replicas", "2", ""),
        ("compression.gzip.level", "-1", ""),
        ("follower.replication.throttled.rate", "10485760", "10.0 MiB/s"),
        ("cleanup.policy", "delete", ""),
        ("retention.ms", None, ""),
    ],
)
def test_a_number_is_told_in_its_unit(name: str, value: str | None, words: str) -> None:
    assert meaning(name, value) == words
