"""Sums of a bucket's figures by topic, broker and group, which add up to those of all. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.arrow_tables import one_array, with_column
from spark_metrics.window.totals import aggregated, has_lag, stands_for_all

RATES: Final = ("in_records_per_s", "in_bytes_per_s", "out_bytes_per_s")
STATUS_ORDER: Final = ("OK", "WARN", "REWIND", "STOP", "STALL", "BEYOND")
"""Mildest first; a group's status is the worst of its partitions."""
GROUP_SUMS: Final = ("lag", "lost_records", "lag_records_per_s", "consumed_records_per_s")
_OF_COMMITS: Final = [
    *("cluster", "group_id", "committed_offset", "end_offset", "commit_ms"),
    *("retention_risk_ms", "history_ms", "status", "time_lag_ms", *GROUP_SUMS),
]
_OF_GROUPS: Final = (
    *(("committed_offset", "count"), ("has_lag", "sum"), ("unjudged", "any")),
    *((name, "sum") for name in GROUP_SUMS),
    *((name, "count") for name in (*GROUP_SUMS, "time_lag_ms")),
    *((name, "max") for name in ("time_lag_ms", "worst", "commit_ms")),
    *((name, "min") for name in ("retention_risk_ms", "history_ms")),
)
_OF_LED: Final = (
    ([], "count_all"),
    ("size_bytes", "sum"),
    *((name, how) for name in RATES for how in ("sum", "count")),
)
_TOGETHER: Final = {"count": "sum", "all": "sum"}
"""How parts of an aggregate become one where it is not by itself again, by its last word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Small tables whose columns are ``<name>_<aggregate>`` beside their key."""

    topics: pa.Table
    """Partitions by cluster and topic."""
    leaders: pa.Table
    """Partitions by cluster and leader."""
    assigned: pa.Table
    """Number of assigned replicas by cluster and broker."""
    held: pa.Table
    """Bytes of replicas by cluster and broker."""
    groups: pa.Table
    """Commits by cluster and group_id."""


_KEYS: Final = {
    "topics": ("cluster", "topic"),
    "leaders": ("cluster", "leader"),
    "assigned": ("cluster", "broker"),
    "held": ("cluster", "broker"),
    "groups": ("cluster", "group_id"),
}


def sums_of(partitions: pa.Table, replicas: pa.Table, commits: pa.Table) -> Sums:
    """The sums of these tables (``tables.PARTITIONS``, ``REPLICAS`` and ``COMMITS``)."""
    whole = one_array(partitions["replicas"])
    owners = one_array(partitions["cluster"]).take(pc.list_parent_indices(whole))
    assigned = pa.table({"cluster": owners, "broker": whole.flatten()})
    led = partitions.select(["cluster", "topic", "leader", "size_bytes", *RATES])
    held = replicas.select(["cluster", "broker", "size_bytes"])
    return Sums(
        topics=_aggregated(led, "topics", _OF_LED),
        leaders=_aggregated(led, "leaders", _OF_LED),
        assigned=_aggregated(assigned, "assigned", [([], "count_all")]),
        held=_aggregated(held, "held", [("size_bytes", "sum")]),
        groups=_group_sums(commits),
    )


def added_sums(parts: Sequence[Sums]) -> Sums:
    """The sums of all parts."""
    if len(parts) == 1:
        return parts[0]
    return Sums(
        **{
            it.name: added([getattr(part, it.name) for part in parts], _KEYS[it.name])
            for it in fields(Sums)
        }
    )


def added(parts: Sequence[pa.Table], key: Sequence[str]) -> pa.Table:
    """Tables of aggregates as one, by this key, which may be coarser than theirs."""
    whole = pa.concat_tables(parts)
    names = [name for name in whole.column_names if _how(name)]
    sums = aggregated(whole, list(key), [(name, _how(name)) for name in names])
    kept = {it: sums[it] for it in key}
    return pa.table({**kept, **{name: sums[f"{name}_{_how(name)}"] for name in names}})


def with_known_rates(sums: pa.Table, key: Sequence[str], count: str) -> pa.Table:
    """The number of partitions by key (as ``count``), their bytes and rates; null where too few
    rates are known to stand for all."""
    columns = {name: sums[name] for name in key}
    columns |= {count: sums["count_all"], "size_bytes": sums["size_bytes_sum"]}
    parts = sums["count_all"].to_numpy()
    for name in RATES:
        is_known = stands_for_all(sums[f"{name}_count"].to_numpy(), parts)
        whole = sums[f"{name}_sum"]
        columns[name] = pc.if_else(pa.array(is_known), whole, pa.scalar(None, whole.type))
    return pa.table(columns)


def _group_sums(commits: pa.Table) -> pa.Table:
    whole = commits.select(_OF_COMMITS).unify_dictionaries()
    inside = has_lag(whole)
    for name in (*GROUP_SUMS, "time_lag_ms"):
        whole = with_column(whole, name, pc.if_else(inside, whole[name], None))
    further = {
        "worst": pc.index_in(whole["status"], pa.array(STATUS_ORDER)),
        "has_lag": inside,
        "unjudged": pc.is_null(whole["status"]),
    }
    for name, column in further.items():
        whole = whole.append_column(name, column)
    return _aggregated(whole, "groups", _OF_GROUPS)


def _aggregated(rows: pa.Table, of: str, wanted: Sequence[Any]) -> pa.Table:
    """The aggregates by key; texts that are places in a dictionary come out as texts."""
    sums = aggregated(rows, list(_KEYS[of]), wanted)
    plain = pa.schema(
        [(it.name, pa.string() if pa.types.is_dictionary(it.type) else it.type)
         for it in sums.schema]
    )  # fmt: skip
    return sums.cast(plain)


def _how(name: str) -> str:
    """How parts of this column are added up; empty: it is of the key."""
    last = name.rpartition("_")[2]
    return _TOGETHER.get(last, last if last in ("sum", "max", "min", "any") else "")
