"""Schemas that only the job itself needs.

The job's state is kept in the tables of "now" themselves: beside the columns that readers see
(``window.tables``) their files hold what the next version is computed from. Columns and the
fields of structs are mappings from their names to their types.
"""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

_TEXT: Final = pa.string()
_FLAG: Final = pa.bool_()
_INT: Final = pa.int32()
_LONG: Final = pa.int64()
_FLOAT: Final = pa.float64()
_INTS: Final = pa.list_(_INT)
_LONGS: Final = pa.list_(_LONG)

READINGS_MAX: Final = 6
"""Readings remembered per leader: what rates and end offsets are taken from."""
POINTS_MAX: Final = 30
"""Points (time, end offset) remembered per partition, ever sparser into the past."""
POINTS_KEPT: Final = 24
"""… of which so many are left when they are thinned, which costs a multiple of adding one."""

READING: Final = {
    "read_ms": _LONG,
    "broker_epoch": _LONG,
    "high_watermark": _LONG,
    "log_end_offset": _LONG,
    "size_bytes": _LONG,
    "bytes_in": _LONG,
    "bytes_out": _LONG,
}
"""A leader's counters."""
VIEW: Final = {
    "leader": _INT,
    "leader_epoch": _INT,
    "replicas": _INTS,
    "isr": _INTS,
    "adding_replicas": _INTS,
    "removing_replicas": _INTS,
    "min_isr": _INT,
}
"""Leader and followers, as a broker knows them."""
LOG: Final = {
    "leader_epoch": _INT,
    "broker_epoch": _LONG,
    "log_start_offset": _LONG,
    "high_watermark": _LONG,
    "log_end_offset": _LONG,
    "size_bytes": _LONG,
    "segments": _INT,
    "segment_bytes": _LONGS,
    "segment_offsets": _LONGS,
    "bytes_in": _LONG,
    "bytes_out": _LONG,
    **{"retention_ms": _LONG, "retention_bytes": _LONG},
    "log_points": _LONGS,
    "readable_offset": _LONG,
}
"""What a broker says of its replica's log."""
_HELD: Final = {
    "broker": _INT,
    "full_ms": _LONG,
    "round_ms": _LONG,
    "log_end_offset": _LONG,
    "size_bytes": _LONG,
    "segments": _INT,
}
MEMBER: Final = {
    **_HELD,
    "read_ms": _LONG,
    **{"before_ms": _LONG, "before_end": _LONG},
    **{"oldest_ms": _LONG, "oldest_end": _LONG},
}
"""A replica as its broker last reported it (``full_ms``: in full), and its two earlier readings."""
_TELLER: Final = {"broker": _INT, "read_ms": _LONG}
GATHERED: Final[Mapping[str, Any]] = {
    **{"cluster": _TEXT, "topic": _TEXT, "partition": _INT},
    "rows": pa.list_(
        pa.struct({**_HELD, "again_ms": _LONG, "since_ms": _LONG, "again_round_ms": _LONG})
    ),
    "view": pa.struct({**_TELLER, **VIEW}),
    "log": pa.struct({**_TELLER, "leads": _FLAG, **LOG}),
}
"""What a step says of one partition: each replica's row (``full_ms`` null: none in full;
``again_…``: read again unchanged), and in full the view and the log that count among them."""
POINT: Final = {"ms": _LONG, "offset": _LONG, "error_ms": _LONG}
"""When a log ended where, and how far at most the line to the next older point is from the truth;
null: as far as it can be."""
START: Final = {"ms": _LONG, "offset": _LONG, "end": _LONG}
"""Where a log began from when on, and where it ended then; ``end`` is null where it may have begun
there because of its records' age."""
STARTS_MAX: Final = 6
"""Starts of a log that are remembered: the newest ones."""
PARTITION_STATE: Final[Mapping[str, Any]] = {
    **{"cluster": _TEXT, "topic": _TEXT, "partition": _INT},
    **{"view_broker": _INT, "view_ms": _LONG, "told_leader": _INT, **VIEW},
    **{"log_broker": _INT, "log_leads": _FLAG, "log_epoch": _INT, "read_ms": _LONG},
    **{name: kind for name, kind in LOG.items() if name not in ("leader_epoch", *READING)},
    **{name: LOG[name] for name in ("high_watermark", "log_end_offset", "size_bytes")},
    **{"isr_shrinks": _LONG, "isr_expands": _LONG},
    "points": pa.list_(pa.struct(POINT)),
    "ends": pa.list_(pa.struct(READING)),
    "log_starts": pa.list_(pa.struct(START)),
    "members": pa.list_(pa.struct(MEMBER)),
}
"""What is read back of ``partitions``: view and log with who told them and when, the leader's
readings (``ends``), and where it began, to see what retention keeps (``log_starts``)."""

