"""Bodies of version 3 as Arrow columns, pure: bytes are laid end to end and read as numbers.

A record that is not as it should be is bad as a whole: half a column would shift all its rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker.metrics.columns import LISTS, NESTED, NUMBERS, TEXTS
from broker.metrics.packed import CODES, ITEMS, parts_of
from spark_metrics.arrow_tables import lists_of
from spark_metrics.decode.checks import (
    RECORD_ITEMS_MAX,
    RECORD_ROWS_MAX,
    UNREADABLE,
    holds_too_much,
    json_object,
    names,
    whole,
)
from spark_metrics.window.totals import LONG_MAX

_TIMES: Final = ("read_ms", "since_ms")
_SPAN_MS_MAX: Final = 1 << 61
"""The longest span of a time from the begin of its round, to which it is added."""
_KINDS: Final = {size: np.dtype(f"<u{size}") for size in CODES}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of one record, as its bytes have it."""

    count: int
    more: Any
    """NumPy array of the numbers that are known, less ``least``; None: all are ``least``."""
    least: int
    known: Any = None
    """NumPy array, which rows are known; None: all."""

    def is_within(self, most: int) -> bool:
        """Whether no number is further from 0."""
        greatest = self.least + (0 if self.more is None else int(self.more.max(initial=0)))
        return -most <= self.least and greatest <= most

    def numbers(self) -> Any:
        """A number for each row, 0 where it is unknown."""
        found = np.zeros(self.count, np.int64)
        self.put(found)
        return found

    def put(self, into: Any, further: int = 0) -> None:
        """Write the numbers, and ``further`` more, to their place in the column of all records."""
        least = self.least + further
        if self.known is not None:
            into[self.known] = least if self.more is None else self.more.astype(np.int64) + least
        elif self.more is None:
            into[:] = least
        else:
            into[:] = self.more
            if least:
                into += least


_UNKNOWN: Final = Column(0, None, 0, np.zeros(0, bool))


class PackedRecord:
    """One record's columns of a kind."""

    def __init__(self, kind: str, text: bytes | memoryview, round_ms: int) -> None:
        """Raises ``checks.UNREADABLE``: it is not as it should be."""
        line, _, packed = bytes(text).partition(b"\n")
        layout, self._packed = parts_of(json_object(line), packed)[f"{kind}_columns"]
        self.rows = whole(layout["rows"], (1, RECORD_ROWS_MAX))
        self.round_ms = round_ms
        self._at = 0
        self.columns: dict[str, Column] = {}
        self.items: dict[str, Any] = {}
        """What is in the lists of a column, end to end."""
        for name, size, least, *has_unknown in layout["columns"]:
            if name in self.columns or name.removesuffix(ITEMS) in self.items:
                raise ValueError(f"{name} comes twice")
            if name.endswith(ITEMS):
                self._read_items(name.removesuffix(ITEMS), size, least)
            else:
                column = self._column(size, least, has_unknown=bool(has_unknown))
                if name in _TIMES and not column.is_within(_SPAN_MS_MAX):
                    raise ValueError(f"{name} is no time")
                self.columns[name] = column
        if any(name in self.columns and name not in self.items for name in NESTED):
            raise ValueError("lists without their items")
        self.dictionaries = self._dictionaries(kind, layout)

    def _column(self, size: int, least: int, *, has_unknown: bool) -> Column:
        known = self._more(self.rows, 1).astype(bool) if has_unknown else None
        count = self.rows if known is None else int(known.sum())
        return self._judged(Column(self.rows, self._more(count, size), least, known))

    def _judged(self, column: Column) -> Column:
        if type(column.least) is not int or not column.is_within(LONG_MAX):
            raise ValueError("no numbers of 64 bits")
        return column

    def _read_items(self, name: str, size: int, least: int) -> None:
        lengths = self.columns[name].numbers()
        if lengths.min() < 0 or lengths.max() > RECORD_ITEMS_MAX:
            raise ValueError("so much is in no list")
        count = whole(int(lengths.sum()), (0, RECORD_ITEMS_MAX))
        self.items[name] = self._judged(Column(count, self._more(count, size), least)).numbers()

    def _more(self, count: int, size: int) -> Any:
        if not size:
            return None
        found = np.frombuffer(self._packed, _KINDS[size], count, self._at)
        self._at += count * size
        return found

    def _dictionaries(self, kind: str, layout: Mapping[str, Any]) -> dict[str, pa.Array]:
        """The values at the places that columns name; none of them names another."""
        of: dict[str, str] = {**TEXTS[kind]}
        found = {name: names(layout.get(name, ())) for name in of.values()}
        if kind == "replicas":
            of |= dict.fromkeys(LISTS, "lists")
            found["lists"] = pa.array(layout.get("lists", ()), pa.list_(pa.int32()))
        for name, dictionary in of.items():
            column = self.columns.get(name, _UNKNOWN)
            most = 0 if column.more is None else int(column.more.max(initial=0))
            is_known = column.known is None or column.known.any()
            if is_known and not 0 <= column.least < len(found[dictionary]) - most:
                raise ValueError(f"{name} is not in {dictionary}")
            if dictionary == "lists" and is_known and name in self.columns:
                places = (
                    column.numbers() if column.known is None else column.numbers()[column.known]
                )
                if holds_too_much(places, found[dictionary]):
                    raise ValueError(f"{name} holds more than a record")
        return found


