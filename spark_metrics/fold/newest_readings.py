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
    told = {name: fresh[name] for name in fresh.column_names}
    held = {item.name: _held(state, item, fresh.num_rows) for item in pa.schema(COMMIT_STATE)}
    newest = {field: _newest(held, field) for field in READING_OF}
    is_full = pc.and_kleene(
        pc.is_valid(told["told_ms"]), _or_true(pc.greater_equal(told["told_ms"], newest["ms"]))
    )
    known_ms = _greatest(told["told_ms"], newest["ms"])
    is_same = pc.and_kleene(
        pc.greater(told["again_ms"], known_ms),
        pc.greater_equal(_greatest(told["told_ms"], held["full_ms"]), told["since_ms"]),
    )
    is_same = pc.fill_null(is_same, False)
    is_new = pc.and_(is_full, _or_true(pc.greater(told["told_ms"], newest["ms"])))
    brings = pc.or_(is_same, is_new)
    takes = pc.and_(brings, is_full)
    carried = {
        "source": pc.if_else(is_full, told["told_source"], held["source"]),
        "round_ms": _greatest(
            told["again_round_ms"], pc.if_else(is_full, told["told_round_ms"], held["round_ms"])
        ),
        "full_ms": pc.if_else(is_full, told["told_ms"], held["full_ms"]),
        "is_owned": pc.if_else(is_full, told["told_owned"], held["is_owned"]),
        "told_lag": pc.if_else(is_full, told["new_lag"], held["told_lag"]),
        "alive_ms": pc.coalesce(told["told_alive_ms"], held["alive_ms"]),
    }
    at_ms = pc.if_else(is_same, told["again_ms"], told["told_ms"])
    given = {
        **told,
        **held,
        **carried,
        "brings": brings,
        "newest_ms": pc.if_else(brings, at_ms, newest["ms"]),
        "newest_offset": pc.if_else(takes, told["told_offset"], newest["offset"]),
        "newest_commit_ms": pc.if_else(takes, told["told_commit_ms"], newest["commit_ms"]),
    }
    rows = pa.table({name: given[name] for name in MET_COMMITS})
    was_told = pc.is_valid(carried["full_ms"])
    if not pc.all(was_told, min_count=0).as_py():
        rows = rows.filter(was_told)
    beside = pa.table({**{name: carried[name] for name in CARRIED}, "is_full": is_full})
    return Met(rows=rows, carried=beside)


def _held(state: pa.Table, item: pa.Field, count: int) -> pa.ChunkedArray:
    """A column of the state, null for new rows."""
    known = state[item.name].cast(item.type)
    return pa.chunked_array([*known.chunks, pa.nulls(count - state.num_rows, item.type)])


def _newest(held: dict[str, Any], field: str) -> Any:
    """A field of the newest reading: one that waits, or where none does, the paired one."""
    found = held[READING_OF[field]]
    for name in reversed(_EARLIER):
        waits = held[f"{name}_ms"]
        if waits.null_count < len(waits):
            found = pc.if_else(pc.is_valid(waits), held[f"{name}_{field}"], found)
    return found


def _greatest(one: Any, other: Any) -> Any:
    """The greater; of one that is unknown, the other."""
    return pc.max_element_wise(one, other)


def _or_true(condition: Any) -> Any:
    return pc.fill_null(condition, True)
