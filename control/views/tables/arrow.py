"""Helpers that build the Arrow tables behind the lists."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import FloatColumn, ints
from control.model.status import INTERNAL_PREFIX, UNJUDGED

INTERNAL: Final = "is_internal"
"""Sorts topics of bookkeeping behind the others."""


def partition_names(table: pa.Table) -> pa.ChunkedArray:
    """``orders-7``: topic and partition of each row."""
    return pc.binary_join_element_wise(table["topic"], pc.cast(table["partition"], "string"), "-")


def nullable(values: FloatColumn) -> pa.Array:
    """Numbers as Arrow has them; NaN becomes null."""
    return pa.array(values, pa.float64(), from_pandas=True)


def with_columns(table: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """The table with these columns, in the place of those that it has under such names."""
    kept = table.drop_columns([name for name in columns if name in table.column_names])
    for name, values in columns.items():
        kept = kept.append_column(name, values)
    return kept


def whole(
    grouped: pa.Table,
    name: str,
    how: str,
    parts: Any,
    is_whole: Callable[[Any, Any], Any] = operator.eq,
) -> pa.Array:
    """Column ``<name>_<how>`` of an aggregate; null where too few of the ``parts`` of each row are
    known, or where it has none."""
    told, parts = ints(grouped[f"{name}_count"], unknown=0), ints(parts, unknown=0)
    is_known = is_whole(told, parts) & (parts > 0)
    return pc.if_else(pa.array(is_known), grouped[f"{name}_{how}"], None)


def sorted_by(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """By these columns; with ``-`` in front: descending. What is not known comes last."""
    names = {key: key.removeprefix("-") for key in keys}
    known = with_columns(table, {INTERNAL: pc.starts_with(table["topic"], INTERNAL_PREFIX)})
    order = [(name, "ascending" if name == key else "descending") for key, name in names.items()]
    return table.take(pc.sort_indices(known, sort_keys=order)).combine_chunks()


def judged_ranks(ranks: Any, words: pa.Array) -> pa.Array:
    """Sort key of statuses; null without a verdict, so that they come last."""
    place = pc.index_in(words, pa.array(list(UNJUDGED)))
    return pc.if_else(pc.is_null(place), pc.cast(pa.array(ranks), pa.int64()), None)


def led_by(leaders: Any) -> pa.Array:
    """Sort key of leaders; null: no leader."""
    return pa.array(leaders, pa.int64(), mask=np.asarray(leaders) < 0)
