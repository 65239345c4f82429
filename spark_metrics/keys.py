"""Rows by their key, as numbers: a text is compared once, then every row is an integer. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_CODES_MAX: Final = 1 << 62


def key_codes(tables: Sequence[pa.Table], key: Sequence[str]) -> list[Any]:
    """A NumPy array for each table, with a number for each row.

    The number is the same for the same key in whichever of the tables, and numbers are in the
    order of the keys. What is unknown comes first.
    """
    codes = np.zeros(sum(table.num_rows for table in tables), np.int64)
    size = 1
    for name in key:
        each = _column_codes([table[name] for table in tables])
        width = int(each.max(initial=0)) + 1
        if size * width > _CODES_MAX:
            (codes, size), (each, width) = _dense(codes), _dense(each)
        codes, size = codes * width + each, size * width
    return np.split(codes, np.cumsum([table.num_rows for table in tables])[:-1])


def places_of(wanted: Any, known: Any) -> Any:
    """Where each wanted number is among the known ones, which are all different; -1: nowhere."""
    if len(wanted) == len(known) and bool((wanted == known).all()):
        return np.arange(len(wanted))
    if not len(known):
        return np.full(len(wanted), -1)
    order = np.argsort(known, kind="stable")
    places = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return np.where(known[places] == wanted, places, -1)


def sorted_by(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """The same rows in the order of this key; as they are where they lie so already."""
    if not key:
        return table
    (codes,) = key_codes([table], key)
    return in_order_of(table, codes)


def in_order_of(table: pa.Table, codes: Any) -> pa.Table:
    """The same rows in the order of a number for each; those of one number stay as they lie."""
    if bool((codes[1:] >= codes[:-1]).all()):
        return table
    return table.take(pa.array(np.argsort(codes, kind="stable")))


def coded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """The column as places in one dictionary of its different texts."""
    return column.unify_dictionaries().combine_chunks().dictionary_encode()


def _column_codes(columns: Sequence[pa.ChunkedArray]) -> Any:
    """A number per row of these columns end to end, from 0 on, in the order of values."""
    if pa.types.is_integer(columns[0].type):
        whole = np.concatenate([_integers(column) for column in columns])
        return whole - min(0, int(whole.min(initial=0)))
    chunks = [chunk.dictionary_encode() for column in columns for chunk in column.chunks]
    if not chunks:
        return np.zeros(0, np.int64)
    whole = coded(pa.chunked_array(chunks))
    ranks = np.empty(len(whole.dictionary), np.int64)
    ranks[pc.sort_indices(whole.dictionary).to_numpy()] = np.arange(1, len(ranks) + 1)
    places = pc.fill_null(whole.indices, -1).to_numpy()
    return np.append(ranks, 0)[places]


def _dense(codes: Any) -> tuple[Any, int]:
    """The same order in the least numbers, and how many there are."""
    found, places = np.unique(codes, return_inverse=True)
    return places.astype(np.int64), len(found)


def _integers(column: pa.ChunkedArray) -> Any:
    return pc.fill_null(column, -1).to_numpy().astype(np.int64)
