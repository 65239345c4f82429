"""Arrow columns as NumPy arrays, and joins by number instead of by name.

A join first gives every topic a small number, the same in all tables, and packs (topic,
partition, broker) into one sorted 64-bit key; half a million replicas then take a few
milliseconds a step.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

BoolColumn = npt.NDArray[np.bool_]
FloatColumn = npt.NDArray[np.float64]
IntColumn = npt.NDArray[np.int64]

PARTITION_BITS: Final = 20
BROKER_BITS: Final = 16
"""Widths inside a joined key; 27 bits are left for the topic's code."""


def text_mask(column: pa.ChunkedArray, value: str) -> pa.ChunkedArray:
    """Which rows hold exactly this text; null is no."""
    return pc.fill_null(pc.equal(column, value), False)


def floats(column: pa.ChunkedArray) -> FloatColumn:
    """A column as float64, the nearest to numbers beyond 2**53; unknown is NaN."""
    array: FloatColumn = pc.cast(column, pa.float64(), safe=False).to_numpy()
    return array


def ints(column: pa.ChunkedArray, *, unknown: int = -1) -> IntColumn:
    """A column as int64, with a value of the caller's choice for unknown."""
    array: IntColumn = pc.fill_null(pc.cast(column, pa.int64()), unknown).to_numpy()
    return array


def list_lengths(column: pa.ChunkedArray) -> IntColumn:
    """Number of elements of each list; unknown counts as none."""
    array: IntColumn = ints(pc.list_value_length(column), unknown=0)
    return array


def exploded(column: pa.ChunkedArray) -> tuple[IntColumn, IntColumn]:
    """``(row, element)`` of every element of a column of integer lists, in order."""
    flat = column.combine_chunks()
    return ints(pc.list_parent_indices(flat)), ints(pc.list_flatten(flat))


def codes(*columns: pa.ChunkedArray) -> list[IntColumn]:
    """Small numbers instead of values, the same number for the same value in all columns."""
    value_type = columns[-1].type
    chunks = [chunk for column in columns for chunk in column.cast(value_type).chunks]
    together = pa.chunked_array(chunks, value_type).combine_chunks()
    numbers = ints(together.dictionary_encode().indices)
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    return list(np.split(numbers, cuts))


def partition_keys(*tables: pa.Table) -> list[IntColumn]:
    """One number per row for its (topic, partition), the same for the same in all tables."""
    topics = codes(*(table["topic"] for table in tables))
    return [
        (topic << PARTITION_BITS) + ints(table["partition"])
        for topic, table in zip(topics, tables, strict=True)
    ]


def look_up(wanted: IntColumn, present: IntColumn) -> IntColumn:
    """Row of each wanted key in ``present``, -1 where it is not there (the last among equals)."""
    if not present.size:
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(present, kind="stable")
    ranked = present[order]
    place = np.maximum(np.searchsorted(ranked, wanted, side="right") - 1, 0)
    return np.where(ranked[place] == wanted, order[place], -1)
