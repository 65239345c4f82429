"""History: what a point holds, what it stands for, and how points become one.

A point of the *fine* span is a reading. The job merges the points of each minute into one of the
*minute* span, and those of each hour into one of the *hour* span; a reader that draws a chart
merges by the same rule (``sql.merged``): the newest of what is a state, the mean of what is a
rate, and beside them the least and the greatest of what has peaks. Merging points that were
merged before gives what merging their readings gives, in whatever parts they came, so late
points and halves of a minute are no special case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

FINE: Final = "fine"
"""Points as they were sampled."""
MINUTE: Final = "minute"
HOUR: Final = "hour"
SPANS_MS: Final = {FINE: 1, MINUTE: 60_000, HOUR: 3_600_000}
"""How much time one point stands for, finest first."""
COARSER: Final = {FINE: MINUTE, MINUTE: HOUR}
_DAY_MS: Final = 86_400_000
RETENTIONS_MS: Final = {FINE: 2 * 3_600_000, MINUTE: 7 * _DAY_MS, HOUR: 400 * _DAY_MS}

Types = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The columns of a table of history, by how they are merged."""

    key: Types
    """Whose points these are."""
    last: Types
    """The newest counts, null or not."""
    mean: Sequence[str] = ()
    """Weighted by the readings that each point stands for; where some of them did not tell it,
    ``…_known`` says how many did (null: all). What is unknown has no weight."""
    extremes: Sequence[str] = ()
    """Figures (which are in ``last`` or ``mean``) whose least and greatest value a point tells too,
    as ``…_min`` and ``…_max``; of a reading they are null: it is both itself."""

    @property
    def schema(self) -> Any:
        """Key, ``at_ms`` (of the newest reading), figures, and its number of ``readings``."""
        types = {**self.last, **dict.fromkeys(self.mean, pa.float64())}
        ends = {f"{name}_{end}": types[name] for name in self.extremes for end in ("min", "max")}
        counts = {f"{name}_known": pa.int64() for name in self.mean}
        times, readings = {"at_ms": pa.int64()}, {"readings": pa.int64()}
        return pa.schema({**self.key, **times, **types, **ends, **counts, **readings})

    def schema_of(self, columns: Sequence[str]) -> Any:
        """The same of some figures: with their extremes, and how many readings told them."""
        ends = {f"{name}_{end}" for name in columns for end in ("min", "max", "known")}
        wanted = {*self.key, "at_ms", *columns, *ends}
        return pa.schema([item for item in self.schema if item.name in wanted])


_RATES: Final = ("in_records_per_s", "in_bytes_per_s", "out_bytes_per_s")
_OF_LAG: Final[Types] = {
    "lag": pa.int64(),
    "lost_records": pa.int64(),
    "time_lag_ms": pa.int64(),
    "time_to_clear_ms": pa.int64(),
    "retention_risk_ms": pa.int64(),
    "status": pa.string(),
}
_PARTITION_KEY: Final[Types] = {
    "cluster": pa.string(),
    "topic": pa.string(),
    "partition": pa.int32(),
}

PARTITION: Final = Shape(
    key=_PARTITION_KEY,
    last={
        "leader": pa.int32(),  # -1: offline
        "replicas": pa.string(),  # ids in assignment order with blanks between
        "isr": pa.string(),
        "isr_count": pa.int32(),
        "replicas_count": pa.int32(),
        "min_isr": pa.int32(),
        "log_start_offset": pa.int64(),
        "high_watermark": pa.int64(),
        "size_bytes": pa.int64(),
        "segments": pa.int32(),
    },
    mean=_RATES,
    extremes=(*_RATES, "isr_count", "size_bytes"),
)
COMMIT: Final = Shape(
    key={"cluster": pa.string(), "group_id": pa.string(), **_PARTITION_KEY},
    last={
        "committed_offset": pa.int64(),
        "end_offset": pa.int64(),
        "told_lag": pa.int64(),  # by the broker, of a share group; null: not told
        "stuck_since_ms": pa.int64(),
        **_OF_LAG,
    },
    mean=("consumed_records_per_s", "lag_records_per_s"),
    extremes=("lag", "time_lag_ms"),
)
TOPIC: Final = Shape(
    key={"cluster": pa.string(), "topic": pa.string()},
    last={"partitions": pa.int64(), "size_bytes": pa.int64()},  # of the leaders' replicas
    mean=_RATES,
    extremes=_RATES,
)
BROKER: Final = Shape(
    # Rates are those of what it leads; broker ALL_BROKERS is their sum.
    key={"cluster": pa.string(), "broker": pa.int32()},
    last={
        "host": pa.string(),
        "port": pa.int32(),
        "rack": pa.string(),
        "is_fenced": pa.bool_(),
        "is_controller": pa.bool_(),
        "replicas": pa.int64(),
        "leaders": pa.int64(),
        "size_bytes": pa.int64(),  # of the replicas that it holds
        "disk_total_bytes": pa.int64(),
        "disk_usable_bytes": pa.int64(),
        "interval_ms": pa.int64(),
        "sampled_ms": pa.int64(),
    },
    mean=_RATES,
    extremes=_RATES,
)
ALL_BROKERS: Final = -1
GROUP: Final = Shape(
    key={"cluster": pa.string(), "group_id": pa.string()},
    last={
        "state": pa.string(),
        "protocol": pa.string(),
        "group_type": pa.string(),
        "members": pa.int32(),
        "partitions": pa.int64(),
        "committed_ms": pa.int64(),
        **_OF_LAG,
    },
    mean=("lag_records_per_s", "consumed_records_per_s"),
    extremes=("lag", "time_lag_ms"),
)
JOB: Final = Shape(
    # The job's own health, a point per batch.
    key={},
    last={
        "batch_id": pa.int64(),
        "bad_records_total": pa.int64(),
        "lost_records_total": pa.int64(),
        "late_rounds_total": pa.int64(),
        "state_rows": pa.int64(),
        "newest_round_ms": pa.int64(),
        "interval_ms": pa.int64(),
    },
    mean=("batch_ms", "records", "records_per_s", "delay_ms"),
    extremes=("batch_ms", "records_per_s", "delay_ms"),
)

SHAPES: Final[Mapping[str, Shape]] = {
    "partition_history": PARTITION,
    "commit_history": COMMIT,
    "topic_history": TOPIC,
    "broker_history": BROKER,
    "group_history": GROUP,
    "job_history": JOB,
}
HISTORY_TABLES: Final[Mapping[str, Any]] = {name: shape.schema for name, shape in SHAPES.items()}
PARTITION_HISTORY: Final = HISTORY_TABLES["partition_history"]
COMMIT_HISTORY: Final = HISTORY_TABLES["commit_history"]
TOPIC_HISTORY: Final = HISTORY_TABLES["topic_history"]
BROKER_HISTORY: Final = HISTORY_TABLES["broker_history"]
GROUP_HISTORY: Final = HISTORY_TABLES["group_history"]
JOB_HISTORY: Final = HISTORY_TABLES["job_history"]
