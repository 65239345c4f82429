"""Figures of a bucket, and the sums of all, become the tables of the store. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.metrics_schema import RANGE_PARTITIONS
from spark_metrics.arrow_tables import conform, one_array
from spark_metrics.figures.speed import DEAD_BAND_RECORDS_PER_S
from spark_metrics.fold.sums import GROUP_SUMS, STATUS_ORDER, Sums, with_known_rates
from spark_metrics.state.job_state import JobState
from spark_metrics.state.known_groups import RegisteredGroup
from spark_metrics.state.rounds import SourceKey
from spark_metrics.window.tables import BROKERS, GROUPS, REPLICAS
from spark_metrics.window.totals import stands_for_all

_KEY: Final = ("cluster", "topic", "partition")
_RATES: Final = ("in_bytes_per_s", "out_bytes_per_s")
HOT_PARTITIONS_MIN: Final = 3
"""A topic with fewer partitions has no partition that is hotter than the others."""
HOT_SIGMAS: Final = 2.0


def replica_table(partitions: pa.Table) -> pa.Table:
    """``REPLICAS`` of an answer: its members as rows."""
    rows = _listed(partitions, "members")
    owners = pc.list_parent_indices(one_array(partitions["members"]))
    figures = {
        # A partition that is offline is led by -1.
        "is_leader": pc.equal(rows["broker"], one_array(partitions["leader"]).take(owners)),
        "is_in_sync": one_array(partitions["in_sync"]).flatten(),
        "follower_lag": one_array(partitions["behind"]).flatten(),
    }
    for name, column in figures.items():
        rows = rows.append_column(name, column)
    # Who tells of an orphan holds no replica of it.
    is_own = pc.greater_equal(rows["broker"], 0)
    return conform(rows if pc.all(is_own).as_py() else rows.filter(is_own), REPLICAS)


def hot_flags(partitions: pa.Table) -> pa.Array:
    """Judge for each row whether its traffic is above mean + 2 sigma of its topic; null: cannot be
    said.

    Of a large topic a bucket has some ranges of partitions, and each is judged alone.
    One partition of ten can be at most three standard deviations above their mean, so in topics
    of four and fewer none can be hot (by population sigma at most 1.5 for three).
    """
    traffic = partitions["in_bytes_per_s"].to_numpy()
    ranges = pc.divide(partitions["partition"], RANGE_PARTITIONS).cast(pa.string())
    names = pc.binary_join_element_wise(
        partitions["cluster"], partitions["topic"], ranges, "\\0"
    ).combine_chunks()
    codes = names.dictionary_encode().indices.to_numpy()
    has_traffic = np.isfinite(traffic)
    size = int(codes.max(initial=-1)) + 1
    count = np.bincount(codes[has_traffic], minlength=size)
    total = np.bincount(codes[has_traffic], traffic[has_traffic], minlength=size)
    squares = np.bincount(codes[has_traffic], traffic[has_traffic] ** 2, minlength=size)
    with np.errstate(all="ignore"):
        mean = total / count
        sigma = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
        is_hot = traffic > (mean + HOT_SIGMAS * sigma)[codes]
    is_unknown = ~has_traffic | (count[codes] < HOT_PARTITIONS_MIN)
    return pa.array(is_hot & (traffic > 0), pa.bool_(), mask=is_unknown)


def broker_table(sums: Sums, memory: JobState) -> pa.Table:
    """``BROKERS``: every registered broker, those without any replica too."""
    nothing = {"replicas": 0, "leaders": 0, "in_bytes_per_s": 0.0, "out_bytes_per_s": 0.0}
    of_brokers = broker_sums(sums)
    rows = [
        {
            **nothing,
            **of_brokers.get(key, {"size_bytes": 0}),
            **asdict(broker),
            "interval_ms": source.interval_ms if source else None,
            "sampled_ms": source.newest_ms if source else None,
            "heard_ms": source.heard_ms if source else None,
            "clock_skew_ms": clock.skew_ms if clock else None,
        }
        for key, broker in sorted(memory.registry.items())
        for source, clock in ((memory.sources.get(key), memory.clocks.get(key)),)
    ]
    return _table(rows, BROKERS)


def broker_sums(sums: Sums) -> dict[SourceKey, dict[str, Any]]:
    """Sums of each broker: replicas assigned to it, leaders, bytes on its disk, rates of what it
    leads."""
    led = with_known_rates(sums.leaders, ("cluster", "leader"), "leaders")
    tables = (
        sums.assigned.rename_columns(["cluster", "broker", "replicas"]),
        led.rename_columns({"leader": "broker"}).select(["cluster", "broker", "leaders", *_RATES]),
        sums.held.rename_columns(["cluster", "broker", "size_bytes"]),
    )
    by_broker: dict[SourceKey, dict[str, Any]] = {}
    for row in (row for table in tables for row in table.to_pylist()):
        key = SourceKey(row.pop("cluster"), row.pop("broker"))
        by_broker.setdefault(key, {}).update(row)
    return by_broker


def group_table(groups: Iterable[RegisteredGroup], sums: Sums) -> pa.Table:
    """``GROUPS``: every group, with the sums and worst cases of its partitions."""
    of_groups = group_sums(sums)
    rows = [
        {
            "partitions": 0,
            **{name: getattr(group, name) for name in group.__dataclass_fields__},
            **of_groups.get((group.cluster, group.group_id), {}),
        }
        for group in groups
    ]
    return _table(rows, _GROUPS_STATE)


def group_sums(sums: Sums) -> dict[tuple[str, str], dict[str, Any]]:
    """Sums of each group: lag and what is lost of it, times of its worst partition, status; None
    where it is not known of all partitions, of rates where too few are known."""
    return {(row["cluster"], row["group_id"]): _group_sum(row) for row in sums.groups.to_pylist()}


def _clears_ms(lag: int | None, trend: float | None) -> int | None:
    if lag == 0:
        return 0
    falls = trend is not None and trend < -DEAD_BAND_RECORDS_PER_S
    return int(lag / -trend * 1000) if lag and trend and falls else None


_GROUPS_STATE: Final = pa.schema(
    [*GROUPS, pa.field("source", pa.int32()), pa.field("round_ms", pa.int64())]
)


def _group_sum(row: Mapping[str, Any]) -> dict[str, Any]:
    worst = row["worst_max"]
    # OK says so of all partitions, and of a group that has committed something.
    if not worst and (row["unjudged_any"] or not row["committed_offset_count"]):
        worst = None
    parts = row["has_lag_sum"] or 0
    figures: dict[str, Any] = {}
    for name in (*GROUP_SUMS, "time_lag_ms"):
        count = row[f"{name}_count"]
        is_known = stands_for_all(count, parts) if name.endswith("_per_s") else count == parts
        aggregate = "max" if name == "time_lag_ms" else "sum"
        figures[name] = row[f"{name}_{aggregate}"] if parts and is_known else None
    return {
        "partitions": row["committed_offset_count"],
        **figures,
        "time_to_clear_ms": _clears_ms(figures["lag"], figures["lag_records_per_s"]),
        "retention_risk_ms": row["retention_risk_ms_min"],
        "status": None if worst is None else STATUS_ORDER[worst],
        "history_ms": row["history_ms_min"],
        "committed_ms": row["commit_ms_max"],
    }


def decode_groups(table: pa.Table) -> list[RegisteredGroup]:
    """The registered groups that a file of ``group_table`` holds, of an older version too."""
    names = [it for it in RegisteredGroup.__dataclass_fields__ if it in table.column_names]
    rows = table.select(names).to_pylist()
    return [RegisteredGroup(**row) for row in rows]


def _listed(answer: pa.Table, name: str) -> pa.Table:
    """An array of structs as a table of its own, with the key of the row it was in."""
    whole = one_array(answer[name])
    owners = answer.select(_KEY).combine_chunks().take(pc.list_parent_indices(whole))
    rows = whole.flatten()
    fields = dict(zip((it.name for it in rows.type), rows.flatten(), strict=True))
    keys = {key: owners[key] for key in _KEY if key not in fields}
    return pa.table({**keys, **fields})


def _table(rows: Sequence[Mapping[str, Any]], schema: Any) -> pa.Table:
    columns = {item.name: [row.get(item.name) for row in rows] for item in schema}
    return pa.table(columns, schema=schema)
