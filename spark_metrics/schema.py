"""Schemas that only the job itself needs, in Spark SQL's DDL.

The job's state is kept in the tables of "now" themselves: beside the columns that readers see
(``spark_metrics.tables``) their files hold what the next version is computed from.
"""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

READINGS_MAX: Final = 6
"""Readings remembered per leader: what rates and end offsets are taken from."""
FOLLOWER_READINGS_MAX: Final = 3
POINTS_MAX: Final = 24
"""Points (time, end offset) remembered per partition, ever sparser into the past."""

READING: Final = """STRUCT<read_ms: BIGINT, broker_epoch: BIGINT, is_leader: BOOLEAN,
  high_watermark: BIGINT, log_end_offset: BIGINT, size_bytes: BIGINT, bytes_in: BIGINT,
  bytes_out: BIGINT>"""
MEMBER_FIELDS: Final = {
    "broker": "INT",
    "round_ms": "BIGINT",
    "full_ms": "BIGINT",
    "broker_epoch": "BIGINT",
    "leader": "INT",
    "leader_epoch": "INT",
    "replicas": "ARRAY<INT>",
    "isr": "ARRAY<INT>",
    "adding_replicas": "ARRAY<INT>",
    "removing_replicas": "ARRAY<INT>",
    "min_isr": "INT",
    "log_start_offset": "BIGINT",
    "high_watermark": "BIGINT",
    "log_end_offset": "BIGINT",
    "size_bytes": "BIGINT",
    "segments": "INT",
    "segment_bytes": "ARRAY<BIGINT>",
    "active_base_offset": "BIGINT",
    "bytes_in": "BIGINT",
    "bytes_out": "BIGINT",
    "retention_ms": "BIGINT",
    "log_points": "ARRAY<BIGINT>",
    "read_ms": "BIGINT",
}
"""A replica as its broker last reported it (``full_ms``: in full)."""
MEMBER: Final = (
    "STRUCT<"
    + ", ".join(f"{name}: {kind}" for name, kind in MEMBER_FIELDS.items())
    + f", readings: ARRAY<{READING}>>"
)
POINT: Final = "STRUCT<ms: BIGINT, offset: BIGINT>"
PARTITION_STATE: Final = f"""cluster STRING, topic STRING, partition INT, isr ARRAY<INT>,
  isr_shrinks BIGINT, isr_expands BIGINT, log_start_offset BIGINT, retention_ms BIGINT,
  points ARRAY<{POINT}>, log_points ARRAY<BIGINT>, ends ARRAY<{READING}>,
  starts STRUCT<a: {POINT}, b: {POINT}>, members ARRAY<{MEMBER}>"""
"""What is read back of ``partitions``. ``starts``: earlier log starts, to see how fast they go."""

PENDING: Final = "STRUCT<read_ms: BIGINT, committed_offset: BIGINT, commit_ms: BIGINT>"
ANCHOR: Final = "STRUCT<ms: BIGINT, committed_offset: BIGINT, lag: BIGINT>"
COMMIT_STATE: Final = f"""cluster STRING, group_id STRING, topic STRING, partition INT,
  source INT, round_ms BIGINT, full_ms BIGINT, newest {PENDING}, waits_a {PENDING},
  waits_b {PENDING}, member_id STRING, committed_offset BIGINT, end_offset BIGINT, lag BIGINT,
  commit_ms BIGINT, read_ms BIGINT, end_read_ms BIGINT, first_ms BIGINT, speed_a {ANCHOR},
  speed_b {ANCHOR}, trend_a {ANCHOR}, trend_b {ANCHOR}, still_offset BIGINT,
  still_since_ms BIGINT, zero_ms BIGINT, moved_ms BIGINT, pace_ms BIGINT, rewind_from BIGINT,
  rewind_ms BIGINT"""
"""What is read back of ``commits`` (``spark_metrics.status`` tells what each is for)."""


_AGAIN: Final = dict.fromkeys(("again_read_ms", "again_since_ms", "again_round_ms"), "BIGINT")
_FULL: Final = {
    name: kind for name, kind in MEMBER_FIELDS.items() if name not in ("broker", "full_ms")
}
ROWS: Final[Mapping[str, Mapping[str, str]]] = {
    "replicas": {
        **{"cluster": "STRING", "topic": "STRING", "partition": "INT", "source": "INT"},
        **_FULL,
        **_AGAIN,
    },
    "commits": {
        **{"cluster": "STRING", "group_id": "STRING", "topic": "STRING", "partition": "INT"},
        **{"source": "INT", "round_ms": "BIGINT", "read_ms": "BIGINT"},
        **{"committed_offset": "BIGINT", "commit_ms": "BIGINT", "member_id": "STRING"},
        **_AGAIN,
    },
}
"""What a wave brings, one row per replica or commit: the newest full row (``read_ms`` null: none),
and when it was read again unchanged (``again_since_ms``: since which reading it is unchanged)."""
_ARROW: Final = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "ARRAY<INT>": pa.list_(pa.int32()),
    "ARRAY<BIGINT>": pa.list_(pa.int64()),
}


def arrow_schema(fields: Mapping[str, str]) -> pa.Schema:
    """The same columns as Arrow names their types."""
    return pa.schema({name: _ARROW[kind] for name, kind in fields.items()})


def ddl(fields: Mapping[str, str]) -> str:
    """The same columns in Spark SQL's DDL."""
    return ", ".join(f"{name} {kind}" for name, kind in fields.items())
