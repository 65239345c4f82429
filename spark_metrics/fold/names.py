"""Names of commits beside their figures. Pure.

Four texts say which commit a row is, and a fifth who owns it; no figure depends on what they are.
So the fold knows a commit, and its partition, by the number of its row, and copies and compares no
text for it. Names are places in dictionaries: they tell which rows of the state a step brings, and
are put to the figures again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.arrow_tables import with_column
from spark_metrics.keys import coded, key_codes, places_of
from spark_metrics.schema import CARRIED, FRESH_COMMITS, ROW, TEXT, TOLD

ID: Final = ("cluster", "group_id", "topic", "partition")
NAMES: Final = (*ID, "member_id")
_PARTITION: Final = ("cluster", "topic", "partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """The step's commits, row by row beside the state: known rows first, then new ones."""

    fresh: pa.Table
    """``schema.FRESH_COMMITS``."""
    ids: pa.Table
    """The commit of each row."""
    members: pa.ChunkedArray
    """The owner of each row as the step tells; behind them, at ``fresh.num_rows``, the owner so
    far."""


def aligned(rows: pa.Table, state_names: pa.Table, logs: pa.Table) -> Aligned:
    """The step's commits (one row for each, with ``alive_ms``) in the order of the state's.

    ``state_names``: ``names_of`` the state; ``logs``: the partitions, in the order of their file.
    """
    for name in (it for it in NAMES if it != "partition"):
        rows = with_column(rows, name, coded(rows[name]))
    places = places_of(*key_codes([rows, state_names], ID))
    is_new = places < 0
    places[is_new] = state_names.num_rows + np.arange(is_new.sum())
    count = state_names.num_rows + int(is_new.sum())
    ids = state_names.select(ID)
    if is_new.any():
        ids = pa.concat_tables([ids, rows.select(ID).filter(pa.array(is_new))])
    placed = _in_order(rows, places, count)
    log_rows = places_of(*key_codes([ids, logs], _PARTITION))
    new_members = pa.nulls(count - state_names.num_rows, TEXT)
    made: Mapping[str, Any] = {
        ROW: pa.array(np.arange(count), pa.int32()),
        "log_row": pa.array(log_rows, pa.int32(), mask=log_rows < 0),
        "told_owned": pc.is_valid(placed["member_id"]),
        **{name: placed[row] for name, row in TOLD.items()},
    }
    return Aligned(
        fresh=pa.table({name: made[name] for name in FRESH_COMMITS}),
        ids=ids,
        members=pa.chunked_array(
            [*placed["member_id"].chunks, *state_names["member_id"].chunks, new_members], TEXT
        ),
    )


def named(answer: pa.Table, beside: Aligned, carried: pa.Table) -> pa.Table:
    """The answer of ``newest_commits`` with its names and with what was carried past it.

    ``carried``: of ``newest_readings.Met``.
    """
    rows, count = answer[ROW].to_numpy(), beside.fresh.num_rows
    ids = beside.ids
    if len(rows) < count:
        ids, carried = (table.take(pa.array(rows)) for table in (ids, carried))
    is_told = carried["is_full"].to_numpy()
    members = beside.members.unify_dictionaries().combine_chunks()
    owners = members.take(pa.array(np.where(is_told, rows, count + rows)))
    columns = {name: coded(ids[name]) if name != "partition" else ids[name] for name in ID}
    columns |= {name: carried[name] for name in CARRIED}
    for name, column in {**columns, "member_id": owners}.items():
        answer = answer.append_column(name, column)
    return answer.drop_columns([ROW])


def names_of(state: pa.Table) -> pa.Table:
    """Names of the rows of the state, each text as a place in a dictionary."""
    return pa.table(
        {name: state[name] if name == "partition" else coded(state[name]) for name in NAMES}
    )


def _in_order(rows: pa.Table, places: Any, count: int) -> pa.Table:
    """The rows at their places; what has none is null."""
    source = np.full(count, -1)
    source[places] = np.arange(rows.num_rows)
    if np.array_equal(source, np.arange(rows.num_rows)):
        return rows
    return rows.take(pa.array(source, mask=source < 0))
