"""Synthetic stores, written by the job's own writer, for whoever shows what a store holds.

    StoreBuilder(path).write_synthetic(SyntheticSizes(topics=5), history_s=600)
    StoreBuilder(path).write({"brokers": [{"cluster": "c", "broker": 101}]})

The figures are made up but coherent: leaders are replicas, sums agree, one partition in
``offline_every`` has no leader, groups keep up, lag, or stand still by turns.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_metrics.fold.new_points import Clocks, job_points, sum_points
from spark_metrics.fold.now_tables import group_sums
from spark_metrics.fold.sums import Sums, sums_of
from spark_metrics.store.layout import Manifest
from spark_metrics.store.writer import Commit, StoreWriter
from spark_metrics.window.history_points import HISTORY_TABLES
from spark_metrics.window.tables import COMMITS, NOW_TABLES
from tests.support.at_once import Never

Row = dict[str, Any]
CLUSTER = "test-cluster"
FIRST_BROKER = 101
FOREVER_MS = 100 * 365 * 86_400_000
"""Tests may write history of any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticSizes:
    """How much of everything."""

    topics: int = 4
    partitions: int = 6
    """Per topic."""
    brokers: int = 3
    replicas: int = 3
    """Per partition."""
    groups: int = 3
    offline_every: int = 0
    """Every so manieth partition has lost its leader; 0: none."""


class StoreBuilder:
    """Writes versions of a synthetic store."""

    def __init__(self, store: Path | str, *, executor: Executor | None = None) -> None:
        """``executor`` merges history; without one it stays as it was written."""
        upkeep = executor or Never()
        self.folder = Path(store)
        self._writer = StoreWriter(str(store), retention_ms=FOREVER_MS, executor=upkeep)
        self._batch_id = -1

    def write(
        self, now: Mapping[str, Sequence[Row]], **history: Sequence[Row] | pa.Table
    ) -> Manifest:
        """Commit rows as the next version.

        ``now`` is keyed by ``NOW_TABLES`` and ``history`` by ``HISTORY_TABLES``; absent tables
        are empty and absent columns null.
        """
        self._batch_id += 1
        return self._writer.commit(
            Commit(
                query_id="synthetic",
                batch_id=self._batch_id,
                interval_ms=1_000,
                watermark_ms=time.time_ns() // 1_000_000,
                now={name: table_of(now.get(name, ()), it) for name, it in NOW_TABLES.items()},
                history={
                    name: rows
                    if isinstance(rows, pa.Table)
                    else table_of(rows, HISTORY_TABLES[name])
                    for name, rows in history.items()
                },
            )
        )

    def write_synthetic(
        self, sizes: SyntheticSizes, *, history_s: int = 60, at_ms: int | None = None
    ) -> Manifest:
        """A whole store of these sizes with one point of history per second."""
        now_ms = time.time_ns() // 1_000_000 if at_ms is None else at_ms
        now = synthetic_rows(sizes, at_ms=now_ms)
        return self.write(
            now,
            partition_history=partition_history_of(now["partitions"], history_s),
            commit_history=commit_history_of(now["commits"], history_s),
            **sums_history_of(now, history_s, now_ms),
        )


def sums_history_of(
    now: Mapping[str, Sequence[Row]], seconds: int, at_ms: int
) -> dict[str, pa.Table]:
    """Topics, brokers, groups and the job as they are, every second."""
    tables = {name: table_of(rows, NOW_TABLES[name]) for name, rows in now.items()}
    clocks = Clocks(before_ms={}, now_ms={CLUSTER: at_ms})
    sums = sum_points(sums_of_now(tables), tables, clocks)
    sums["job_history"] = job_points(tables["health"], interval_ms=1_000)
    return {name: _repeated(table, seconds, at_ms) for name, table in sums.items()}


def _repeated(table: pa.Table, seconds: int, at_ms: int) -> pa.Table:
    place = table.schema.get_field_index("at_ms")
    times = [at_ms - 1_000 * ago for ago in range(seconds, -1, -1)]
    return pa.concat_tables(
        [
            table.set_column(place, "at_ms", pa.array([time] * table.num_rows, pa.int64()))
            for time in times
        ]
    )


