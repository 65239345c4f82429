"""Configs of a topic's log, with Kafka's names and defaults.

Source: org.apache.kafka.storage.internals.log.LogConfig and TopicConfig (Kafka 4.x).
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from broker.log.errors import InvalidConfigError
from broker.protocol.compression import CODEC_NAMES, GZIP, LZ4, NONE, ZSTD

PRODUCER_CODEC: Final = "producer"
"""compression.type: batches are stored as they came."""
_STORED_CODECS: Final = {
    "uncompressed": NONE,
    **{name: codec for codec, name in CODEC_NAMES.items() if codec != NONE},
}
INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)
PREALLOCATE_PROPERTY: Final = "log.preallocate"
INTERNAL_SEGMENT_PROPERTY: Final = "internal.segment.bytes"
"""Of a topic; it stands before segment.bytes."""
_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Sizes in bytes, times in ms; -1 means without limit for both retentions.

    Below it is taken for retention.bytes alone, and means the same, as in Kafka.
    """

    segment_bytes: int = 1024 * _MIB
    segment_ms: int = 7 * _DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * _MIB
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    delete_retention_ms: int = _DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = INT64_MAX
    max_message_bytes: int = _MIB + 12
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_after_max_ms: int = _HOUR_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    compression_type: str = PRODUCER_CODEC
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3

    @property
    def is_compacted(self) -> bool:
        """Whether the newest record of each key is kept for ever."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleting(self) -> bool:
        """Whether time and size retention apply."""
        return "delete" in self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """How old an active segment may get; sooner where compaction must not wait for it."""
        if self.is_compacted:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms

    def roll_jitter_ms(self, segment_path: str) -> int:
        """How much sooner one segment rolls, so that those of many partitions do not together.

        Kafka draws a number when it opens the segment; here the path decides, so that a restart
        and a changed config need no memory of it.
        """
        if not self.segment_jitter_ms:
            return 0
        return zlib.crc32(segment_path.encode()) % min(self.segment_jitter_ms, self.segment_ms)

    def codec_of(self, producers_codec: int) -> int:
        """The codec that a batch is stored in."""
        if self.compression_type == PRODUCER_CODEC:
            return producers_codec
        return _STORED_CODECS[self.compression_type]

    def compression_level(self, codec: int) -> int:
        """How hard a batch is compressed in this codec; 0 where it has no levels."""
        levels = {
            GZIP: self.compression_gzip_level,
            LZ4: self.compression_lz4_level,
            ZSTD: self.compression_zstd_level,
        }
        return levels.get(codec, 0)

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker's clock replaces the producer's timestamps."""
        return self.message_timestamp_type == "LogAppendTime"

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], defaults: "LogConfig | None" = None
    ) -> "LogConfig":
        """Topic-level properties (`segment.bytes`) over `defaults`; other names are ignored.

        :raises InvalidConfigError: a value that cannot be read or is out of bounds.
        """
        read = _read(properties, _TOPIC_NAMES)
        if segment_bytes := properties.get(INTERNAL_SEGMENT_PROPERTY):
            read |= _read({INTERNAL_SEGMENT_PROPERTY: segment_bytes}, _INTERNAL_NAMES)
        return replace(defaults or cls(), **read)

    @classmethod
    def from_broker_properties(cls, properties: Mapping[str, str]) -> "LogConfig":
        """A broker's properties (`log.segment.bytes`, `log.retention.hours`) as defaults.

        :raises InvalidConfigError: a value that cannot be read or is out of bounds.
        """
        reserve = properties.get(PREALLOCATE_PROPERTY, "false")
        if reserve.strip().lower() != "false":
            problem = "must be false: this broker does not reserve the space of a segment ahead"
            raise InvalidConfigError(PREALLOCATE_PROPERTY, reserve, problem)
        return replace(cls(), **_read(_with_coarse_units(properties), _BROKER_NAMES))


def _at_least(least: int, most: int = INT64_MAX) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise InvalidConfigError(name, value, "must be a whole number") from None
        if not least <= number <= most:
            limit = f" and at most {most}" if most != INT64_MAX else ""
            raise InvalidConfigError(name, value, f"must be at least {least}{limit}")
        return number

    return read


