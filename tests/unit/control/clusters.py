"""Small clusters for tests: rows with sane defaults, so that a test names only what matters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from control.model.columns import IntColumn
from control.model.snapshot import ClusterSnapshot
from spark_metrics.window.tables import NOW_TABLES
from tests.support.store_builder import table_of

NOW_MS = 1_790_000_000_000
MIB = 1024 * 1024


def broker(broker_id: int, **known: Any) -> dict[str, Any]:
    return {
        "cluster": "c",
        "broker": broker_id,
        "host": "127.0.0.1",
        "port": 9092,
        "is_fenced": False,
        "is_controller": False,
        "interval_ms": 1_000,
        "sampled_ms": NOW_MS,
        "read_ms": NOW_MS,
        **known,
    }


def log_dir(path: str, **known: Any) -> dict[str, Any]:
    """An open one of a broker that does not tell its disk."""
    return {
        "path": path,
        "total_bytes": None,
        "usable_bytes": None,
        "size_bytes": 0,
        "replicas": 0,
        "is_cordoned": False,
        "is_failed": False,
        **known,
    }


def partition(topic: str, number: int, replicas: Sequence[int], **known: Any) -> dict[str, Any]:
    return {
        "cluster": "c",
        "topic": topic,
        "partition": number,
        "leader": replicas[0],
        "replicas": list(replicas),
        "isr": list(replicas),
        "adding_replicas": [],
        "removing_replicas": [],
        "min_isr": 1,
        "log_start_offset": 0,
        "high_watermark": 100,
        "log_end_offset": 100,
        "size_bytes": MIB,
        "segments": 1,
        "in_records_per_s": 10.0,
        "in_bytes_per_s": 1_000.0,
        "out_bytes_per_s": 500.0,
        "read_ms": NOW_MS,
        **known,
    }


def commit(group: str, topic: str, number: int, **known: Any) -> dict[str, Any]:
    return {
        "cluster": "c",
        "group_id": group,
        "topic": topic,
        "partition": number,
        "committed_offset": 90,
        "end_offset": 100,
        "lag": 10,
        "commit_ms": NOW_MS,
        "consumed_records_per_s": 10.0,
        "lag_records_per_s": 0.0,
        "read_ms": NOW_MS,
        "end_read_ms": NOW_MS,
        **known,
    }


def group(name: str, **known: Any) -> dict[str, Any]:
    row = {"state": "Stable", "protocol": "range", "members": 1, "read_ms": NOW_MS}
    return {"cluster": "c", "group_id": name, **row, **known}


def replica(topic: str, number: int, broker_id: int, **known: Any) -> dict[str, Any]:
    return {
        "cluster": "c",
        "topic": topic,
        "partition": number,
        "broker": broker_id,
        "size_bytes": MIB,
        "read_ms": NOW_MS,
        **known,
    }


def tables(**rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {name: table_of(rows.get(name, ()), NOW_TABLES[name]) for name in NOW_TABLES}


def snapshot(**rows: Sequence[dict[str, Any]]) -> ClusterSnapshot:
    return ClusterSnapshot.from_tables(tables(**rows))


def np_ints(values: Sequence[int]) -> IntColumn:
    return np.array(values, dtype=np.int64)