def sums_of_now(now: Mapping[str, pa.Table]) -> Sums:
    """The sums of tables of "now"; absent ones are empty."""
    wanted = ("partitions", "replicas", "commits")
    return sums_of(*(now.get(name, NOW_TABLES[name].empty_table()) for name in wanted))


def table_of(rows: Sequence[Row], schema: Any) -> pa.Table:
    columns = {item.name: [row.get(item.name) for row in rows] for item in schema}
    return pa.table(columns, schema=schema)


def synthetic_rows(sizes: SyntheticSizes, *, at_ms: int) -> dict[str, list[Row]]:
    """Rows of all now-tables, as read at ``at_ms``."""
    partitions = [
        _partition(sizes, topic, partition, at_ms)
        for topic in range(sizes.topics)
        for partition in range(sizes.partitions)
    ]
    commits = [
        _commit(index, partition, at_ms)
        for index in range(sizes.groups)
        for partition in partitions
        if partition["topic"] == f"topic-{index % max(1, sizes.topics)}"
    ]
    sums = group_sums(sums_of_now({"commits": table_of(commits, COMMITS)}))
    return {
        "partitions": partitions,
        "replicas": [row for partition in partitions for row in _replicas(partition)],
        "commits": commits,
        "groups": [
            {**group, **sums.get((CLUSTER, group["group_id"]), {})}
            for group in (_group(index, at_ms) for index in range(sizes.groups))
        ],
        "brokers": [_broker(sizes, index, partitions, at_ms) for index in range(sizes.brokers)],
        "health": [_health(at_ms)],
    }


def partition_history_of(partitions: Sequence[Row], seconds: int) -> list[Row]:
    """One point a second up to each row's own time, its counters counted back."""
    return [
        {
            **{name: row[name] for name in ("cluster", "topic", "partition", "leader")},
            "at_ms": row["read_ms"] - 1_000 * ago,
            "isr_count": len(row["isr"]),
            "replicas_count": len(row["replicas"]),
            "replicas": " ".join(map(str, row["replicas"])),
            "isr": " ".join(map(str, row["isr"])),
            **{name: row[name] for name in ("min_isr", "log_start_offset")},
            "high_watermark": max(0, int(row["high_watermark"] - ago * row["in_records_per_s"])),
            "size_bytes": max(0, int(row["size_bytes"] - ago * row["in_bytes_per_s"])),
            "segments": row["segments"],
            "in_records_per_s": row["in_records_per_s"],
            "in_bytes_per_s": row["in_bytes_per_s"],
            "out_bytes_per_s": row["out_bytes_per_s"],
        }
        for row in partitions
        for ago in range(seconds, -1, -1)
    ]


def commit_history_of(commits: Sequence[Row], seconds: int) -> list[Row]:
    return [
        {
            **{name: row[name] for name in ("cluster", "group_id", "topic", "partition")},
            "at_ms": row["read_ms"] - 1_000 * ago,
            "committed_offset": max(
                0, int(row["committed_offset"] - ago * row["consumed_records_per_s"])
            ),
            "lag": max(0, int(row["lag"] - ago * row["lag_records_per_s"])),
            **{name: row[name] for name in ("consumed_records_per_s", "lag_records_per_s")},
            **{name: row[name] for name in ("end_offset", "time_to_clear_ms", "stuck_since_ms")},
        }
        for row in commits
        for ago in range(seconds, -1, -1)
    ]


