"""Settings of the group coordinator under Kafka's names, with Kafka's defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Every field is a broker property (`_NAMES`); times in milliseconds, sizes in bytes."""

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2_147_483_647
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_load_buffer_bytes: int = 5_242_880
    offsets_topic_codec: int = 0
    """A number as in the attributes of a batch (broker.protocol.compression)."""

    @property
    def offsets_retention_ms(self) -> int:
        """How long an offset outlives the last member of its group."""
        return self.offsets_retention_minutes * 60_000

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "GroupConfig":
        """Read the properties that are present; the others keep Kafka's defaults."""
        present = {
            field: int(properties[name]) for field, name in _NAMES.items() if name in properties
        }
        return cls(**present)


_NAMES: Final[Mapping[str, str]] = {
    "initial_rebalance_delay_ms": "group.initial.rebalance.delay.ms",
    "min_session_timeout_ms": "group.min.session.timeout.ms",
    "max_session_timeout_ms": "group.max.session.timeout.ms",
    "max_size": "group.max.size",
    "consumer_session_timeout_ms": "group.consumer.session.timeout.ms",
    "consumer_heartbeat_interval_ms": "group.consumer.heartbeat.interval.ms",
    "consumer_max_size": "group.consumer.max.size",
    "offset_metadata_max_bytes": "offset.metadata.max.bytes",
    "offsets_commit_timeout_ms": "offsets.commit.timeout.ms",
    "offsets_retention_minutes": "offsets.retention.minutes",
    "offsets_retention_check_interval_ms": "offsets.retention.check.interval.ms",
    "offsets_load_buffer_bytes": "offsets.load.buffer.size",
    "offsets_topic_codec": "offsets.topic.compression.codec",
}


def partition_for(group_id: str, partitions: int) -> int:
    """The partition of __consumer_offsets that keeps a group: Java's hash of its id.

    Kafka: Utils.abs(groupId.hashCode()) % partitions, where abs only clears the sign bit and
    hashCode runs over UTF-16 code units. Example: "a" hashes to 97, so 47 of 50.
    """
    hashed = 0
    units = group_id.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & 0xFFFFFFFF
    return (hashed & 0x7FFFFFFF) % partitions