_KEPT: Final = (
    *("committed_offset", "end_offset", "lag", "commit_ms", "read_ms", "end_read_ms", "first_ms"),
    *("wait_a_ms", "wait_a_offset", "wait_a_commit_ms"),
    *("wait_b_ms", "wait_b_offset", "wait_b_commit_ms"),
    *("speed_a_ms", "speed_a_offset", "speed_a_lag"),
    *("speed_b_ms", "speed_b_offset", "speed_b_lag"),
    *("trend_a_ms", "trend_a_lag", "trend_b_ms", "trend_b_lag", "still_since_ms", "moved_ms"),
    *("pace_ms", "outage_ms", "rewind_from", "rewind_ms", "alive_ms"),
    *("reached_ms", "reached_error_ms", "moved_lag"),
)
ROW: Final = "row"
"""The place of a row in its table: the fold knows commits and their partitions by number, their
names stay beside it (``spark_metrics.fold.names``)."""
COMMIT_STATE: Final[Mapping[str, Any]] = {
    **{"source": _INT, "round_ms": _LONG, "full_ms": _LONG},
    **{"is_owned": _FLAG, "told_lag": _LONG, **dict.fromkeys(_KEPT, _LONG)},
    "lag_growth_per_s": _FLOAT,
}
"""What is read back of ``commits`` (``fold.commits`` tells what each is for)."""
LOGS: Final[Mapping[str, Any]] = {
    ROW: _INT,
    **dict.fromkeys(("end_times", "end_offsets"), _LONGS),
    **dict.fromkeys(("point_times", "point_offsets", "point_errors", "log_points"), _LONGS),
    "segment_offsets": _LONGS,
    **dict.fromkeys(("log_start_offset", "readable_offset", "retention_ms"), _LONG),
    **dict.fromkeys(("kept_looked_ms", "kept_check_ms", "kept_step", "kept_records"), _LONG),
}
"""What commits are told of ``partitions``: the leader's readings (``end_…``) and the points of its
log's end, newest first, its newest segments, and its retention (``figures.retention.Kept``)."""


_AGAIN: Final = dict.fromkeys(("again_read_ms", "again_since_ms", "again_round_ms"), _LONG)
ROWS: Final[Mapping[str, Mapping[str, str]]] = {
    "replicas": {
        **{"cluster": _TEXT, "topic": _TEXT, "partition": _INT, "source": _INT},
        **{"round_ms": _LONG, "read_ms": _LONG, **VIEW, **LOG},
        **_AGAIN,
    },
    "commits": {
        **{"cluster": _TEXT, "group_id": _TEXT, "topic": _TEXT, "partition": _INT},
        **{"source": _INT, "round_ms": _LONG, "read_ms": _LONG},
        **{"committed_offset": _LONG, "commit_ms": _LONG, "member_id": _TEXT},
        "told_lag": _LONG,
        **_AGAIN,
    },
}
"""What a step brings, one row per replica or commit: the newest full row (``read_ms`` null: none),
and when it was read again unchanged (``again_since_ms``: since which reading it is unchanged)."""
TOLD: Final = {
    **{"told_source": "source", "told_round_ms": "round_ms", "told_ms": "read_ms"},
    **{"told_offset": "committed_offset", "told_commit_ms": "commit_ms", "new_lag": "told_lag"},
    **{"again_ms": "again_read_ms", "since_ms": "again_since_ms"},
    **{"again_round_ms": "again_round_ms", "told_alive_ms": "alive_ms"},
}
"""What a row of ``ROWS`` of commits says, by the names that it has beside the state."""
FRESH_COMMITS: Final[Mapping[str, Any]] = {
    **{ROW: _INT, "log_row": _INT, "told_owned": _FLAG},
    **{name: _INT if name == "told_source" else _LONG for name in TOLD},
}
"""A row for each commit that is known, in the order of the state: its partition's row, what the
step brings (null: nothing) and when its group committed anything last, as the driver knows."""
CARRIED: Final = {
    **{"source": _INT, "round_ms": _LONG, "full_ms": _LONG},
    **{"is_owned": _FLAG, "alive_ms": _LONG, "told_lag": _LONG},
}
"""Columns of a commit's state that no figure changes (``spark_metrics.fold.newest_readings``)."""
READING_OF: Final = {"ms": "read_ms", "offset": "committed_offset", "commit_ms": "commit_ms"}
"""Fields of a reading, and the columns of the one that is paired; one that waits lies in
``wait_a_…`` or ``wait_b_…``."""
MET_COMMITS: Final[Mapping[str, Any]] = {
    **{ROW: _INT, "log_row": _INT, "brings": _FLAG, "is_owned": _FLAG},
    **dict.fromkeys((f"newest_{field}" for field in READING_OF), _LONG),
    **{name: kind for name, kind in COMMIT_STATE.items() if name not in CARRIED},
    **{"alive_ms": _LONG, "told_lag": _LONG},
}
"""What the fold of commits reads: of each its partition's row, its newest reading and whether the
step ``brings`` it, who owns it and when its group committed last, and its state."""
TEXT: Final = pa.dictionary(pa.int32(), pa.string())
"""A text as the driver has it while it looks at rows: a place in a dictionary."""


def coded_schema(fields: Mapping[str, Any]) -> pa.Schema:
    """The columns' schema, with texts as places in dictionaries."""
    return pa.schema({name: TEXT if of == _TEXT else of for name, of in fields.items()})