def _partition(sizes: SyntheticSizes, topic: int, partition: int, at_ms: int) -> Row:
    number = topic * sizes.partitions + partition
    count = min(sizes.replicas, sizes.brokers)
    replicas = [FIRST_BROKER + (number + step) % sizes.brokers for step in range(count)]
    is_offline = sizes.offline_every > 0 and number % sizes.offline_every == 0
    end = 10_000 + 100 * number
    return {
        "cluster": CLUSTER,
        "topic": f"topic-{topic}",
        "partition": partition,
        "leader": -1 if is_offline else replicas[0],
        "leader_epoch": 3,
        "replicas": replicas,
        "isr": replicas[-1:] if is_offline else replicas,
        "adding_replicas": [],
        "removing_replicas": [],
        "min_isr": min(2, count),
        "log_start_offset": 0,
        "high_watermark": end,
        "log_end_offset": end,
        "size_bytes": 100 * end,
        "segments": 2,
        "segment_bytes": [60 * end, 40 * end],
        "segment_offsets": [0, end * 6 // 10],
        "in_records_per_s": 0.0 if is_offline else 10.0 + number,
        "in_bytes_per_s": 0.0 if is_offline else 1_000.0 + 100 * number,
        "out_bytes_per_s": 0.0 if is_offline else 500.0,
        "read_ms": at_ms,
    }


def _replicas(partition: Row) -> list[Row]:
    return [
        {
            **{name: partition[name] for name in ("cluster", "topic", "partition", "read_ms")},
            "broker": broker,
            "is_leader": broker == partition["leader"],
            "is_in_sync": broker in partition["isr"],
            "log_end_offset": partition["log_end_offset"],
            "size_bytes": partition["size_bytes"],
            "segments": partition["segments"],
            "follower_lag": 0,
        }
        for broker in partition["replicas"]
    ]


def _group(index: int, at_ms: int) -> Row:
    is_stuck = index % 3 == 2
    return {
        "cluster": CLUSTER,
        "group_id": f"group-{index}",
        "state": "Empty" if is_stuck else "Stable",
        "protocol": "" if is_stuck else "range",
        "members": 0 if is_stuck else 2,
        "read_ms": at_ms,
    }


def _commit(index: int, partition: Row, at_ms: int) -> Row:
    """Group 0 keeps up, 1 falls behind, 2 stands still, and so on round."""
    kind = index % 3
    end = partition["high_watermark"]
    lag = (0, 2_000, 5_000)[kind]
    rate = partition["in_records_per_s"]
    consumed = (rate, rate / 2, 0.0)[kind]
    return {
        **{name: partition[name] for name in ("cluster", "topic", "partition")},
        "group_id": f"group-{index}",
        "committed_offset": end - lag,
        "end_offset": end,
        "lag": lag,
        "commit_ms": at_ms - (600_000 if kind == 2 else 500),
        "member_id": None if kind == 2 else f"consumer-{partition['partition'] % 2}",
        "consumed_records_per_s": consumed,
        "lag_records_per_s": rate - consumed,
        "time_to_clear_ms": 0 if lag == 0 else None,
        "stuck_since_ms": at_ms - 600_000 if kind == 2 else None,
        "read_ms": at_ms - 100,
        "end_read_ms": at_ms,
    }


def _broker(sizes: SyntheticSizes, index: int, partitions: Sequence[Row], at_ms: int) -> Row:
    broker = FIRST_BROKER + index
    led = [row for row in partitions if row["leader"] == broker]
    held = [row for row in partitions if broker in row["replicas"]]
    return {
        "cluster": CLUSTER,
        "broker": broker,
        "host": "127.0.0.1",
        "port": 9092 + index,
        "rack": "abc"[index % 3],
        "is_fenced": False,
        "is_controller": index == 0,
        "broker_epoch": 10 + index,
        "replicas": len(held),
        "leaders": len(led),
        "size_bytes": sum(row["size_bytes"] for row in held),
        "in_bytes_per_s": sum(row["in_bytes_per_s"] for row in led),
        "out_bytes_per_s": sum(row["out_bytes_per_s"] for row in led),
        "disk_total_bytes": 100 << 30,
        "disk_usable_bytes": 60 << 30,
        "interval_ms": 1_000,
        "sampled_ms": at_ms,
        "read_ms": at_ms,
    }


def _health(at_ms: int) -> Row:
    return {
        "batch_id": 0,
        "batch_ms": 300,
        "records": 3,
        "bad_records": 0,
        "bad_records_total": 0,
        "lost_records_total": 0,
        "late_rounds_total": 0,
        "records_per_s": 3.0,
        "delay_ms": 700,
        "state_rows": 96,
        "newest_round_ms": at_ms,
        "written_ms": at_ms,
    }
