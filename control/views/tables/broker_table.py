"""The table of brokers: what the store says of each, and what it carries."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import FloatColumn, floats
from control.model.health import Evidence
from control.model.load import BrokerLoads
from control.model.status import BROKER_SEVERITIES

_KEPT: Final = ("broker", "host", "port", "rack", "is_fenced", "is_controller", "interval_ms")


def broker_table(evidence: Evidence) -> pa.Table:
    """One row per registered broker, by id.

    Loads are counted from the assignment (so that a planned one can be shown beside the present
    one); disk and age come from the broker's own samples.
    """
    store = evidence.snapshot.brokers.sort_by("broker").combine_chunks()
    total, usable = floats(store["disk_total_bytes"]), floats(store["disk_usable_bytes"])
    with np.errstate(divide="ignore", invalid="ignore"):
        disk = np.where(total > 0, (total - usable) / total * 100.0, np.nan)
    columns = {name: store[name] for name in _KEPT}
    statuses = _statuses(store, evidence.freshness.silent)
    columns |= {
        "name": pa.array([f"broker {item}" for item in store["broker"].to_pylist()], pa.string()),
        "status": statuses,
        "status_rank": pc.index_in(statuses, pa.array(list(BROKER_SEVERITIES))),
        "disk_total_bytes": store["disk_total_bytes"],
        "disk_percent": _nullable(disk),
        "age_ms": _nullable(np.maximum(evidence.now_ms - floats(store["sampled_ms"]), 0.0)),
        **load_columns(evidence.loads),
        "full_ms": _nullable(_full_ms(evidence, floats(store["disk_usable_bytes"]))),
    }
    return pa.table(columns)


def _statuses(store: pa.Table, silent: frozenset[int]) -> pa.Array:
    is_silent = pc.is_in(store["broker"], pa.array(sorted(silent), pa.int32()))
    named = pc.list_value_length(pc.split_pattern(store["cordoned_log_dirs"], ","))
    is_cordoned = pc.and_(
        pc.not_equal(store["cordoned_log_dirs"], ""), pc.greater_equal(named, store["log_dirs"])
    )
    alive = pc.if_else(pc.fill_null(is_cordoned, False), "cordoned", "alive")
    return pc.if_else(store["is_fenced"], "fenced", pc.if_else(is_silent, "silent", alive))


def _full_ms(evidence: Evidence, usable: FloatColumn) -> FloatColumn:
    """When each broker's disk is full at the earliest: what is free over what is written to all
    its replicas. Retention, which makes room meanwhile, is not counted."""
    placed, brokers = evidence.placement, evidence.loads.brokers
    rates = floats(evidence.snapshot.partitions["in_bytes_per_s"])[placed.row]
    is_known = np.isin(placed.broker, brokers) & ~np.isnan(rates)
    place = np.searchsorted(brokers, placed.broker[is_known])
    written = np.bincount(place, weights=rates[is_known], minlength=len(brokers))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(
            written > 0, usable / written * 1000.0, np.where(usable > 0, np.inf, np.nan)
        )


def load_columns(loads: BrokerLoads) -> dict[str, pa.Array]:
    """The loads as columns, in order of broker ids."""
    return {
        "replicas": _nullable(loads.replicas),
        "leaders": _nullable(loads.leaders),
        "size_bytes": _nullable(loads.size_bytes),
        "is_estimated": pa.array(loads.is_estimated),
        "in_bytes_per_s": _nullable(loads.in_bytes_per_s),
        "out_bytes_per_s": _nullable(loads.out_bytes_per_s),
        "skew_percent": _nullable(loads.skew_percent("size_bytes")),
    }


def _nullable(values: FloatColumn) -> pa.Array:
    return pa.array(values, pa.float64(), from_pandas=True)
