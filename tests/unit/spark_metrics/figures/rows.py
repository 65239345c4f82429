"""Rows for property tests of figures: drawn one by one, computed as columns."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from spark_metrics.figures.column import Column
from spark_metrics.figures.lists import Lists

Row = dict[str, Any]


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def rows_of(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Row]]:
    """Some rows, each with all of these fields."""
    return st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=12)


def falling(values: st.SearchStrategy[int], most: int) -> st.SearchStrategy[list[int]]:
    """Different numbers, the greatest first."""
    return st.lists(values, max_size=most, unique=True).map(lambda it: sorted(it, reverse=True))


def longs(rows: Sequence[Row], name: str) -> Column:
    return Column(pa.array([row[name] for row in rows], pa.int64()))


def floats(rows: Sequence[Row], name: str) -> Column:
    return Column(pa.array([row[name] for row in rows], pa.float64()))


def flags(rows: Sequence[Row], name: str) -> Column:
    return Column(pa.array([row[name] for row in rows], pa.bool_()))


def lists(rows: Sequence[Row], name: str) -> Lists:
    return Lists.of(pa.array([row[name] for row in rows], pa.list_(pa.int64())))


def listed(column: Column) -> list[Any]:
    found: list[Any] = column.values.to_pylist()
    return found
