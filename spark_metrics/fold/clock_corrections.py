"""Rows of the state that were read before a clock was found to be behind. Pure.

A clock that is behind is known only after some batches (``state.source_clocks``). What was read
from it until then has times that are too early: a rate from there to now spans the difference, too.
So its times are set right. Commits of then were also paired with end offsets that are too old:
their speeds and trends begin anew.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.arrow_tables import lists_of, with_column
from spark_metrics.keys import coded
from spark_metrics.state.source_clocks import Correction

_TIMES: Final = (
    *("read_ms", "commit_ms", "first_ms", "still_since_ms", "moved_ms", "rewind_ms", "alive_ms"),
    *("wait_a_ms", "wait_a_commit_ms", "wait_b_ms", "wait_b_commit_ms"),
)
"""Times by the coordinator's clock."""
_ANCHORS: Final = (
    *("speed_a_ms", "speed_a_offset", "speed_a_lag", "speed_b_ms", "speed_b_offset"),
    *("speed_b_lag", "trend_a_ms", "trend_a_lag", "trend_b_ms", "trend_b_lag"),
    *("moved_lag", "lag_growth_per_s"),
)
_REACHED: Final = ("reached_ms", "reached_error_ms")
"""Times by the clock of a leader, which the row does not name."""
_NEWEST: Final = ("wait_b_ms", "wait_a_ms", "read_ms")


def corrected_commits(state: pa.Table, corrections: Sequence[Correction]) -> pa.Table:
    """The state of commits (``schema.COMMIT_STATE`` and names) after these corrections."""
    if not corrections or not state.num_rows:
        return state
    newest = pc.coalesce(*(state[name] for name in _NEWEST))
    early_ms = _early_ms(state["cluster"], state["source"], newest, corrections)
    state = _without(state, _ANCHORS, pa.array(early_ms > 0))
    clusters = pa.array(sorted({it.source.cluster for it in corrections}))
    state = _without(state, _REACHED, pc.is_in(state["cluster"].cast(pa.string()), clusters))
    return _later(state, _TIMES, early_ms)


def _without(rows: pa.Table, names: Sequence[str], condition: Any) -> pa.Table:
    """The rows, and of some of them these columns unknown."""
    for name in names:
        nothing = pa.scalar(None, rows[name].type)
        rows = with_column(rows, name, pc.if_else(condition, nothing, rows[name]))
    return rows


def corrected_partitions(rows: pa.Table, corrections: Sequence[Correction]) -> pa.Table:
    """The state of partitions (``schema.PARTITION_STATE``) after these corrections."""
    if not corrections or not rows.num_rows:
        return rows
    view_ms = _early_ms(rows["cluster"], rows["view_broker"], rows["view_ms"], corrections)
    log_ms = _early_ms(rows["cluster"], rows["log_broker"], rows["read_ms"], corrections)
    rows = _later(_later(rows, ("view_ms",), view_ms), ("read_ms",), log_ms)
    for name, field in (("ends", "read_ms"), ("points", "ms"), ("log_starts", "ms")):
        rows = with_column(rows, name, _later_items(rows[name].combine_chunks(), field, log_ms))
    return rows


def _early_ms(clusters: Any, brokers: Any, read_ms: Any, corrections: Sequence[Correction]) -> Any:
    """Milliseconds by which the times of each row are too early; 0: they are right."""
    names = coded(clusters)
    codes = names.indices.to_numpy()
    sources = pc.fill_null(brokers, -1).to_numpy()
    newest_ms = pc.fill_null(read_ms, 0).to_numpy()
    early_ms = np.zeros(len(codes), np.int64)
    for it in corrections:
        code = names.dictionary.index(it.source.cluster).as_py()
        is_of = (codes == code) & (sources == it.source.broker) & (newest_ms < it.until_ms)
        early_ms[is_of] = it.by_ms
    return early_ms


def _later(rows: pa.Table, names: Sequence[str], by_ms: Any) -> pa.Table:
    """The rows with these times later by so much."""
    for name in names:
        rows = with_column(rows, name, pc.add(rows[name], pa.array(by_ms)))
    return rows


def _later_items(lists: pa.ListArray, field: str, by_ms: Any) -> pa.ListArray:
    """The same for a field of the structs in each row's list."""
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return lists_of(_later_field(lists.flatten(), field, np.repeat(by_ms, counts)), counts)


def _later_field(structs: pa.StructArray, field: str, by_ms: Any) -> pa.StructArray:
    names = [it.name for it in structs.type]
    values = [structs.field(name) for name in names]
    place = names.index(field)
    values[place] = pc.add(values[place], pa.array(by_ms))
    return pa.StructArray.from_arrays(values, names)
