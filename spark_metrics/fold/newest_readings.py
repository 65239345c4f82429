"""Lays a step's commits beside the state, and finds the newest reading of each. Pure.

Which of two readings is the newer, and who told it, is judged here, for all rows at once. The
figures are computed by ``spark_metrics.fold.commits``.
"""

from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.schema import CARRIED, COMMIT_STATE, MET_COMMITS, READING_OF

_EARLIER: Final = ("wait_b", "wait_a")
"""Readings that wait, the newest first."""


class Met(NamedTuple):
    """Rows of commits, as the fold sees them, and what it does not change."""

    rows: pa.Table
    """``schema.MET_COMMITS``, without what was never told in full."""
    carried: pa.Table
    """``schema.CARRIED``, row by row as the step's rows lie, and whether each ``is_full``: told in
    full by the step, and newer than what was known."""


def with_newest(fresh: pa.Table, state: pa.Table) -> Met:
    """``schema.FRESH_COMMITS`` beside the state, whose rows are the first of them."""
    step = {name: fresh[name] for name in fresh.column_names}
    held = {item.name: _held(state, item, fresh.num_rows) for item in pa.schema(COMMIT_STATE)}
    newest = {field: _newest(held, field) for field in READING_OF}
    is_full = pc.and_kleene(
        pc.is_valid(step["told_ms"]), _or_true(pc.greater_equal(step["told_ms"], newest["ms"]))
    )
    known_ms = _greatest(step["told_ms"], newest["ms"])
    is_same = pc.and_kleene(
        pc.greater(step["again_ms"], known_ms),
        pc.greater_equal(_greatest(step["told_ms"], held["full_ms"]), step["since_ms"]),
    )
    is_same = pc.fill_null(is_same, False)
    is_new = pc.and_(is_full, _or_true(pc.greater(step["told_ms"], newest["ms"])))
    brings = pc.or_(is_same, is_new)
    takes = pc.and_(brings, is_full)
    carried = {
        "source": pc.if_else(is_full, step["told_source"], held["source"]),
        "round_ms": _greatest(
            step["again_round_ms"], pc.if_else(is_full, step["told_round_ms"], held["round_ms"])
        ),
        "full_ms": pc.if_else(is_full, step["told_ms"], held["full_ms"]),
        "is_owned": pc.if_else(is_full, step["told_owned"], held["is_owned"]),
        "told_lag": pc.if_else(is_full, step["new_lag"], held["told_lag"]),
        "alive_ms": pc.coalesce(step["told_alive_ms"], held["alive_ms"]),
    }
    at_ms = pc.if_else(is_same, step["again_ms"], step["told_ms"])
    given = {
        **step,
        **held,
        **carried,
        "brings": brings,
        "newest_ms": pc.if_else(brings, at_ms, newest["ms"]),
        "newest_offset": pc.if_else(takes, step["told_offset"], newest["offset"]),
        "newest_commit_ms": pc.if_else(takes, step["told_commit_ms"], newest["commit_ms"]),
    }
    rows = pa.table({name: given[name] for name in MET_COMMITS})
    was_told = pc.is_valid(carried["full_ms"])
    if not pc.all(was_told, min_count=0).as_py():
        rows = rows.filter(was_told)
    beside = pa.table({**{name: carried[name] for name in CARRIED}, "is_full": is_full})
    return Met(rows=rows, carried=beside)


def _held(state: pa.Table, item: pa.Field, count: int) -> pa.ChunkedArray:
    """A column of the state, null for new rows."""
    values = state[item.name].cast(item.type)
    return pa.chunked_array([*values.chunks, pa.nulls(count - state.num_rows, item.type)])


def _newest(held: dict[str, Any], field: str) -> Any:
    """A field of the newest reading: one that waits, or where none does, the paired one."""
    reading = held[READING_OF[field]]
    for name in reversed(_EARLIER):
        waits = held[f"{name}_ms"]
        if waits.null_count < len(waits):
            reading = pc.if_else(pc.is_valid(waits), held[f"{name}_{field}"], reading)
    return reading


def _greatest(one: Any, other: Any) -> Any:
    """The greater; of one that is unknown, the other."""
    return pc.max_element_wise(one, other)


def _or_true(condition: Any) -> Any:
    return pc.fill_null(condition, True)