def read_packed(
    kind: str, bodies: Sequence[tuple[bytes | memoryview, int]]
) -> tuple[dict[str, pa.Array], Any, tuple[int, ...]]:
    """Columns of all rows of these bodies (with the begins of their rounds), of each row which
    body it is of, and the places of bodies that cannot be read."""
    records: list[PackedRecord] = []
    places: list[int] = []
    unreadable: list[int] = []
    for place, (text, round_ms) in enumerate(bodies):
        try:
            records.append(PackedRecord(kind, text, round_ms))
            places.append(place)
        except UNREADABLE:
            unreadable.append(place)
    owners = np.repeat(np.array(places, np.int64), [it.rows for it in records])
    return _laid(kind, records) if records else {}, owners, tuple(unreadable)


def _laid(kind: str, records: Sequence[PackedRecord]) -> dict[str, pa.Array]:
    round_ms = [record.round_ms for record in records]
    columns = {
        name: _array(*_joined(records, name, round_ms if name in _TIMES else None))
        for name in NUMBERS[kind]
    }
    for name, dictionary in TEXTS[kind].items():
        columns[name] = _named(records, name, dictionary)
    if kind == "replicas":
        columns |= {name: _named(records, name, "lists") for name in LISTS}
        columns |= {name: _listed(records, name) for name in NESTED}
    return columns


def _joined(
    records: Sequence[PackedRecord], name: str, further: Sequence[int] | None = None
) -> tuple[Any, Any]:
    """A column of all rows and which are known (None: all); so much ``further`` in each record."""
    count = sum(record.rows for record in records)
    numbers, known = np.zeros(count, np.int64), None
    end = 0
    for place, record in enumerate(records):
        begin, end = end, end + record.rows
        column = record.columns.get(name)
        if column is None or column.known is not None:
            known = np.ones(count, bool) if known is None else known
            known[begin:end] = False if column is None else column.known
        if column is not None:
            column.put(numbers[begin:end], 0 if further is None else further[place])
    return numbers, known


def _array(numbers: Any, known: Any) -> pa.Array:
    return pa.array(numbers, pa.int64(), mask=None if known is None else ~known)


def _named(records: Sequence[PackedRecord], name: str, dictionary: str) -> pa.Array:
    """The values at the places that a column names."""
    each = [record.dictionaries[dictionary] for record in records]
    sizes = np.array([len(it) for it in each])
    starts = (np.cumsum(sizes) - sizes).tolist()
    places = _array(*_joined(records, name, starts))
    known = pa.concat_arrays(each)
    return (known.dictionary_encode() if known.type == pa.string() else known).take(places)


def _listed(records: Sequence[PackedRecord], name: str) -> pa.Array:
    lengths, known = _joined(records, name)
    items = [it.items[name] for it in records if name in it.items]
    return lists_of(
        pa.array(np.concatenate(items) if items else np.zeros(0, np.int64)),
        lengths,
        mask=None if known is None else pa.array(~known),
    )