def _ratio(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise InvalidConfigError(name, value, "must be a number") from None
    if not 0 <= number <= 1:
        raise InvalidConfigError(name, value, "must be between 0 and 1")
    return number


def _policies(name: str, value: str) -> frozenset[str]:
    policies = frozenset(part.strip().lower() for part in value.split(",") if part.strip())
    if policies - {"delete", "compact"}:
        raise InvalidConfigError(name, value, "must be a list of delete and compact")
    return policies


def _timestamp_type(name: str, value: str) -> str:
    if value not in ("CreateTime", "LogAppendTime"):
        raise InvalidConfigError(name, value, "must be CreateTime or LogAppendTime")
    return value


def _compression_type(name: str, value: str) -> str:
    if value != PRODUCER_CODEC and value not in _STORED_CODECS:
        choices = ", ".join((PRODUCER_CODEC, *_STORED_CODECS))
        raise InvalidConfigError(name, value, f"must be one of {choices}")
    return value


_Reader = Callable[[str, str], object]

_READERS: Final[dict[str, _Reader]] = {
    "segment_bytes": _at_least(14),
    "segment_ms": _at_least(1),
    "segment_jitter_ms": _at_least(0),
    "segment_index_bytes": _at_least(4),
    "index_interval_bytes": _at_least(0),
    "retention_ms": _at_least(-1),
    "retention_bytes": _at_least(INT64_MIN),
    "cleanup_policy": _policies,
    "delete_retention_ms": _at_least(0),
    "min_cleanable_dirty_ratio": _ratio,
    "min_compaction_lag_ms": _at_least(0),
    "max_compaction_lag_ms": _at_least(1),
    "max_message_bytes": _at_least(0),
    "message_timestamp_type": _timestamp_type,
    "message_timestamp_before_max_ms": _at_least(0),
    "message_timestamp_after_max_ms": _at_least(0),
    "file_delete_delay_ms": _at_least(0),
    "flush_messages": _at_least(1),
    "flush_ms": _at_least(0),
    "compression_type": _compression_type,
    "compression_gzip_level": _at_least(-1, 9),
    "compression_lz4_level": _at_least(1, 17),
    "compression_zstd_level": _at_least(-131072, 22),
}

_TOPIC_NAMES: Final = {field.name.replace("_", "."): field.name for field in fields(LogConfig)}

_INTERNAL_NAMES: Final = {INTERNAL_SEGMENT_PROPERTY: "segment_bytes"}

_BROKER_NAMES: Final = {
    "log.segment.bytes": "segment_bytes",
    "log.roll.ms": "segment_ms",
    "log.roll.jitter.ms": "segment_jitter_ms",
    "log.index.size.max.bytes": "segment_index_bytes",
    "log.index.interval.bytes": "index_interval_bytes",
    "log.retention.ms": "retention_ms",
    "log.retention.bytes": "retention_bytes",
    "log.cleanup.policy": "cleanup_policy",
    "log.cleaner.delete.retention.ms": "delete_retention_ms",
    "log.cleaner.min.cleanable.ratio": "min_cleanable_dirty_ratio",
    "log.cleaner.min.compaction.lag.ms": "min_compaction_lag_ms",
    "log.cleaner.max.compaction.lag.ms": "max_compaction_lag_ms",
    "message.max.bytes": "max_message_bytes",
    "log.message.timestamp.type": "message_timestamp_type",
    "log.message.timestamp.before.max.ms": "message_timestamp_before_max_ms",
    "log.message.timestamp.after.max.ms": "message_timestamp_after_max_ms",
    "log.segment.delete.delay.ms": "file_delete_delay_ms",
    "log.flush.interval.messages": "flush_messages",
    "log.flush.interval.ms": "flush_ms",
    "compression.type": "compression_type",
    "compression.gzip.level": "compression_gzip_level",
    "compression.lz4.level": "compression_lz4_level",
    "compression.zstd.level": "compression_zstd_level",
}

# The finer unit wins when both are given (KafkaConfig.getLogRetentionTimeMillis).
_COARSE_UNITS: Final = (
    ("log.retention.ms", "log.retention.minutes", 60_000),
    ("log.retention.ms", "log.retention.hours", _HOUR_MS),
    ("log.roll.ms", "log.roll.hours", _HOUR_MS),
    ("log.roll.jitter.ms", "log.roll.jitter.hours", _HOUR_MS),
)


def _with_coarse_units(properties: Mapping[str, str]) -> dict[str, str]:
    fine = dict(properties)
    for fine_name, coarse_name, unit_ms in _COARSE_UNITS:
        if fine_name not in fine and coarse_name in fine:
            count = _at_least(-1)(coarse_name, fine[coarse_name])
            fine[fine_name] = str(count * unit_ms if count >= 0 else -1)
    return fine


def _read(properties: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Any]:
    return {
        field: _READERS[field](name, properties[name])
        for name, field in names.items()
        if name in properties
    }
