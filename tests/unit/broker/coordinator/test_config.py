"""The coordinator's settings, and where a group lives."""

import pytest

from broker.coordinator.config import GroupConfig, partition_for


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [("a", 47), ("", 0), ("polygenelubricants", 0), ("café-\U0001f600", 39), ("my-group", 36)],
)
def test_groups_live_where_java_puts_them(group_id: str, partition: int) -> None:
    """By String.hashCode: "polygenelubricants" hashes to -2147483648, whose sign bit is cleared."""
    assert partition_for(group_id, 50) == partition


def test_properties_replace_defaults_by_kafkas_names() -> None:
    config = GroupConfig.from_properties(
        {"group.initial.rebalance.delay.ms": "0", "offsets.retention.minutes": "1", "other": "x"}
    )
    assert (config.initial_rebalance_delay_ms, config.offsets_retention_ms) == (0, 60_000)
    assert config.min_session_timeout_ms == 6_000
