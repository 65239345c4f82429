"""Schemas that only the job itself needs.

The job's state is kept in the tables of "now" themselves: beside the columns that readers see
(``window.tables``) their files hold what the next version is computed from. A type is its
name in Spark SQL, the mapping of a struct's fields, or a tuple of what an array holds.
"""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

READINGS_MAX: Final = 6
"""Readings remembered per leader: what rates and end offsets are taken from."""
POINTS_MAX: Final = 30
"""Points (time, end offset) remembered per partition, ever sparser into the past."""
POINTS_KEPT: Final = 24
"""… of which so many are left when they are thinned, which costs a multiple of adding one."""

READING: Final = {
    "read_ms": "BIGINT",
    "broker_epoch": "BIGINT",
    "high_watermark": "BIGINT",
    "log_end_offset": "BIGINT",
    "size_bytes": "BIGINT",
    "bytes_in": "BIGINT",
    "bytes_out": "BIGINT",
}
"""A leader's counters."""
VIEW: Final = {
    "leader": "INT",
    "leader_epoch": "INT",
    "replicas": "ARRAY<INT>",
    "isr": "ARRAY<INT>",
    "adding_replicas": "ARRAY<INT>",
    "removing_replicas": "ARRAY<INT>",
    "min_isr": "INT",
}
"""Who leads and follows, as a broker knows it."""
LOG: Final = {
    "leader_epoch": "INT",
    "broker_epoch": "BIGINT",
    "log_start_offset": "BIGINT",
    "high_watermark": "BIGINT",
    "log_end_offset": "BIGINT",
    "size_bytes": "BIGINT",
    "segments": "INT",
    "segment_bytes": "ARRAY<BIGINT>",
    "segment_offsets": "ARRAY<BIGINT>",
    "bytes_in": "BIGINT",
    "bytes_out": "BIGINT",
    "retention_ms": "BIGINT",
    "log_points": "ARRAY<BIGINT>",
}
"""What a broker says of its replica's log."""
_HELD: Final = {
    "broker": "INT",
    "full_ms": "BIGINT",
    "round_ms": "BIGINT",
    "log_end_offset": "BIGINT",
    "size_bytes": "BIGINT",
    "segments": "INT",
}
MEMBER: Final = {
    **_HELD,
    "read_ms": "BIGINT",
    **{"before_ms": "BIGINT", "before_end": "BIGINT"},
    **{"oldest_ms": "BIGINT", "oldest_end": "BIGINT"},
}
"""A replica as its broker last reported it (``full_ms``: in full), and its two earlier readings."""
_TELLER: Final = {"broker": "INT", "read_ms": "BIGINT"}
GATHERED: Final[Mapping[str, Any]] = {
    **{"cluster": "STRING", "topic": "STRING", "partition": "INT"},
    "rows": ({**_HELD, "again_ms": "BIGINT", "since_ms": "BIGINT", "again_round_ms": "BIGINT"},),
    "view": {**_TELLER, **VIEW},
    "log": {**_TELLER, "leads": "BOOLEAN", **LOG},
}
"""What a wave says of one partition: each replica's row (``full_ms`` null: none in full;
``again_…``: read again unchanged), and in full the view and the log that count among them."""
POINT: Final = {"ms": "BIGINT", "offset": "BIGINT"}
PARTITION_STATE: Final[Mapping[str, Any]] = {
    **{"cluster": "STRING", "topic": "STRING", "partition": "INT"},
    **{"view_broker": "INT", "view_ms": "BIGINT", "told_leader": "INT", **VIEW},
    **{"log_broker": "INT", "log_leads": "BOOLEAN", "log_epoch": "INT", "read_ms": "BIGINT"},
    **{name: kind for name, kind in LOG.items() if name not in ("leader_epoch", *READING)},
    **{name: LOG[name] for name in ("high_watermark", "log_end_offset", "size_bytes")},
    **{"isr_shrinks": "BIGINT", "isr_expands": "BIGINT"},
    "points": (POINT,),
    "ends": (READING,),
    "starts": {"a": POINT, "b": POINT},
    "members": (MEMBER,),
}
"""What is read back of ``partitions``: view and log with who told them and when, the leader's
readings (``ends``), and earlier log starts, to see how fast they go (``starts``)."""

