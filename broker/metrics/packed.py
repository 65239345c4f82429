"""Columns as bytes: what a version 3 record holds behind its two lines of JSON.

A column of numbers is the least of them and, of each row, how much more it is, in as few bytes as
the largest needs (1, 2, 4 or 8; none where all are the same), little-endian. The second line of
JSON tells in which order columns follow each other, and holds the dictionaries:

    {"replicas_columns":{"rows":2,"bytes":3,"topics":["orders"],
      "columns":[["topic",0,0],["partition",1,0],["isr",0,0,true],…]}}

A column marked ``true`` has unknown values: a byte for each row tells which are known (1), and only
those have numbers. A column of lists is the lengths of its rows' lists and then, as ``NAME[]``,
what is in them.
"""

import sys
from array import array
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import accumulate, pairwise
from typing import Any, Final

from broker.metrics.columns import NESTED, TEXTS

CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""Bytes of a number, and what ``array`` calls such numbers."""
ITEMS: Final = "[]"
DICTIONARIES: Final = {"lists", *(name for names in TEXTS.values() for name in names.values())}


def pack(columns: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Packs the columns of ``broker.metrics.columns.to_columns`` as a layout and bytes."""
    layout: dict[str, Any] = {"rows": len(columns["partition"])}
    packed = bytearray()
    order: list[list[Any]] = []
    for name, values in columns.items():
        if name in DICTIONARIES:
            layout[name] = values
            continue
        if name in NESTED:
            lengths = [None if it is None else len(it) for it in values]
            order.append([name, *_append(packed, lengths)])
            items = [number for it in values if it is not None for number in it]
            order.append([f"{name}{ITEMS}", *_append(packed, items)])
        else:
            order.append([name, *_append(packed, values)])
    return {**layout, "bytes": len(packed), "columns": order}, bytes(packed)


def parts_of(
    layouts: Mapping[str, Mapping[str, Any]], packed: bytes | memoryview
) -> dict[str, tuple[Mapping[str, Any], bytes | memoryview]]:
    """Each layout with its bytes, of what a record holds one after the other."""
    sizes = [layout["bytes"] for layout in layouts.values()]
    ends = [0, *accumulate(sizes)]
    if ends[-1] != len(packed) or min(sizes, default=0) < 0:
        raise ValueError("other bytes than columns")
    each = (packed[begin:end] for begin, end in pairwise(ends))
    return dict(zip(layouts, zip(layouts.values(), each, strict=True), strict=True))


def unpack(layout: Mapping[str, Any], packed: bytes | memoryview) -> dict[str, Any]:
    """Inverse of ``pack``.

    Raises:
        ValueError, TypeError, LookupError: these are no such columns.
    """
    columns: dict[str, Any] = {name: layout[name] for name in DICTIONARIES if name in layout}
    rest = BytesIO(packed)
    for name, size, least, *has_unknown in layout["columns"]:
        if name.endswith(ITEMS):
            lengths = columns[name.removesuffix(ITEMS)]
            items = _numbers(rest, sum(it or 0 for it in lengths), size, least)
            ends = [0, *accumulate(it or 0 for it in lengths)]
            lists = (items[begin:end] for begin, end in pairwise(ends))
            columns[name.removesuffix(ITEMS)] = [
                None if length is None else each
                for length, each in zip(lengths, lists, strict=True)
            ]
            continue
        known = _bytes(rest, layout["rows"]) if has_unknown else bytes([1]) * layout["rows"]
        numbers = iter(_numbers(rest, sum(known), size, least))
        columns[name] = [next(numbers) if is_known else None for is_known in known]
    return columns


def _append(packed: bytearray, values: Sequence[int | None]) -> tuple[Any, ...]:
    """Add a column; its size and least value, and whether some are unknown."""
    known = [value for value in values if value is not None]
    has_unknown = len(known) < len(values)
    if has_unknown:
        packed += bytes(value is not None for value in values)
    least = min(known, default=0)
    most = max(known, default=0) - least
    size = next(size for size in (0, *CODES) if most < 1 << 8 * size)
    if size:
        numbers = array(CODES[size], [value - least for value in known] if least else known)
        packed += _little(numbers).tobytes()
    return (size, least, True) if has_unknown else (size, least)


def _numbers(rest: BytesIO, count: int, size: int, least: int) -> list[int]:
    if not size:
        return [least] * count
    numbers = array(CODES[size], _bytes(rest, count * size))
    return [least + number for number in _little(numbers)]


def _bytes(rest: BytesIO, count: int) -> bytes:
    found = rest.read(count)
    if len(found) < count:
        raise ValueError("fewer bytes than columns")
    return found


def _little(numbers: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
