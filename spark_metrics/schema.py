"""Schemas that only the job itself needs, in Spark SQL's DDL.

The job's state is kept in the tables of "now" themselves: beside the columns that readers see
(``spark_metrics.tables``) their files hold what the next version is computed from.
"""

from typing import Final

from broker.metrics_columns import LISTS, NESTED, NUMBERS, TEXTS
from broker.metrics_schema import SAMPLE_DDL

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


def _columns(kind: str) -> str:
    texts = [f"{dictionary}: ARRAY<STRING>" for dictionary in TEXTS[kind].values()]
    places = [f"{name}: ARRAY<INT>" for name in TEXTS[kind]]
    numbers = [f"{name}: ARRAY<BIGINT>" for name in NUMBERS[kind]]
    lists: list[str] = []
    if kind == "replicas":
        lists = ["lists: ARRAY<ARRAY<INT>>", *(f"{name}: ARRAY<INT>" for name in LISTS)]
        lists += [f"{name}: ARRAY<ARRAY<BIGINT>>" for name in NESTED]
    return f"{kind}_columns STRUCT<{', '.join([*texts, *places, *lists, *numbers])}>"


def body_ddl(kind: str) -> str:
    """Schema of the body of a record, of version 2 or 1, as far as this kind of row goes."""
    start = SAMPLE_DDL.index(f"{kind} ARRAY<STRUCT<")
    rows = SAMPLE_DDL[start : SAMPLE_DDL.index(">>", start) + 2]
    if kind == "replicas":
        # Its struct holds arrays, the last of which does not end it.
        rows = SAMPLE_DDL[start : SAMPLE_DDL.index("read_ms: BIGINT>>", start) + 17]
    return f"{_columns(kind)}, {rows}"