_KEPT: Final = (
    *("committed_offset", "end_offset", "lag", "commit_ms", "read_ms", "end_read_ms", "first_ms"),
    *("wait_a_ms", "wait_a_offset", "wait_a_commit_ms"),
    *("wait_b_ms", "wait_b_offset", "wait_b_commit_ms"),
    *("speed_a_ms", "speed_a_offset", "speed_a_lag"),
    *("speed_b_ms", "speed_b_offset", "speed_b_lag"),
    *("trend_a_ms", "trend_a_lag", "trend_b_ms", "trend_b_lag", "still_since_ms", "moved_ms"),
    *("pace_ms", "rewind_from", "rewind_ms", "alive_ms"),
)
ROW: Final = "row"
"""The place of a row in its table: the fold knows commits and their partitions by number, their
names stay beside it (``spark_metrics.fold.names``)."""
COMMIT_STATE: Final[Mapping[str, Any]] = {
    **{"source": "INT", "round_ms": "BIGINT", "full_ms": "BIGINT"},
    **{"is_owned": "BOOLEAN", "told_lag": "BIGINT", **dict.fromkeys(_KEPT, "BIGINT")},
}
"""What is read back of ``commits`` (``fold.commits`` tells what each is for)."""
LOGS: Final[Mapping[str, Any]] = {
    ROW: "INT",
    **dict.fromkeys(("end_times", "end_offsets"), "ARRAY<BIGINT>"),
    **dict.fromkeys(("point_times", "point_offsets", "log_points"), "ARRAY<BIGINT>"),
    **dict.fromkeys(("log_start_offset", "retention_ms"), "BIGINT"),
    "start_per_ms": "DOUBLE",
}
"""What commits are told of ``partitions``: the leader's readings (``end_…``) and the points of its
log's end, newest first, and how fast its start moves."""


_AGAIN: Final = dict.fromkeys(("again_read_ms", "again_since_ms", "again_round_ms"), "BIGINT")
ROWS: Final[Mapping[str, Mapping[str, str]]] = {
    "replicas": {
        **{"cluster": "STRING", "topic": "STRING", "partition": "INT", "source": "INT"},
        **{"round_ms": "BIGINT", "read_ms": "BIGINT", **VIEW, **LOG},
        **_AGAIN,
    },
    "commits": {
        **{"cluster": "STRING", "group_id": "STRING", "topic": "STRING", "partition": "INT"},
        **{"source": "INT", "round_ms": "BIGINT", "read_ms": "BIGINT"},
        **{"committed_offset": "BIGINT", "commit_ms": "BIGINT", "member_id": "STRING"},
        "told_lag": "BIGINT",
        **_AGAIN,
    },
}
"""What a wave brings, one row per replica or commit: the newest full row (``read_ms`` null: none),
and when it was read again unchanged (``again_since_ms``: since which reading it is unchanged)."""
TOLD: Final = {
    **{"told_source": "source", "told_round_ms": "round_ms", "told_ms": "read_ms"},
    **{"told_offset": "committed_offset", "told_commit_ms": "commit_ms", "new_lag": "told_lag"},
    **{"again_ms": "again_read_ms", "since_ms": "again_since_ms"},
    **{"again_round_ms": "again_round_ms", "told_alive_ms": "alive_ms"},
}
"""What a row of ``ROWS`` of commits says, by the names that it has beside the state."""
FRESH_COMMITS: Final[Mapping[str, Any]] = {
    **{ROW: "INT", "log_row": "INT", "told_owned": "BOOLEAN"},
    **{name: "INT" if name == "told_source" else "BIGINT" for name in TOLD},
}
"""A row for each commit that is known, in the order of the state: its partition's row, what the
wave brings (null: nothing) and when its group committed anything last, as the driver knows."""
CARRIED: Final = {
    **{"source": "INT", "round_ms": "BIGINT", "full_ms": "BIGINT"},
    **{"is_owned": "BOOLEAN", "alive_ms": "BIGINT", "told_lag": "BIGINT"},
}
"""Of a commit's state, what no figure changes (``spark_metrics.fold.newest_readings``)."""
READING_OF: Final = {"ms": "read_ms", "offset": "committed_offset", "commit_ms": "commit_ms"}
"""Fields of a reading, and the columns of the one that is paired; one that waits lies in
``wait_a_…`` or ``wait_b_…``."""
MET_COMMITS: Final[Mapping[str, Any]] = {
    **{ROW: "INT", "log_row": "INT", "brings": "BOOLEAN", "is_owned": "BOOLEAN"},
    **dict.fromkeys((f"newest_{field}" for field in READING_OF), "BIGINT"),
    **{name: kind for name, kind in COMMIT_STATE.items() if name not in CARRIED},
    **{"alive_ms": "BIGINT", "told_lag": "BIGINT"},
}
"""What the fold of commits reads: of each its partition's row, its newest reading and whether the
wave ``brings`` it, who owns it and when its group committed last, and its state."""
TEXT: Final = pa.dictionary(pa.int32(), pa.string())
"""A text as the driver has it while it looks at rows: a place in a dictionary."""
_ARROW: Final = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "ARRAY<INT>": pa.list_(pa.int32()),
    "ARRAY<BIGINT>": pa.list_(pa.int64()),
}


def arrow_type(kind: Any) -> Any:
    """A type as Arrow names it."""
    if isinstance(kind, str):
        return _ARROW[kind]
    if isinstance(kind, tuple):
        return pa.list_(arrow_type(kind[0]))
    return pa.struct({name: arrow_type(of) for name, of in kind.items()})


def arrow_schema(fields: Mapping[str, Any]) -> pa.Schema:
    """Columns as Arrow names their types."""
    return pa.schema({name: arrow_type(kind) for name, kind in fields.items()})


def coded_schema(fields: Mapping[str, Any]) -> pa.Schema:
    """The same with texts as places in dictionaries."""
    schema = arrow_schema(fields)
    return pa.schema([(it.name, TEXT if it.type == pa.string() else it.type) for it in schema])
